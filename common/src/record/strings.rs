//! The strings of one batch, each stored once.

use std::ops::Range;

use super::column::span;
use crate::number::to_usize;

/// The strings of one batch; a string's id is its position.
#[derive(Debug, Clone, Default)]
pub struct StringTable {
    text: String,
    ends: Vec<u32>,
    /// The keys of the strings, as far as they are known: one for each string, or fewer.
    keys: Vec<u64>,
}

impl PartialEq for StringTable {
    fn eq(&self, other: &Self) -> bool {
        self.ends == other.ends && self.text == other.text
    }
}

impl Eq for StringTable {}

impl StringTable {
    /// An empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty table with room for `strings` strings of `text_bytes` bytes together.
    pub fn with_capacity(strings: usize, text_bytes: usize) -> Self {
        Self {
            text: String::with_capacity(text_bytes),
            ends: Vec::with_capacity(strings),
            keys: Vec::new(),
        }
    }

    /// Cuts the text at these ends; `None` if a cut would split a character.
    pub(crate) fn from_parts(text: String, ends: Vec<u32>) -> Option<Self> {
        let mut before = 0;
        for end in &ends {
            let end = usize::try_from(*end).ok()?;
            if end < before || !text.is_char_boundary(end) {
                return None;
            }
            before = end;
        }
        (before == text.len()).then_some(Self {
            text,
            ends,
            keys: Vec::new(),
        })
    }

    /// Returns the number of its strings.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether it has no string.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the total UTF-8 bytes of its strings.
    pub fn text_bytes(&self) -> usize {
        self.text.len()
    }

    /// Returns the string with this id.
    ///
    /// A reader of many rows should collect [`StringTable::iter`] once instead: cutting a string
    /// out of the text costs more than finding it in a list.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&str> {
        self.text.get(self.span(id)?)
    }

    /// The bytes of the string with this id.
    pub(super) fn bytes(&self, id: u32) -> Option<&[u8]> {
        self.text.as_bytes().get(self.span(id)?)
    }

    #[inline]
    fn span(&self, id: u32) -> Option<Range<usize>> {
        let (from, to) = span(&self.ends, to_usize(id))?;
        Some(from..to)
    }

    /// The strings in order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        let mut from = 0;
        self.ends.iter().filter_map(move |end| {
            let to = usize::try_from(*end).ok()?;
            self.text.get(std::mem::replace(&mut from, to)..to)
        })
    }

    /// All strings, joined.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// The end of each string in the text; it starts at the end of the string before.
    pub(crate) fn ends(&self) -> &[u32] {
        &self.ends
    }

    /// Returns the key of each string. A string that comes to one builder repeatedly has the same
    /// key in all its batches; see [`StringKeys`](super::StringKeys). Empty if some keys are not
    /// known.
    pub(crate) fn keys(&self) -> &[u64] {
        match self.keys.len() == self.ends.len() {
            true => &self.keys,
            false => &[],
        }
    }

    /// As [`Self::push`], for a string with a known key.
    pub(super) fn push_with_key(&mut self, string: &str, key: u64) -> Option<u32> {
        let id = self.push(string)?;
        self.keys.push(key);
        Some(id)
    }

    /// Appends a string without checking for duplicates; `None` beyond 4 GiB of text.
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
        self.keys.clear();
    }
}
