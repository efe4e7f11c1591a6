//! Kieker's streams over TCP, cut into self-contained chunks.
//!
//! A stream has two kinds of items, without a length in front:
//!
//! | item | bytes |
//! |---|---|
//! | registration | -1 (i32), string id (i32), length (i32), UTF-8 |
//! | record | as in the container, with the stream's string ids |
//!
//! String ids are those of the sender: neither dense nor from 0, and one may be given anew.
//! A sender with two sockets sends registrations, without the -1, over the second one.
//!
//! Sources: Kieker's `SingleSocketTcpWriter.java`, `DualSocketTcpWriter.java` and `WriterRegistry.java`.

use std::collections::HashMap;
use std::sync::Arc;

use super::decode::{CLASS, check_fields, invalid};
use super::{FORMAT, MAGIC, least_bytes};
use crate::container::compression::Compression;
use crate::container::cursor::Cursor;
use crate::container::decoder::ChunkDecoder;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::header::ChunkHeader;
use crate::container::native::NativeSerializer;
use crate::container::num::{to_u64, to_usize};
use crate::container::serializer::ChunkSerializer as _;
use crate::container::varint;
use crate::record::{Catalog, FieldType, Schema};
use crate::transport::{ChunkIdentity, ContainerKind};

/// The first word of a registration.
pub(super) const REGISTRATION: i32 = -1;

/// The memory that a string takes beside its bytes.
pub(super) const STRING_OVERHEAD: usize = 96;

const STRING: &str = "a registered string";
const STRING_ID: &str = "a string id";

/// Cuts the stream of one sender into self-contained chunks, in Kieker's container.
///
/// Each chunk has its own string table, so that any consumer can decode it alone.
///
/// ```
/// use baler_common::container::{KiekerStream, StreamStep};
/// use baler_common::record::Catalog;
///
/// let mut stream = KiekerStream::new(Catalog::shared_kieker());
/// let name = b"kieker.common.record.misc.EmptyRecord";
/// let mut sent = [[0xff; 4], 5_i32.to_be_bytes(), 37_i32.to_be_bytes()].concat();
/// sent.extend(name);
/// sent.extend(5_i32.to_be_bytes());
/// sent.extend((-1_i64).to_be_bytes());
/// let (taken, step) = stream.cut(&sent);
/// assert_eq!((taken, step), (sent.len(), Ok(StreamStep::More(4))));
/// let chunk = stream.take_chunk().unwrap();
/// assert_eq!(chunk.records, 1);
/// assert!(chunk.bytes.starts_with(b"KIKADFLT"));
/// ```
#[derive(Debug)]
pub struct KiekerStream {
    catalog: Arc<Catalog>,
    strings: HashMap<i32, StreamString>,
    /// The memory of the strings.
    string_memory: usize,
    lengths: Lengths,
    /// Registrations come over a socket of their own.
    is_apart: bool,
    /// How many bytes of the stream were taken.
    offset: usize,
    /// How many bytes of the registrations that come apart were taken.
    registry_offset: usize,
    chunk: OpenChunk,
}

/// How a sender counts the length of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lengths {
    /// Unknown: every string was ASCII so far.
    Undecided,
    /// In bytes, as readers expect it.
    Bytes,
    /// In UTF-16 units, as Kieker's socket writers do (`String.length()`).
    Units,
}

/// A string that was registered.
#[derive(Debug)]
struct StreamString {
    text: Arc<str>,
    /// Its id in the chunk, if the chunk has it.
    chunk_id: u32,
    /// The type of that name, once a record had it.
    class: Option<StreamClass>,
}

/// A record class of a stream.
#[derive(Debug, Clone)]
struct StreamClass {
    schema: Arc<Schema>,
    /// It is one of Kieker's own types, which every consumer knows.
    is_kiekers: bool,
}

/// The chunk that is being filled.
#[derive(Debug, Default)]
struct OpenChunk {
    /// Magic, format and records.
    bytes: Vec<u8>,
    records: u32,
    /// By id of the chunk.
    strings: Vec<Arc<str>>,
    string_bytes: usize,
    /// A record is of a type that is not Kieker's own.
    has_own_types: bool,
}

/// A chunk, complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamChunk {
    /// The container.
    pub bytes: Vec<u8>,
    /// How many records are in it.
    pub records: u32,
    /// Whether all records are of Kieker's own types. Otherwise a consumer needs the catalog that
    /// the stream had.
    pub has_only_kiekers_types: bool,
}

