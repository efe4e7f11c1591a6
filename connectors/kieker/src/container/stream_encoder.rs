//! Encodes batches as Kieker's streams and binary logs, which have one string table for all
//! batches.

use baler_common::container::EncodeError;
use baler_common::number::to_u64;
use baler_common::record::{NO_TIMESTAMP, RecordBatch};

use super::encode::{RecordEncoder, RecordOptions, check_size};
use super::registry::{REGISTRATION, STRING_OVERHEAD};
use super::stream::KiekerStream;

/// Writes records in the form of a TCP stream or a binary log, and numbers their strings.
///
/// Ids are dense from 0 in order of first use, as in Kieker's writers. They are valid until the
/// encoder is dropped: each connection and each folder of a log has an encoder of its own.
///
/// ```
/// use baler_connector_kieker::container::{KiekerStream, KiekerStreamEncoder};
/// use baler_connector_kieker::types::{self, EmptyRecord};
/// use baler_common::record::{BatchBuilder, DynamicRecord, Record as _};
///
/// let mut builder = BatchBuilder::new();
/// let schema = EmptyRecord::schema().clone();
/// builder.push_dynamic(&DynamicRecord::new(schema, Some(7), [])?)?;
/// let (mut strings, mut records) = (Vec::new(), Vec::new());
/// let mut encoder = KiekerStreamEncoder::new();
/// let register = |id, text: &str| KiekerStreamEncoder::push_registration(id, text, &mut strings);
/// encoder.encode(&builder.take(), register, &mut records)?;
///
/// let mut reader = KiekerStream::new(types::shared_catalog());
/// let sent = [strings, records].concat();
/// assert_eq!(reader.cut(&sent).0, sent.len());
/// assert_eq!(reader.records(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KiekerStreamEncoder {
    records: RecordEncoder,
    /// The memory that a reader needs for the strings.
    string_memory: usize,
    options: RecordOptions,
}

impl Default for KiekerStreamEncoder {
    fn default() -> Self {
        Self::new()
    }
}

impl KiekerStreamEncoder {
    /// Creates an encoder without strings.
    pub fn new() -> Self {
        Self {
            records: RecordEncoder::default(),
            string_memory: 0,
            options: RecordOptions {
                missing_timestamp: NO_TIMESTAMP,
                max_record_bytes: KiekerStream::MAX_RECORD_BYTES,
            },
        }
    }

    /// Sets the logging timestamp of records that have none, in nanoseconds since the Unix epoch.
    pub fn set_missing_timestamp(&mut self, timestamp: i64) {
        self.options.missing_timestamp = timestamp;
    }

    /// Whether the string table stays within the limits of [`KiekerStream`], even if all strings of
    /// the batch are new. Otherwise a new stream is needed.
    pub fn has_room_for(&self, batch: &RecordBatch) -> bool {
        let classes = batch.tables().iter().map(|it| it.schema().name().len());
        let strings = batch.strings().iter().map(str::len);
        let (mut count, mut memory) = (self.records.known(), self.string_memory);
        for bytes in classes.chain(strings) {
            count += 1;
            memory += bytes + STRING_OVERHEAD;
        }
        count <= KiekerStream::MAX_STRINGS && memory <= KiekerStream::MAX_STRING_MEMORY
    }

    /// Appends the records of a batch to `out`, and calls `register` with id and text of each new
    /// string. A reader must get the strings before the records.
    ///
    /// # Errors
    ///
    /// The errors of [`KiekerSerializer`](super::KiekerSerializer), and [`EncodeError::TooLarge`]
    /// for a record or a string that no reader accepts. Then nothing is appended or registered.
    pub fn encode(
        &mut self,
        batch: &RecordBatch,
        mut register: impl FnMut(u32, &str),
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        self.records.write(batch, &self.options, out)?;
        let longest = self.records.new_strings(batch).map(str::len).max();
        let checked = longest.map_or(Ok(()), |it| check_size(it, KiekerStream::MAX_STRING_BYTES));
        let first = match checked.and_then(|()| self.records.keep_ids(batch)) {
            Ok(first) => first,
            Err(error) => {
                out.truncate(start);
                return Err(error);
            }
        };
        for (id, text) in (first..).zip(self.records.new_strings(batch)) {
            self.string_memory += text.len() + STRING_OVERHEAD;
            register(id, text);
        }
        Ok(())
    }

    /// Appends a registration in the form of a single-socket stream, with its length in bytes.
    pub fn push_registration(id: u32, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&REGISTRATION.to_be_bytes());
        out.extend_from_slice(&id.to_be_bytes());
        // `encode` refuses strings of 4 GiB.
        let length = u32::try_from(to_u64(text.len())).unwrap_or(u32::MAX);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
}
