//! The numbered strings of a sender or a log, and their limits.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use baler_common::container::cursor::Cursor;
use baler_common::container::{DecodeError, DecodeErrorKind};
use baler_common::number::{to_u64, to_usize};

use super::chunk::ChunkString;
use super::decode::invalid;

pub(super) const STRING: &str = "a registered string";
pub(super) const STRING_ID: &str = "a string id";

/// The most strings that a sender may register.
pub(super) const MAX_STRINGS: usize = 1 << 20;
/// The most bytes of one string.
pub(super) const MAX_STRING_BYTES: usize = 1 << 20;
/// The most memory that the registered strings of a sender may take, in bytes.
pub(super) const MAX_STRING_MEMORY: usize = 64 << 20;

/// The first word of a registration.
pub(super) const REGISTRATION: i32 = -1;

/// The strings of a sender by their ids.
#[derive(Debug, Default)]
pub(super) struct Registry {
    pub(super) strings: NumberedStrings,
    /// In messages of AMQP: the number of the sender's registry, which precedes each item.
    message_id: Option<[u8; 8]>,
    /// In messages of AMQP: the strings added since they were last taken.
    new: Vec<(i32, Arc<str>)>,
}

impl Registry {
    /// Creates the registry of a sender whose messages have this number.
    pub(super) fn of_messages(id: [u8; 8]) -> Self {
        Self {
            message_id: Some(id),
            ..Self::default()
        }
    }

    /// In messages of AMQP: the number that precedes each item.
    pub(super) fn message_id(&self) -> Option<[u8; 8]> {
        self.message_id
    }

    /// Returns the string with an id.
    #[inline]
    pub(super) fn find(
        &mut self,
        at: &Cursor<'_>,
        reading: &'static str,
        id: i32,
    ) -> Result<&mut NumberedString, Stop> {
        self.strings
            .get_mut(id)
            .ok_or_else(|| unregistered(at, reading, id))
    }

    /// In messages of AMQP: returns the strings added since the last call.
    pub(super) fn take_new(&mut self) -> Vec<(i32, Arc<str>)> {
        mem::take(&mut self.new)
    }

    /// Adds a string that was read here. An id may be assigned again.
    pub(super) fn insert(
        &mut self,
        at: &Cursor<'_>,
        id: i32,
        text: &str,
    ) -> Result<(), DecodeError> {
        if self.strings.text(id) == Some(text) {
            return Ok(());
        }
        let (strings, memory) = self.strings.sizes_with(id, text);
        if strings > MAX_STRINGS {
            return Err(at.over_limit("the number of strings", to_u64(strings), MAX_STRINGS));
        }
        if memory > MAX_STRING_MEMORY {
            let limit = MAX_STRING_MEMORY;
            return Err(at.over_limit("the memory of the strings", to_u64(memory), limit));
        }
        let text = self.strings.insert(id, text);
        self.note(id, text);
        Ok(())
    }

    /// In messages of AMQP: adds a string to those that a later reader needs.
    pub(super) fn note(&mut self, id: i32, text: impl Into<Arc<str>>) {
        if self.message_id.is_some() {
            self.new.push((id, text.into()));
        }
    }

    /// Takes the registrations that Kieker 1.14 and later put into a record, each before the first
    /// id of its string. No id begins with the first byte of a registration.
    #[inline(never)]
    pub(super) fn take_nested(&mut self, input: &mut Cursor<'_>) -> Result<(), DecodeError> {
        let Some(own) = self.message_id else {
            return Ok(());
        };
        while input.clone().take(1, STRING_ID)? == [MESSAGE_REGISTRATION] {
            input.take(1, STRING_ID)?;
            let at = input.clone();
            let found = input.array("the number of a registry")?;
            if found != own {
                let kind = invalid(u64::from_be_bytes(found));
                return Err(at.error("the number of a registry", kind));
            }
            self.take_string(input)?;
        }
        Ok(())
    }

    /// Takes id, length in bytes and text of a string.
    pub(super) fn take_string(&mut self, input: &mut Cursor<'_>) -> Result<(), DecodeError> {
        let (id, length) = head(input)?;
        let at = input.clone();
        let text = std::str::from_utf8(input.take(length, STRING)?);
        let text = text.map_err(|_| at.error(STRING, DecodeErrorKind::Utf8))?;
        self.insert(&at, id, text)
    }
}

/// The first byte of a registration in a message.
pub(super) const MESSAGE_REGISTRATION: u8 = 0xff;

/// The first byte of a record in a message.
pub(super) const MESSAGE_RECORD: u8 = 0x01;