impl StreamChunk {
    /// The chunk in a container that every consumer can decode: as it is where it has only Kieker's
    /// types, and otherwise in the native container, which holds its schemas.
    ///
    /// A chunk that does not decode stays as it is, so that its consumer puts it aside.
    pub fn for_every_consumer(
        self,
        catalog: &Arc<Catalog>,
        identity: ChunkIdentity,
    ) -> (ContainerKind, Vec<u8>) {
        if self.has_only_kiekers_types {
            return (ContainerKind::Kieker, self.bytes);
        }
        let mut decoder = ChunkDecoder::default().with_catalog(Arc::clone(catalog));
        let native = decoder.decode(&self.bytes).ok().and_then(|decoded| {
            let mut bytes = Vec::new();
            let mut serializer = NativeSerializer::new(Compression::None).ok()?;
            let header = ChunkHeader::new(identity);
            let written = serializer.serialize(&decoded.batch, &header, &mut bytes);
            written.is_ok().then_some(bytes)
        });
        match native {
            Some(bytes) => (ContainerKind::Native, bytes),
            None => (ContainerKind::Kieker, self.bytes),
        }
    }
}

/// Why a stream stopped before the end of what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStep {
    /// The chunk is full: take it.
    Full,
    /// At least this many bytes are needed, counted from those that were not taken.
    More(usize),
    /// A record has a string that is not registered yet, and registrations come apart.
    Registration,
}

/// Why an item was not taken.
enum Stop {
    /// No string has an id: an error, unless registrations come apart.
    Unregistered(DecodeError),
    Broken(DecodeError),
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Self::Broken(error)
    }
}

impl KiekerStream {
    /// The most strings that a sender may register.
    pub const MAX_STRINGS: usize = 1 << 20;
    /// The most bytes of one string.
    pub const MAX_STRING_BYTES: usize = 1 << 20;
    /// The most memory that the registered strings of a sender may take, in bytes.
    pub const MAX_STRING_MEMORY: usize = 64 << 20;
    /// The most bytes of one record, its strings not counted.
    pub const MAX_RECORD_BYTES: usize = 1 << 20;
    /// The most bytes that the strings of one record may add to a chunk.
    pub const MAX_RECORD_STRING_BYTES: usize = 8 << 20;
    /// A chunk with this many records is full.
    pub const CHUNK_RECORDS: u32 = 1_024;
    /// A chunk with this many bytes is full. The last record may go beyond.
    pub const CHUNK_BYTES: usize = 256 << 10;

