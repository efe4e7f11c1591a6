//! The strings that a sender or a log has numbered.

use std::collections::HashMap;
use std::mem;
use std::sync::Arc;

use super::chunk::ChunkString;

/// The type of a string that no record had as its class.
pub(super) const NO_TYPE: u32 = u32::MAX;

/// The memory that a string takes beside its bytes: two places, and the head of the text.
pub(super) const STRING_OVERHEAD: usize = 96;

/// How far ids may be ahead of the number of strings and still find their place in the list.
const SPARE_IDS: usize = 512;

/// Strings by the number that their sender gave them: in a list where the numbers are dense, as
/// those of every known sender are, and otherwise in a map.
#[derive(Debug, Default)]
pub(super) struct NumberedStrings {
    dense: Vec<Option<NumberedString>>,
    sparse: HashMap<i32, NumberedString>,
    count: usize,
    memory: usize,
}

/// A string that was registered.
#[derive(Debug)]
pub(super) struct NumberedString {
    pub(super) string: ChunkString,
    /// The number of the type of that name in its stream, once a record had it.
    pub(super) record_type: u32,
}

impl NumberedStrings {
    #[inline]
    pub(super) fn get_mut(&mut self, id: i32) -> Option<&mut NumberedString> {
        let place = usize::try_from(id).unwrap_or(usize::MAX);
        match self.dense.get_mut(place) {
            Some(Some(string)) => Some(string),
            _ if self.sparse.is_empty() => None,
            _ => self.sparse.get_mut(&id),
        }
    }

    pub(super) fn text(&self, id: i32) -> Option<&str> {
        let place = usize::try_from(id).unwrap_or(usize::MAX);
        let string = match self.dense.get(place) {
            Some(Some(string)) => Some(string),
            _ => self.sparse.get(&id),
        };
        string.map(|it| &**it.string.text())
    }

    /// All strings with their numbers.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i32, &str)> {
        let dense = (0_i32..).zip(&self.dense);
        let dense = dense.filter_map(|(id, string)| Some((id, string.as_ref()?)));
        let sparse = self.sparse.iter().map(|(id, string)| (*id, string));
        dense
            .chain(sparse)
            .map(|(id, it)| (id, &**it.string.text()))
    }

    /// How many strings there are, and the memory that they take, once this one is added.
    pub(super) fn sizes_with(&self, id: i32, text: &str) -> (usize, usize) {
        let old = self.text(id).map(memory);
        let count = self.count.saturating_add(usize::from(old.is_none()));
        let with_new = self.memory.saturating_add(memory(text));
        (count, with_new.saturating_sub(old.unwrap_or(0)))
    }

    /// Adds a string, or gives a number anew; returns the string.
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
        let place = usize::try_from(id).unwrap_or(usize::MAX);
        if place >= self.count.saturating_mul(2).saturating_add(SPARE_IDS) {
            self.sparse.insert(id, new);
            return text;
        }
        if place >= self.dense.len() {
            self.dense.resize_with(place.saturating_add(1), || None);
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

fn memory(text: &str) -> usize {
    text.len().saturating_add(STRING_OVERHEAD)
}
