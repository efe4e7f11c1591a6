//! Cuts Kieker's TCP streams and binary logs into self-contained chunks.
//!
//! A stream has two kinds of items, which are not preceded by a length:
//!
//! | item | bytes |
//! |---|---|
//! | registration | -1 (i32), string id (i32), length (i32), UTF-8 |
//! | record | as in the container, with the stream's string ids |
//!
//! The sender assigns string ids. They are neither dense nor from 0, and one may be assigned again.
//! A sender with two sockets sends registrations, without the -1, over the second one. A binary log
//! contains only records; its strings are in a separate map file.
//!
//! Sources: Kieker's `SingleSocketTcpWriter.java`, `DualSocketTcpWriter.java` and `WriterRegistry.java`.

use std::sync::Arc;

use baler_common::container::cursor::Cursor;
use baler_common::container::{DecodeError, DecodeErrorKind};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::{Catalog, Schema};

use super::chunk::KiekerChunk;
use super::class::{self, StreamClass, class, copy_parts};
use super::decode::{CLASS, invalid};
use super::lengths::{self, Lengths};
use super::registry::{
    self, MESSAGE_RECORD, MESSAGE_REGISTRATION, NO_TYPE, REGISTRATION, Registry, STRING, Stop, head,
};
use super::stream_chunk::StreamChunk;
use super::time_unit::{TimeUnit, Times};

/// The id that the unit of times has among the strings that are kept. No string has it.
const UNIT_ID: i32 = -2;

/// Cuts the stream of one sender into self-contained chunks, in Kieker's container.
///
/// Each chunk has its own string table, so that any consumer can decode it alone.
///
/// ```
/// use baler_connector_kieker::container::{KiekerStream, StreamStep};
/// use baler_connector_kieker::types;
///
/// let mut stream = KiekerStream::new(types::shared_catalog());
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
    registry: Registry,
    /// The classes of the records so far.
    classes: Vec<StreamClass>,
    lengths: Lengths,
    /// Whether the sender sends no more.
    is_ended: bool,
    times: Times,
    /// The key that makes the ids of traces unique.
    trace_key: Option<i64>,
    /// Whether registrations do not come among the records.
    is_apart: bool,
    /// The number of bytes taken from the stream.
    offset: usize,
    /// The number of bytes taken from registrations over a socket of their own.
    registry_offset: usize,
    chunk: KiekerChunk,
}

/// Why a stream stopped before the end of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamStep {
    /// The chunk is full and must be taken.
    Full,
    /// The next record has this logging timestamp, which is after the one given.
    Later(i64),
    /// At least this many bytes are needed, counted from the first byte that was not taken.
    More(usize),
    /// A record has a string with this number, which is not registered yet. Registrations come over
    /// a socket of their own.
    Registration(i32),
}

impl KiekerStream {
    /// The most strings that a sender may register.
    pub const MAX_STRINGS: usize = registry::MAX_STRINGS;
    /// The most bytes of one string.
    pub const MAX_STRING_BYTES: usize = registry::MAX_STRING_BYTES;
    /// The most memory that the registered strings of a sender may take, in bytes.
    pub const MAX_STRING_MEMORY: usize = registry::MAX_STRING_MEMORY;
    /// The most bytes of one record, without its strings.
    pub const MAX_RECORD_BYTES: usize = class::MAX_RECORD_BYTES;
    /// The most bytes that the strings of one record may add to a chunk.
    pub const MAX_RECORD_STRING_BYTES: usize = 8 << 20;