    /// A stream that begins, with registrations among the records.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            strings: HashMap::new(),
            string_memory: 0,
            lengths: Lengths::Undecided,
            is_apart: false,
            offset: 0,
            registry_offset: 0,
            chunk: OpenChunk::default(),
        }
    }

    /// A stream that begins, with registrations over a socket of their own ([`Self::register`]).
    ///
    /// Only Kieker's Java writers send so, and all of them count UTF-16 units.
    pub fn with_registry_apart(catalog: Arc<Catalog>) -> Self {
        Self {
            lengths: Lengths::Units,
            is_apart: true,
            ..Self::new(catalog)
        }
    }

    /// Says that no registration comes any more over the socket of its own.
    pub fn end_registry(&mut self) {
        self.is_apart = false;
    }

    /// Takes the items at the start of `input` until the chunk is full; how many bytes it took.
    ///
    /// # Errors
    ///
    /// The item after those bytes cannot be. The stream cannot go on: nothing in it says where
    /// the next item begins.
    pub fn cut(&mut self, input: &[u8]) -> (usize, Result<StreamStep, DecodeError>) {
        let mut cursor = Cursor::at(input, self.offset);
        let step = loop {
            if self.chunk.is_full() {
                break Ok(StreamStep::Full);
            }
            let before = cursor.clone();
            if let Err(stop) = self.item(&mut cursor) {
                cursor = before;
                break self.waiting(stop, &cursor);
            }
        };
        let taken = input.len().saturating_sub(cursor.left());
        self.offset = cursor.offset();
        (taken, step)
    }

    /// Takes the registrations at the start of `input`, which came over a socket of their own; how
    /// many bytes it took.
    ///
    /// # Errors
    ///
    /// As [`cut`](Self::cut).
    pub fn register(&mut self, input: &[u8]) -> (usize, Result<StreamStep, DecodeError>) {
        let mut cursor = Cursor::at(input, self.registry_offset);
        let step = loop {
            let before = cursor.clone();
            if let Err(stop) = self.registration(&mut cursor) {
                cursor = before;
                break self.waiting(stop, &cursor);
            }
        };
        let taken = input.len().saturating_sub(cursor.left());
        self.registry_offset = cursor.offset();
        (taken, step)
    }

    /// How many records the chunk has that is being filled.
    pub fn records(&self) -> u32 {
        self.chunk.records
    }

    /// How many bytes of the stream were taken.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The memory of what is kept between calls, about.
    pub fn memory(&self) -> usize {
        let chunk = self.chunk.bytes.capacity();
        self.string_memory.saturating_add(chunk)
    }

    /// The chunk so far; `None` where it has no record.
    pub fn take_chunk(&mut self) -> Option<StreamChunk> {
        if self.chunk.records == 0 {
            return None;
        }
        let OpenChunk {
            mut bytes,
            records,
            strings,
            has_own_types,
            ..
        } = std::mem::take(&mut self.chunk);
        let head = MAGIC.len().saturating_add(FORMAT.len());
        let record_bytes = bytes.len().saturating_sub(head);
        varint::write(&mut bytes, to_u64(strings.len()));
        for string in strings {
            varint::write(&mut bytes, to_u64(string.len()));
            bytes.extend_from_slice(string.as_bytes());
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

    fn item(&mut self, input: &mut Cursor<'_>) -> Result<(), Stop> {
        let mut after = input.clone();
        let first = i32::from_be_bytes(after.array(CLASS)?);
        if first == REGISTRATION && !self.is_apart {
            *input = after;
            return self.registration(input);
        }
        self.record(input)
    }

    fn registration(&mut self, input: &mut Cursor<'_>) -> Result<(), Stop> {
        let (id, length) = head(input)?;
        let at = input.clone();
        let text = self.text(length, input)?;
        let old = self.strings.get(&id).map_or(0, StreamString::memory);
        let strings = self.strings.len().saturating_add(usize::from(old == 0));
        if strings > Self::MAX_STRINGS {
            let limit = Self::MAX_STRINGS;
            return Err(at
                .over_limit("the number of strings", to_u64(strings), limit)
                .into());
        }
        let string = StreamString {
            text: text.into(),
            chunk_id: u32::MAX,
            class: None,
        };
        let memory = self.string_memory.saturating_add(string.memory());
        let memory = memory.saturating_sub(old);
        if memory > Self::MAX_STRING_MEMORY {
            let limit = Self::MAX_STRING_MEMORY;
            return Err(at
                .over_limit("the memory of the strings", to_u64(memory), limit)
                .into());
        }
        self.string_memory = memory;
        self.strings.insert(id, string);
        Ok(())
    }

    /// Reads a string of a length that the sender counts in bytes or in UTF-16 units.
    ///
    /// Both agree on ASCII. At the first other string the reading in bytes counts if the next item
    /// makes sense after it, and otherwise the reading in units.
    fn text<'a>(&mut self, length: usize, input: &mut Cursor<'a>) -> Result<&'a str, DecodeError> {
        if self.lengths == Lengths::Units {
            return units(length, input);
        }
        let at = input.clone();
        let mut after = input.clone();
        let read = std::str::from_utf8(after.take(length, STRING)?);
        if self.lengths == Lengths::Undecided && !read.is_ok_and(str::is_ascii) {
            if read.is_err() || !self.makes_sense(after.clone())? {
                self.lengths = Lengths::Units;
                return units(length, input);
            }
            self.lengths = Lengths::Bytes;
        }
        let text = read.map_err(|_| at.error(STRING, DecodeErrorKind::Utf8))?;
        *input = after;
        Ok(text)
    }

    /// Whether an item may begin here.
    fn makes_sense(&self, mut next: Cursor<'_>) -> Result<bool, DecodeError> {
        let first = i32::from_be_bytes(next.array(CLASS)?);
        if first != REGISTRATION {
            let class = self.strings.get(&first);
            return Ok(class.is_some_and(|class| self.catalog.get(&class.text).is_some()));
        }
        match head(&mut next) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind, DecodeErrorKind::Ends { .. }) => Err(error),
            Err(_) => Ok(false),
        }
    }

    fn record(&mut self, input: &mut Cursor<'_>) -> Result<(), Stop> {
        let at = input.clone();
        let id = i32::from_be_bytes(input.array(CLASS)?);
        let Some(name) = self.strings.get_mut(&id) else {
            return Err(unregistered(&at, CLASS, id));
        };
        let class = match &name.class {
            Some(class) => class.clone(),
            None => {
                let class = class(&self.catalog, &name.text, &at)?;
                name.class.insert(class).clone()
            }
        };
        let chunk = &mut self.chunk;
        let before = (chunk.bytes.len(), chunk.strings.len(), chunk.string_bytes);
        if chunk.records == 0 {
            chunk.bytes.clear();
            chunk.bytes.extend_from_slice(&MAGIC);
            chunk.bytes.extend_from_slice(&FORMAT);
        }
        let id = chunk.string_id(name);
        chunk.bytes.extend_from_slice(&id.to_be_bytes());
        let written = chunk.record(&mut self.strings, &class.schema, input);
        let bytes = chunk.bytes.len().saturating_sub(before.0);
        let string_bytes = chunk.string_bytes.saturating_sub(before.2);
        let stop = match written {
            Err(stop) => stop,
            Ok(()) if bytes > Self::MAX_RECORD_BYTES => at
                .over_limit("a record", to_u64(bytes), Self::MAX_RECORD_BYTES)
                .into(),
            Ok(()) if string_bytes > Self::MAX_RECORD_STRING_BYTES => {
                let limit = Self::MAX_RECORD_STRING_BYTES;
                at.over_limit("the strings of a record", to_u64(string_bytes), limit)
                    .into()
            }
            Ok(()) => {
                chunk.records = chunk.records.saturating_add(1);
                chunk.has_own_types |= !class.is_kiekers;
                return Ok(());
            }
        };
        chunk.bytes.truncate(before.0);
        chunk.strings.truncate(before.1);
        chunk.string_bytes = before.2;
        Err(stop)
    }

    /// Tells an item that is not complete yet from one that cannot be.
    fn waiting(&self, stop: Stop, item: &Cursor<'_>) -> Result<StreamStep, DecodeError> {
        let error = match stop {
            Stop::Unregistered(_) if self.is_apart => return Ok(StreamStep::Registration),
            Stop::Unregistered(error) | Stop::Broken(error) => error,
        };
        match error.kind {
            DecodeErrorKind::Ends { needed, .. } => {
                let end = error.offset.saturating_add(needed);
                Ok(StreamStep::More(end.saturating_sub(item.offset()).max(1)))
            }
            _ => Err(error),
        }
    }
}

