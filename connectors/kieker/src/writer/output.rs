//! Decodes chunks on the thread of a writer, and writes their records to its medium.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baler_common::container::{ChunkDecoder, EncodeError};
use baler_common::record::{Catalog, RecordBatch, Schema};
use baler_common::transport::{Chunk, Failure, Outcome, RetryClass, TransportError};
use baler_connector_file::thread_writer::{Answers, BlockingOutput};

use crate::container::decoder;
use crate::schema;

/// An open connection or folder that accepts records. Its calls block.
pub trait RecordOutput {
    /// Writes the records of a chunk. After `Ok` the operating system has all of them. Returns the
    /// number of values that Kieker's reader will not read as they are in the records.
    ///
    /// # Errors
    ///
    /// [`WriteError`]. Nothing of a refused batch was written.
    fn write(&mut self, batch: &RecordBatch) -> Result<u64, WriteError>;

    /// Does other work; see [`BlockingOutput::tend`].
    ///
    /// # Errors
    ///
    /// The medium is broken.
    fn tend(&mut self) -> Result<Duration, Failure> {
        Ok(Duration::MAX)
    }

    /// Ends the output after the last chunk.
    ///
    /// # Errors
    ///
    /// Written records may not have arrived.
    fn finish(self) -> Result<(), Failure>;
}

/// The reason why a chunk was not written.
#[derive(Debug)]
pub enum WriteError {
    /// The medium is broken.
    Broken(Failure),
    /// The medium never accepts this chunk.
    Refused(Box<str>),
}

impl From<EncodeError> for WriteError {
    fn from(error: EncodeError) -> Self {
        Self::Refused(error.to_string().into())
    }
}

/// Counts since the writer was created, over all its reopenings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterCounts {
    /// Chunks that were written.
    pub chunks: u64,
    /// Records in these chunks, as the owner of the chunks stated.
    pub records: u64,
    /// Chunks that were refused because Kieker could not read one of their records.
    pub refused_chunks: u64,
    /// Records in these chunks.
    pub refused_records: u64,
    /// Strings that are not in a text log as they are in the records: their line ends, semicolons or
    /// backslashes.
    pub altered: u64,
}

/// Decodes chunks for an output of records.
#[derive(Debug)]
pub struct ChunkOutput<O> {
    output: O,
    decoder: ChunkDecoder,
    catalog: Arc<Catalog>,
    counts: Arc<Mutex<WriterCounts>>,
    endpoint: Box<str>,
}

impl<O: RecordOutput> ChunkOutput<O> {
    /// Reads the record types of `schema`, a file or folder with types beside Kieker's own. Then
    /// opens the output.
    pub(super) fn open(
        endpoint: String,
        schema: Option<&Path>,
        counts: &Arc<Mutex<WriterCounts>>,
        open: impl FnOnce() -> Result<O, Failure>,
    ) -> Result<Self, TransportError> {
        let opened = schema::catalog(schema).and_then(|catalog| Ok((catalog, open()?)));
        let (catalog, output) = opened.map_err(|failure| failure.at(&endpoint))?;
        Ok(Self {
            output,
            decoder: decoder().with_catalog(Arc::clone(&catalog)),
            catalog,
            counts: Arc::clone(counts),
            endpoint: endpoint.into(),
        })
    }

    fn count(&self, chunk: &Chunk, outcome: &Outcome, altered: u64) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        let records = u64::from(chunk.meta.records);
        counts.altered += altered;
        match outcome {
            Outcome::Refused(_) => {
                counts.refused_chunks += 1;
                counts.refused_records += records;
            }
            Outcome::Confirmed | Outcome::Spooled => {
                counts.chunks += 1;
                counts.records += records;
            }
        }
    }
}

impl<O: RecordOutput> BlockingOutput for ChunkOutput<O> {
    fn write(&mut self, chunks: &[Chunk], answers: Answers<'_>) -> Result<(), TransportError> {
        for chunk in chunks {
            let batch = fitting(&mut self.decoder, &self.catalog, chunk);
            let (outcome, altered) = match batch.and_then(|batch| self.output.write(&batch)) {
                Ok(altered) => (Outcome::Confirmed, altered),
                Err(WriteError::Refused(message)) => {
                    let (endpoint, class) = (self.endpoint.clone(), RetryClass::Final);
                    let error = TransportError::new("write to", endpoint, class, message);
                    (Outcome::Refused(error), 0)
                }
                Err(WriteError::Broken(failure)) => return Err(failure.at(&self.endpoint)),
            };
            self.count(chunk, &outcome, altered);
            answers.add([outcome]);
        }
        Ok(())
    }

    fn tend(&mut self) -> Result<Duration, TransportError> {
        let tended = self.output.tend();
        tended.map_err(|failure| failure.at(&self.endpoint))
    }

    fn finish(self) -> Result<(), TransportError> {
        let finished = self.output.finish();
        finished.map_err(|failure| failure.at(&self.endpoint))
    }
}

/// Decodes a chunk, and refuses record types that the chunk's reader would not know.
///
/// Kieker's readers cannot find the end of a record of an unknown class. So they give up the
/// connection or the file at the first such record.
fn fitting(
    decoder: &mut ChunkDecoder,
    catalog: &Catalog,
    chunk: &Chunk,
) -> Result<RecordBatch, WriteError> {
    let decoded = decoder.decode(&chunk.bytes);
    let decoded = decoded.map_err(|error| {
        let message = format!("the chunk cannot be decoded: {error}");
        WriteError::Refused(message.into())
    })?;
    let batch = decoded.batch;
    let tables = batch.tables().iter().filter(|table| !table.is_empty());
    let unknown = tables.map(|it| it.schema()).find_map(|schema| {
        let name = schema.name();
        match catalog.get(name) {
            Some(known) if is_same(known, schema) => None,
            Some(_) => Some(format!(
                "{name} has other fields than Kieker's record of that name"
            )),
            None => Some(format!(
                "Kieker has no record type {name}; name its definition with schema=FILE.irl if \
                 the reader has the class, or filter such records out"
            )),
        }
    });
    match unknown {
        None => Ok(batch),
        Some(message) => Err(WriteError::Refused(message.into())),
    }
}

/// Whether two types are the same in Kieker's formats, which have no roles.
fn is_same(known: &Schema, schema: &Schema) -> bool {
    let fields = |schema: &Schema| {
        let fields = schema.fields().iter();
        let fields = fields.map(|it| (Box::<str>::from(it.name()), it.field_type().clone()));
        fields.collect::<Vec<_>>()
    };
    known.name() == schema.name()
        && (known.fingerprint() == schema.fingerprint() || fields(known) == fields(schema))
}
