//! A chunk that is filled record by record and has its own string ids.

use std::sync::Arc;

use baler_common::container::varint;
use baler_common::number::{to_u64, to_usize};

use super::stream_chunk::StreamChunk;
use super::{FORMAT, HEAD_BYTES, MAGIC};

/// A chunk in Kieker's container that is filled with records of a stream or of a log.
///
/// ```
/// use baler_connector_kieker::container::{ChunkString, KiekerChunk};
///
/// let mut class = ChunkString::new("kieker.common.record.misc.EmptyRecord");
/// let mut chunk = KiekerChunk::default();
/// chunk.record(|chunk| {
///     chunk.put_string(&mut class);
///     chunk.put(&(-1_i64).to_be_bytes());
///     Ok::<(), ()>(())
/// })?;
/// let chunk = chunk.take().unwrap();
/// assert_eq!(chunk.records, 1);
/// assert!(chunk.bytes.starts_with(b"KIKADFLT"));
/// # Ok::<(), ()>(())
/// ```
#[derive(Debug, Default)]
pub struct KiekerChunk {
    /// Magic, format and records.
    bytes: Vec<u8>,
    records: u32,
    /// Where the last record begins.
    last: usize,
    /// Indexed by the chunk's ids.
    strings: Vec<Arc<str>>,
    string_bytes: usize,
    /// Whether a record's type is not one of Kieker's own.
    has_own_types: bool,
    /// The number of bytes that the next chunk should need, by the last one.
    expected: usize,
}

/// A string of records, which may be in any number of chunks.
#[derive(Debug)]
pub struct ChunkString {
    text: Arc<str>,
    /// Its id in the last chunk that contained it.
    id: u32,
}

impl ChunkString {
    /// Creates a string that is in no chunk.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            id: u32::MAX,
        }
    }

    /// The string.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }
}

impl KiekerChunk {
    /// A chunk with this many records is full.
    pub const FULL_RECORDS: u32 = 1_024;
    /// A chunk with this many bytes is full. The last record may go beyond.
    pub const FULL_BYTES: usize = 256 << 10;

    /// Whether the chunk is large enough to be taken.
    pub fn is_full(&self) -> bool {
        let bytes = self.bytes.len() + self.string_bytes;
        self.records >= Self::FULL_RECORDS || bytes >= Self::FULL_BYTES
    }

    /// Returns the number of records in the chunk.
    pub fn records(&self) -> u32 {
        self.records
    }

    /// The memory of the records, in bytes.
    pub fn memory(&self) -> usize {
        self.bytes.capacity()
    }

    /// Returns the bytes of the records and of the strings.
    pub(super) fn sizes(&self) -> (usize, usize) {
        (self.bytes.len(), self.string_bytes)
    }

    /// Takes the chunk so far, and begins a new one; `None` if it has no record.
    pub fn take(&mut self) -> Option<StreamChunk> {
        if self.records == 0 {
            return None;
        }
        let Self {
            mut bytes,
            records,
            strings,
            string_bytes,
            has_own_types,
            ..
        } = std::mem::take(self);
        let record_bytes = bytes.len() - HEAD_BYTES;
        let tail = string_bytes + 16;
        bytes.reserve(tail);
        // With some room, so that a slightly larger chunk is not copied as it grows.
        self.expected = (bytes.len() + tail) / 8 * 9;
        varint::write(&mut bytes, to_u64(strings.len()));
        for string in strings {
            varint::text(&mut bytes, &string);
        }
        // A chunk is far below 4 GiB.
        let trailer = u32::try_from(record_bytes).unwrap_or(u32::MAX);
        bytes.extend_from_slice(&trailer.to_be_bytes());
        Some(StreamChunk {
            bytes,
            records,
            has_only_kiekers_types: !has_own_types,
        })
    }

    /// Adds a record: `write` puts the class, the logging timestamp and the fields, in the layout
    /// of the container. Nothing is added if it fails.
    ///
    /// # Errors
    ///
    /// The errors of `write`.
    pub fn record<E>(&mut self, write: impl FnOnce(&mut Self) -> Result<(), E>) -> Result<(), E> {
        if self.records == 0 {
            self.bytes.clear();
            self.bytes.reserve(self.expected);
            self.bytes.extend_from_slice(&MAGIC);
            self.bytes.extend_from_slice(&FORMAT);
        }
        let before = (self.bytes.len(), self.strings.len(), self.string_bytes);
        let written = write(self);
        if written.is_ok() {
            self.last = before.0;
            self.records += 1;
        } else {
            self.bytes.truncate(before.0);
            self.strings.truncate(before.1);
            self.string_bytes = before.2;
        }
        written
    }

    /// Marks that a record's type is not one of Kieker's own.
    pub fn set_has_own_types(&mut self) {
        self.has_own_types = true;
    }

    /// Appends bytes of a record.
    #[inline]
    pub fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the place of the last record.
    pub(super) fn last_record(&self) -> usize {
        self.last
    }

    /// Returns the bytes of a record at this place.
    pub(super) fn get<const N: usize>(&self, at: usize) -> Option<[u8; N]> {
        self.bytes.get(at..)?.first_chunk().copied()
    }

    /// Returns the string whose id is at this place.
    pub(super) fn string_at(&self, at: usize) -> Option<&str> {
        let id = u32::from_be_bytes(self.get(at)?);
        self.strings.get(usize::try_from(id).ok()?).map(|it| &**it)
    }

    /// Writes over bytes of a record.
    #[inline]
    pub(super) fn replace<const N: usize>(&mut self, at: usize, bytes: [u8; N]) {
        let place = self.bytes.get_mut(at..);
        if let Some(place) = place.and_then(|it| it.first_chunk_mut()) {
            *place = bytes;
        }
    }

    /// Appends the chunk's id of a string, and adds the string to the chunk if necessary.
    #[inline]
    pub fn put_string(&mut self, string: &mut ChunkString) {
        let id = self.string_id(string);
        self.put(&id.to_be_bytes());
    }

    /// Returns the chunk's id of a string, and adds the string to the chunk if necessary.
    #[inline]
    pub(super) fn string_id(&mut self, string: &mut ChunkString) -> u32 {
        let id = to_usize(string.id);
        let there = self.strings.get(id);
        if !there.is_some_and(|there| Arc::ptr_eq(there, &string.text)) {
            self.add_string(string);
        }
        string.id
    }

    #[cold]
    fn add_string(&mut self, string: &mut ChunkString) {
        // Every string has an id of four bytes in the chunk.
        string.id = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
        self.string_bytes += string.text.len() + 5;
        self.strings.push(Arc::clone(&string.text));
    }
}