    /// Creates a stream with registrations among the records.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        Self {
            catalog,
            registry: Registry::default(),
            classes: Vec::new(),
            lengths: Lengths::Undecided,
            is_ended: false,
            times: Times::default(),
            trace_key: None,
            is_apart: false,
            offset: 0,
            registry_offset: 0,
            chunk: KiekerChunk::default(),
        }
    }

    /// Creates a stream with registrations over a socket of their own ([`Self::register`]).
    ///
    /// Only Kieker's Java writers use this, and all of them count UTF-16 units.
    pub fn with_registry_apart(catalog: Arc<Catalog>) -> Self {
        Self {
            lengths: Lengths::Units,
            is_apart: true,
            ..Self::new(catalog)
        }
    }

    /// Creates a stream of the messages of one of Kieker's `AmqpWriter`s, joined in order. `id` is
    /// the number of its registry, which [`Self::registry_of`] reads.
    ///
    /// An item is `FF`, the number (i64) and a registration without the -1, with its length in
    /// bytes; or `01`, the number and a record. Kieker 1.14 and later publish an incomplete record
    /// with each new string. So a registration may precede an id within a record, and a message may
    /// end within a record.
    pub fn of_messages(catalog: Arc<Catalog>, id: i64) -> Self {
        Self {
            lengths: Lengths::Bytes,
            registry: Registry::of_messages(id.to_be_bytes()),
            ..Self::new(catalog)
        }
    }

    /// Makes the ids of traces different from those of streams with other keys. Random keys make
    /// collisions very unlikely.
    ///
    /// This changes every field of type i64 whose name is `traceId` or ends in `TraceId`. Ids are
    /// combined with the key by an exclusive or, without its sign. The id -1 means that there is no
    /// trace, and stays.
    #[must_use]
    pub fn with_trace_key(self, key: u64) -> Self {
        Self {
            trace_key: Some((key >> 1) as i64),
            ..self
        }
    }

    /// Takes the lengths of strings as bytes from now on.
    pub fn count_bytes(&mut self) {
        self.lengths = Lengths::Bytes;
    }

    /// Takes all times as times of this unit. Without it, they are of the unit that the sender's
    /// last [`KiekerMetadataRecord`](crate::types::KiekerMetadataRecord) says, and before the first
    /// one, nanoseconds.
    ///
    /// Times are the logging timestamp and the fields `timestamp`, `tin` and `tout` of type i64. In
    /// chunks all of them are nanoseconds, and metadata records say so.
    #[must_use]
    pub fn with_time_unit(mut self, unit: Option<TimeUnit>) -> Self {
        if let Some(unit) = unit {
            self.times = Times {
                unit,
                is_fixed: true,
            };
        }
        self
    }

    /// Returns the unit of the sender's times. A reader that continues the stream later needs it.
    pub fn time_unit(&self) -> TimeUnit {
        self.times.unit
    }

    /// Continues with the unit of an earlier reader, unless [`Self::with_time_unit`] sets it.
    pub fn restore_time_unit(&mut self, unit: TimeUnit) {
        if !self.times.is_fixed {
            self.times.unit = unit;
        }
    }

    /// Converts the times of the last record in the chunk. Whoever adds a record of this sender to a
    /// chunk calls this.
    #[inline]
    pub fn convert_times(&mut self, chunk: &mut KiekerChunk, schema: &Schema) {
        self.times.convert(chunk, schema);
    }

    /// Returns the number of the registry at the start of a message; `None` if the message
    /// continues a record.
    pub fn registry_of(message: &[u8]) -> Option<i64> {
        let mut input = Cursor::new(message);
        let kind = input.u8("the kind of an item").ok()?;
        let id = input.array("the number of a registry").ok()?;
        matches!(kind, MESSAGE_RECORD | MESSAGE_REGISTRATION).then(|| i64::from_be_bytes(id))
    }

    /// Returns the strings of messages added since the last call, with their ids. They are what a
    /// later reader needs. So the unit of times is among them, as the string `UNIT_ID`.
    pub fn take_new_strings(&mut self) -> Vec<(i32, Arc<str>)> {
        self.registry.take_new()
    }

    /// Adds a string that an earlier reader of the messages kept. It does not count as new.
    ///
    /// # Errors
    ///
    /// A limit is exceeded.
    pub fn restore(&mut self, id: i32, text: &str) -> Result<(), DecodeError> {
        if let (UNIT_ID, Some(unit)) = (id, TimeUnit::of_name(text)) {
            self.restore_time_unit(unit);
            return Ok(());
        }
        self.registry.insert(&Cursor::new(&[]), id, text)?;
        self.registry.take_new();
        Ok(())
    }

    /// Marks that the sender sends no more. Then no string waits for further bytes that show how its
    /// length counts.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    /// Marks the end of the registrations over the socket of their own.
    pub fn end_registry(&mut self) {
        self.is_apart = false;
    }

    /// Takes the items at the start of `input` until the chunk is full. Returns how many bytes it
    /// took.
    ///
    /// # Errors
    ///
    /// The item after those bytes is impossible. The stream cannot continue, because it does not
    /// contain the position of the next item.
    pub fn cut(&mut self, input: &[u8]) -> (usize, Result<StreamStep, DecodeError>) {
        let mut chunk = std::mem::take(&mut self.chunk);
        let cut = self.cut_into(&mut chunk, input, i64::MAX);
        self.chunk = chunk;
        cut
    }

    /// As [`cut`](Self::cut), into a chunk that several streams fill, and at most up to the first
    /// record whose logging timestamp is after `until`.
    ///
    /// # Errors
    ///
    /// As [`cut`](Self::cut).
    pub fn cut_into(
        &mut self,
        chunk: &mut KiekerChunk,
        input: &[u8],
        until: i64,
    ) -> (usize, Result<StreamStep, DecodeError>) {
        let mut cursor = Cursor::at(input, self.offset);
        let step = loop {
            if chunk.is_full() {
                break Ok(StreamStep::Full);
            }
            let before = cursor.clone();
            if let Err(stop) = self.item(chunk, &mut cursor, until) {
                cursor = before;
                break self.waiting(stop, &cursor);
            }
        };
        let taken = input.len() - cursor.left();
        self.offset = cursor.offset();
        (taken, step)
    }

    /// Takes the registrations at the start of `input`, which came over a socket of their own.
    /// Returns how many bytes it took.
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
        let taken = input.len() - cursor.left();
        self.registry_offset = cursor.offset();
        (taken, step)
    }

    /// Adds a string from outside the stream, such as the map of a log; or assigns a number again.
    ///
    /// # Errors
    ///
    /// The limit that the string exceeds.
    pub fn add_string(&mut self, id: i32, text: &str) -> Result<(), DecodeErrorKind> {
        let at = Cursor::new(&[]);
        if text.len() > Self::MAX_STRING_BYTES {
            let limit = Self::MAX_STRING_BYTES;
            return Err(at.over_limit(STRING, to_u64(text.len()), limit).kind);
        }
        self.registry
            .insert(&at, id, text)
            .map_err(|error| error.kind)
    }

    /// The string with this number.
    pub fn string(&self, id: i32) -> Option<&str> {
        self.registry.strings.text(id)
    }

    /// Returns the strings so far, with their numbers.
    pub fn strings(&self) -> impl Iterator<Item = (i32, &str)> {
        let unit = self.times.unit;
        let unit = (unit != TimeUnit::Nanoseconds).then(|| (UNIT_ID, unit.name()));
        self.registry.strings.iter().chain(unit)
    }

    /// The types that records may have.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Continues at this offset of another part of the stream. Errors contain such offsets.
    pub fn seek(&mut self, offset: usize) {
        self.offset = offset;
    }

    /// Returns the number of records in the chunk being filled.
    pub fn records(&self) -> u32 {
        self.chunk.records()
    }

    /// Returns the number of bytes taken from the stream.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns the approximate memory that is kept between calls.
    pub fn memory(&self) -> usize {
        let strings = self.registry.strings.memory();
        strings + self.chunk.memory()
    }

    /// Takes the chunk so far; `None` if it has no record.
    pub fn take_chunk(&mut self) -> Option<StreamChunk> {
        self.chunk.take()
    }

    fn item(
        &mut self,
        chunk: &mut KiekerChunk,
        input: &mut Cursor<'_>,
        until: i64,
    ) -> Result<(), Stop> {
        if let Some(own) = self.registry.message_id() {
            return self.message_item(chunk, own, input);
        }
        let mut after = input.clone();
        let first = i32::from_be_bytes(after.array(CLASS)?);
        if first == REGISTRATION && !self.is_apart {
            *input = after;
            return self.registration(input);
        }
        if until < i64::MAX {
            let timestamp = i64::from_be_bytes(after.array("a logging timestamp")?);
            let timestamp = self.times.unit.nanos(timestamp);
            if timestamp > until {
                return Err(Stop::Later(timestamp));
            }
        }
        self.record(chunk, input)
    }

    fn message_item(
        &mut self,
        chunk: &mut KiekerChunk,
        own: [u8; 8],
        input: &mut Cursor<'_>,
    ) -> Result<(), Stop> {
        const KIND: &str = "the kind of an item";
        let at = input.clone();
        let kind = input.u8(KIND)?;
        let found: [u8; 8] = input.array("the number of a registry")?;
        match kind {
            _ if found != own => {
                let kind = invalid(u64::from_be_bytes(found));
                Err(at.error("the number of a registry", kind).into())
            }
            MESSAGE_REGISTRATION => Ok(self.registry.take_string(input)?),
            MESSAGE_RECORD => self.record(chunk, input),
            other => Err(at.error(KIND, invalid(other)).into()),
        }
    }

    fn registration(&mut self, input: &mut Cursor<'_>) -> Result<(), Stop> {
        let (id, length) = head(input)?;
        let at = input.clone();
        if self.lengths == Lengths::Undecided {
            let known = (&self.registry.strings, &*self.catalog);
            self.lengths = lengths::decide(known, (id, length), input, self.is_ended)?;
        }
        let text = self.lengths.text(length, input)?;
        self.registry.insert(&at, id, text)?;
        Ok(())
    }

    fn record(&mut self, chunk: &mut KiekerChunk, input: &mut Cursor<'_>) -> Result<(), Stop> {
        let at = input.clone();
        let id = i32::from_be_bytes(input.array(CLASS)?);
        let Self {
            catalog,
            classes,
            registry,
            trace_key,
            times,
            ..
        } = self;
        let mut schema = None;
        chunk.record(|chunk| {
            let (bytes_before, string_bytes_before) = chunk.sizes();
            let has_nested = registry.message_id().is_some();
            let name = registry.find(&at, CLASS, id)?;
            if name.record_type == NO_TYPE {
                let settings = (*trace_key, has_nested);
                let class = class(catalog, name.string.text(), settings, &at)?;
                name.record_type = place(classes, class);
            }
            let number = name.record_type;
            let Some(class) = classes.get(to_usize(number)) else {
                return Err(at.error(CLASS, invalid(number)).into());
            };
            chunk.put_string(&mut name.string);
            copy_parts(chunk, registry, &class.parts, input)?;
            let (bytes, string_bytes) = chunk.sizes();
            let bytes = bytes - bytes_before;
            if bytes > Self::MAX_RECORD_BYTES {
                let limit = Self::MAX_RECORD_BYTES;
                return Err(Stop::from(at.over_limit("a record", to_u64(bytes), limit)));
            }
            let bytes = string_bytes - string_bytes_before;
            if bytes > Self::MAX_RECORD_STRING_BYTES {
                let limit = Self::MAX_RECORD_STRING_BYTES;
                let error = at.over_limit("the strings of a record", to_u64(bytes), limit);
                return Err(error.into());
            }
            if !class.is_kiekers {
                chunk.set_has_own_types();
            }
            schema = Some(&class.schema);
            Ok(())
        })?;
        if let Some(schema) = schema {
            let before = times.unit;
            times.convert(chunk, schema);
            if times.unit != before {
                registry.note(UNIT_ID, times.unit.name());
            }
        }
        Ok(())
    }

    /// Distinguishes an incomplete item from an impossible one.
    fn waiting(&self, stop: Stop, item: &Cursor<'_>) -> Result<StreamStep, DecodeError> {
        let error = match stop {
            Stop::Later(timestamp) => return Ok(StreamStep::Later(timestamp)),
            Stop::Unregistered(id, _) if self.is_apart => {
                return Ok(StreamStep::Registration(id));
            }
            Stop::Unregistered(_, error) | Stop::Broken(error) => error,
        };
        match error.kind {
            DecodeErrorKind::Ends { needed, .. } => {
                Ok(StreamStep::More(error.offset - item.offset() + needed))
            }
            _ => Err(error),
        }
    }
}

/// Returns the number of a class among the classes of the records so far.
#[cold]
fn place(classes: &mut Vec<StreamClass>, class: StreamClass) -> u32 {
    let is_it = |it: &StreamClass| Arc::ptr_eq(&it.schema, &class.schema);
    let known = classes.iter().position(is_it);
    let number = known.unwrap_or(classes.len());
    if known.is_none() {
        classes.push(class);
    }
    u32::try_from(number).unwrap_or(NO_TYPE)
}