impl StreamString {
    fn memory(&self) -> usize {
        self.text.len().saturating_add(STRING_OVERHEAD)
    }
}

impl OpenChunk {
    fn is_full(&self) -> bool {
        let bytes = self.bytes.len().saturating_add(self.string_bytes);
        self.records >= KiekerStream::CHUNK_RECORDS || bytes >= KiekerStream::CHUNK_BYTES
    }

    /// The chunk's id of a string, which is added if the chunk does not have it.
    fn string_id(&mut self, string: &mut StreamString) -> u32 {
        let id = usize::try_from(string.chunk_id).unwrap_or(usize::MAX);
        let there = self.strings.get(id);
        if !there.is_some_and(|there| Arc::ptr_eq(there, &string.text)) {
            string.chunk_id = u32::try_from(self.strings.len()).unwrap_or(u32::MAX);
            let bytes = string.text.len().saturating_add(5);
            self.string_bytes = self.string_bytes.saturating_add(bytes);
            self.strings.push(Arc::clone(&string.text));
        }
        string.chunk_id
    }

    /// Copies timestamp and fields, with the chunk's ids.
    fn record(
        &mut self,
        strings: &mut HashMap<i32, StreamString>,
        schema: &Schema,
        input: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        self.bytes
            .extend_from_slice(input.take(8, "a logging timestamp")?);
        for field in schema.fields() {
            self.value(strings, field.field_type(), input)?;
        }
        Ok(())
    }