/// The reason why an item was not taken.
pub(super) enum Stop {
    /// The record's logging timestamp is after the one given.
    Later(i64),
    /// No string has this id. That is an error, unless registrations come over a socket of their
    /// own.
    Unregistered(i32, DecodeError),
    Broken(DecodeError),
}

impl From<DecodeError> for Stop {
    fn from(error: DecodeError) -> Self {
        Self::Broken(error)
    }
}

/// Reads the id and the length of a registration.
pub(super) fn head(input: &mut Cursor<'_>) -> Result<(i32, usize), DecodeError> {
    const LENGTH: &str = "the length of a string";
    let at = input.clone();
    let id = i32::from_be_bytes(input.array("the id of a string")?);
    if id < 0 {
        return Err(at.error("the id of a string", invalid(bits(id))));
    }
    let at = input.clone();
    let length = to_usize(u32::from_be_bytes(input.array(LENGTH)?));
    if length > MAX_STRING_BYTES {
        return Err(at.over_limit(LENGTH, to_u64(length), MAX_STRING_BYTES));
    }
    Ok((id, length))
}

/// Returns the error that no string has this id.
#[cold]
pub(super) fn unregistered(at: &Cursor<'_>, reading: &'static str, id: i32) -> Stop {
    let error = at.error(reading, invalid(bits(id)));
    if id < 0 {
        return Stop::Broken(error);
    }
    Stop::Unregistered(id, error)
}

pub(super) fn bits(id: i32) -> u32 {
    u32::from_be_bytes(id.to_be_bytes())
}

/// The type of a string that was never the class of a record.
pub(super) const NO_TYPE: u32 = u32::MAX;

/// The memory of a string beside its bytes: two slots, and the head of the text.
pub(super) const STRING_OVERHEAD: usize = 96;

/// An id may be this far above the number of strings and still be in the list.
const SPARE_IDS: usize = 512;

/// Strings by the number that their sender assigned. Dense numbers are in a list, others in a map.
/// All known senders assign dense numbers.
#[derive(Debug, Default)]
pub(super) struct NumberedStrings {
    dense: Vec<Option<NumberedString>>,
    sparse: HashMap<i32, NumberedString>,
    count: usize,
    memory: usize,
}

/// A registered string.
#[derive(Debug)]
pub(super) struct NumberedString {
    pub(super) string: ChunkString,
    /// The number of the type with that name in its stream, after a record had it.
    pub(super) record_type: u32,
}

impl NumberedStrings {
    #[inline]
    pub(super) fn get_mut(&mut self, id: i32) -> Option<&mut NumberedString> {
        match self.dense.get_mut(place(id)) {
            Some(Some(string)) => Some(string),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get_mut(&id),
        }
    }

    pub(super) fn text(&self, id: i32) -> Option<&str> {
        let string = match self.dense.get(place(id)) {
            Some(Some(string)) => Some(string),
            _ => self.sparse.get(&id),
        };
        string.map(|it| &**it.string.text())
    }

    /// Returns all strings with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &str)> {
        let dense = (0_i32..).zip(&self.dense);
        let dense = dense.filter_map(|(id, string)| Some((id, string.as_ref()?)));
        let sparse = self.sparse.iter().map(|(id, string)| (*id, string));
        dense
            .chain(sparse)
            .map(|(id, it)| (id, &**it.string.text()))
    }

    /// Returns the number of strings and their memory after adding this one.
    fn sizes_with(&self, id: i32, text: &str) -> (usize, usize) {
        let with_new = self.memory + memory(text);
        match self.text(id) {
            Some(old) => (self.count, with_new - memory(old)),
            None => (self.count + 1, with_new),
        }
    }

    /// Adds a string, or assigns a number again; returns the string.
    pub(super) fn insert(&mut self, id: i32, text: &str) -> Arc<str> {
        (self.count, self.memory) = self.sizes_with(id, text);
        let new = NumberedString {
            string: ChunkString::new(text),
            record_type: NO_TYPE,
        };
        let text = Arc::clone(new.string.text());
        if let Some(old) = self.get_mut(id) {
            drop(mem::replace(old, new));
            return text;
        }
        let place = place(id);
        if place >= self.count * 2 + SPARE_IDS {
            self.sparse.insert(id, new);
            return text;
        }
        if place >= self.dense.len() {
            self.dense.resize_with(place + 1, || None);
        }
        if let Some(slot) = self.dense.get_mut(place) {
            *slot = Some(new);
        }
        text
    }

    pub(super) fn memory(&self) -> usize {
        self.memory
    }
}

/// Returns the place of an id in the list. A negative id is beyond every list.
fn place(id: i32) -> usize {
    to_usize(bits(id))
}

fn memory(text: &str) -> usize {
    text.len() + STRING_OVERHEAD
}
