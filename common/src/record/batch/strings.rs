//! The strings of one batch, each kept once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::record::intern::Interned;

/// The strings of one batch; a string's id is its position.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StringTable {
    text: String,
    ends: Vec<u32>,
}

impl StringTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table with room for so many strings of so many bytes together.
    pub fn with_capacity(strings: usize, text_bytes: usize) -> Self {
        Self {
            text: String::with_capacity(text_bytes),
            ends: Vec::with_capacity(strings),
        }
    }

    /// How many strings it has.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no string.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many bytes of UTF-8 its strings have together.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// The string with this id.
    pub fn get(&self, id: u32) -> Option<&str> {
        let index = usize::try_from(id).ok()?;
        let to = usize::try_from(*self.ends.get(index)?).ok()?;
        let from = match index.checked_sub(1) {
            Some(before) => usize::try_from(*self.ends.get(before)?).ok()?,
            None => 0,
        };
        self.text.get(from..to)
    }

    /// The strings in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        (0..self.ends.len()).filter_map(|id| self.get(u32::try_from(id).ok()?))
    }

    /// Appends a string without looking whether it is there; `None` beyond 4 GiB of text.
    pub fn push(&mut self, string: &str) -> Option<u32> {
        let id = u32::try_from(self.ends.len()).ok()?;
        let end = u32::try_from(self.text.len().checked_add(string.len())?).ok()?;
        self.text.push_str(string);
        self.ends.push(end);
        Some(id)
    }

    /// Removes every string, keeping the memory.
    pub fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }
}

/// Finds the ids of strings while a batch is filled.
#[derive(Debug, Default)]
pub(super) struct StringIndex {
    ids: HashMap<Box<str>, u32>,
    /// By number of the interned string: its id + 1 in this batch, or 0.
    interned: Vec<u32>,
}

impl StringIndex {
    pub(super) fn id(&mut self, string: &str, table: &mut StringTable) -> Option<u32> {
        if let Some(id) = self.ids.get(string) {
            return Some(*id);
        }
        let id = table.push(string)?;
        self.ids.insert(string.into(), id);
        Some(id)
    }

    /// Looks an interned string up without hashing it, once it was seen in this batch.
    pub(super) fn interned_id(&mut self, handle: Interned, table: &mut StringTable) -> Option<u32> {
        let number = usize::try_from(handle.number()).ok()?;
        if let Some(known) = self
            .interned
            .get(number)
            .and_then(|known| known.checked_sub(1))
        {
            return Some(known);
        }
        let string = handle.as_str();
        let id = match self.ids.entry(string.into()) {
            Entry::Occupied(entry) => *entry.get(),
            Entry::Vacant(entry) => *entry.insert(table.push(string)?),
        };
        if self.interned.len() <= number {
            self.interned.resize(number + 1, 0);
        }
        if let Some(slot) = self.interned.get_mut(number) {
            *slot = id.checked_add(1)?;
        }
        Some(id)
    }

    pub(super) fn clear(&mut self) {
        self.ids.clear();
        self.interned.clear();
    }
}