    fn value(
        &mut self,
        strings: &mut HashMap<i32, StreamString>,
        field_type: &FieldType,
        input: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        let at = input.clone();
        match field_type {
            FieldType::Bool => match input.array("a bool")? {
                [byte @ (0 | 1)] => self.bytes.push(byte),
                [byte] => return Err(at.error("a bool", invalid(byte)).into()),
            },
            FieldType::String => {
                let id = i32::from_be_bytes(input.array(STRING_ID)?);
                let Some(string) = strings.get_mut(&id) else {
                    return Err(unregistered(&at, STRING_ID, id));
                };
                let id = self.string_id(string);
                self.bytes.extend_from_slice(&id.to_be_bytes());
            }
            FieldType::List(inner) => {
                const LENGTH: &str = "the length of a list";
                let length: [u8; 4] = input.array(LENGTH)?;
                let items = to_usize(u32::from_be_bytes(length).into());
                let needed = items.saturating_mul(least_bytes(inner).unwrap_or(1));
                let limit = KiekerStream::MAX_RECORD_BYTES;
                if needed > limit {
                    return Err(at.over_limit(LENGTH, to_u64(needed), limit).into());
                }
                // All items at once, lest a list that comes in pieces is read again with each.
                input.clone().take(needed, LENGTH)?;
                self.bytes.extend_from_slice(&length);
                for _ in 0..items {
                    self.value(strings, inner, input)?;
                }
            }
            _ => {
                let bytes = least_bytes(field_type).unwrap_or(0);
                self.bytes.extend_from_slice(input.take(bytes, "a field")?);
            }
        }
        Ok(())
    }
}

/// The record class of a name.
fn class(catalog: &Catalog, name: &str, at: &Cursor<'_>) -> Result<StreamClass, DecodeError> {
    let Some(schema) = catalog.get(name) else {
        let name = name.into();
        return Err(at.error(CLASS, DecodeErrorKind::UnknownRecordType { name }));
    };
    check_fields(at, schema)?;
    let kieker = Catalog::shared_kieker();
    Ok(StreamClass {
        is_kiekers: kieker.get(name) == Some(schema),
        schema: Arc::clone(schema),
    })
}

/// Reads the id and the length of a registration.
fn head(input: &mut Cursor<'_>) -> Result<(i32, usize), DecodeError> {
    const LENGTH: &str = "the length of a string";
    let at = input.clone();
    let id = i32::from_be_bytes(input.array("the id of a string")?);
    if id < 0 {
        return Err(at.error("the id of a string", invalid(bits(id))));
    }
    let at = input.clone();
    let length = to_usize(u32::from_be_bytes(input.array(LENGTH)?).into());
    if length > KiekerStream::MAX_STRING_BYTES {
        return Err(at.over_limit(LENGTH, to_u64(length), KiekerStream::MAX_STRING_BYTES));
    }
    Ok((id, length))
}

/// Reads a string whose length is counted in UTF-16 units.
fn units<'a>(length: usize, input: &mut Cursor<'a>) -> Result<&'a str, DecodeError> {
    let utf8 = |at: &Cursor<'_>| at.error(STRING, DecodeErrorKind::Utf8);
    let rest = input.clone().take_rest();
    let (mut bytes, mut units) = (0_usize, 0_usize);
    while units < length {
        let (size, wide) = match rest.get(bytes) {
            Some(0x00..=0x7f) => (1, 1),
            Some(0xc2..=0xdf) => (2, 1),
            Some(0xe0..=0xef) => (3, 1),
            Some(0xf0..=0xf4) => (4, 2),
            Some(_) => return Err(utf8(input)),
            None => {
                // A unit takes a byte at least.
                let left = length.saturating_sub(units);
                let needed = bytes.saturating_add(left);
                let left = rest.len();
                return Err(input.error(STRING, DecodeErrorKind::Ends { needed, left }));
            }
        };
        bytes = bytes.saturating_add(size);
        units = units.saturating_add(wide);
    }
    let mut after = input.clone();
    let text = std::str::from_utf8(after.take(bytes, STRING)?);
    let text = text.map_err(|_| utf8(input))?;
    if units != length {
        return Err(utf8(input));
    }
    *input = after;
    Ok(text)
}

/// No string has this id.
fn unregistered(at: &Cursor<'_>, reading: &'static str, id: i32) -> Stop {
    let error = at.error(reading, invalid(bits(id)));
    if id < 0 {
        return Stop::Broken(error);
    }
    Stop::Unregistered(error)
}

fn bits(id: i32) -> u32 {
    u32::from_be_bytes(id.to_be_bytes())
}
