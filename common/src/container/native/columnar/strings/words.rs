//! Strings as words: a string names the beginning that it shares with an earlier string of its
//! chunk, and a word that the chunk already has is a number; FORMAT.md, "Strings".

use std::collections::HashMap;

use super::tokens::{TOKENS, is_hex_digit, pack_hex, split_words};
use crate::container::varint;
use crate::number::{to_u64, to_usize};
use crate::record::{StringKeys, StringTable};

/// Heads of strings: digits, plain bytes, and from `WORDS` on the number of bytes shared with an
/// earlier string, plus `WORDS`.
pub(super) const HEX: u64 = 0;
pub(super) const RAW: u64 = 1;
pub(super) const WORDS: u64 = 2;

/// Heads of words: below `TOKEN` the word is spelled, and has one byte more than the head says.
/// `TOKEN` stands for a well-known word, and `OF_CHUNK` and above for the words of this chunk.
pub(super) const TOKEN: u64 = 32;
pub(super) const OF_CHUNK: u64 = 33;

/// The most words that a chunk may number.
pub(super) const MAX_NUMBERED: usize = 1 << 16;

/// The number of remembered keys.
const SEEN: usize = 1 << 12;

/// The most strings that one chunk may add to the remembered ones.
const MAX_NEW: usize = 2_048;

/// The number of remembered strings. If a chunk might exceed it, all are forgotten.
const MAX_STRINGS: usize = 4 * MAX_NEW;

/// The longest string that is cut, in bytes and in words.
const MAX_BYTES: usize = 1_024;
const MAX_WORDS: usize = 128;

/// Writes string tables. Remembers how it cut strings, because the next chunk has mostly the same
/// ones.
///
/// It cuts strings that come again: in several records of the chunk on average, or in several
/// chunks. Cutting takes a hundred times as long as copying, and the other strings, such as texts,
/// are smaller with zstd:1 if they are not cut. A largest number of strings as the only rule made
/// larger chunks take more bytes a record.
#[derive(Debug, Default)]
pub(super) struct Writer {
    cuts: Cuts,
    /// Counts chunks, so that nothing must be cleared between them. 0 means never.
    chunk: u32,
    /// The number of words that this chunk has numbered.
    numbered: u32,
    /// Keys of strings of the last chunks, each in the place of its lowest bits.
    seen: Vec<u64>,
}

impl Writer {
    /// Appends the strings of a batch with `records` records. Stops and returns `false` as soon as
    /// they take `limit` bytes; `out` then contains some of them.
    pub(super) fn write(
        &mut self,
        strings: &StringTable,
        records: usize,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        self.begin(strings.len());
        let all_repeat = strings.len() <= records / 4;
        let keys = strings.keys();
        let text = strings.text().as_bytes();
        let start = out.len();
        varint::write(out, to_u64(text.len()));
        let mut from = 0;
        for (number, end) in (0..).zip(strings.ends()) {
            let to = to_usize(*end);
            let Some(string) = text.get(from..to) else {
                return false;
            };
            from = to;
            let at = to_usize(number);
            let key = keys.get(at).copied();
            let is_cut = at < MAX_NEW && (all_repeat || self.comes_again(key));
            let interned = key.and_then(StringKeys::interned);
            self.write_string(number, string, interned, is_cut, out);
            if out.len() - start >= limit {
                return false;
            }
        }
        true
    }

    fn begin(&mut self, strings: usize) {
        let is_full = self.cuts.strings.len() + strings.min(MAX_NEW) > MAX_STRINGS;
        if is_full || self.chunk == u32::MAX {
            *self = Self::default();
        }
        self.seen.resize(SEEN, 0);
        self.chunk += 1;
        self.numbered = 0;
    }

    /// Whether the string with this key is interned, or came in one of the last chunks.
    fn comes_again(&mut self, key: Option<u64>) -> bool {
        let Some(key) = key else {
            return false;
        };
        let seen = self.seen.get_mut(to_usize(key) % SEEN);
        let came = seen.is_some_and(|seen| std::mem::replace(seen, key) == key);
        came || StringKeys::interned(key).is_some()
    }

    fn write_string(
        &mut self,
        number: u32,
        string: &[u8],
        interned: Option<u32>,
        is_cut: bool,
        out: &mut Vec<u8>,
    ) {
        let known = interned.and_then(|interned| self.cuts.interned(interned));
        if known.is_none() && write_hex(string, out) {
            return;
        }
        if is_cut {
            let cut = known.or_else(|| self.cuts.find(string, interned));
            if cut.is_some_and(|cut| self.write_words(number, cut, out)) {
                return;
            }
        }
        varint::write(out, RAW);
        varint::write(out, to_u64(string.len()));
        out.extend_from_slice(string);
    }

    /// Appends a string as words. Returns `false`, and appends nothing, if the chunk would get too
    /// many numbered words.
    fn write_words(&mut self, number: u32, cut: Cut, out: &mut Vec<u8>) -> bool {
        let cuts = &mut self.cuts;
        let Some(steps) = cuts.steps.get(cut.from..cut.to) else {
            return false;
        };
        let (mut shared_words, mut shared_bytes, mut distance) = (0, 0, 0);
        for (words, step) in (1..).zip(steps) {
            if let Some(beginning) = cuts.beginnings.get_mut(step.beginning) {
                if beginning.chunk == self.chunk {
                    (shared_words, shared_bytes) = (words, beginning.bytes);
                    distance = number - beginning.string;
                }
                (beginning.chunk, beginning.string) = (self.chunk, number);
            }
        }
        let steps = match steps.get(shared_words..) {
            Some(steps) if to_usize(self.numbered) + steps.len() <= MAX_NUMBERED => steps,
            _ => return false,
        };
        varint::write(out, WORDS + to_u64(shared_bytes));
        if shared_words > 0 {
            varint::write(out, distance.into());
        }
        varint::write(out, to_u64(steps.len()));
        for step in steps {
            let Some(word) = cuts.words.get_mut(step.word) else {
                continue;
            };
            if word.chunk == self.chunk {
                varint::write(out, OF_CHUNK + u64::from(word.number));
            } else {
                out.extend_from_slice(&word.spelled);
                (word.chunk, word.number) = (self.chunk, self.numbered);
                self.numbered += 1;
            }
        }
        true
    }
}

/// Appends a string of hexadecimal digits. Returns `false`, and appends nothing, if it is not one.
fn write_hex(string: &[u8], out: &mut Vec<u8>) -> bool {
    // The first byte of most strings is no digit.
    if !string.first().is_some_and(|byte| is_hex_digit(*byte)) {
        return false;
    }
    let start = out.len();
    varint::write(out, HEX);
    varint::write(out, to_u64(string.len() / 2));
    let from = out.len();
    out.resize(from + string.len() / 2, 0);
    let is_hex = out.get_mut(from..).is_some_and(|to| pack_hex(string, to));
    if !is_hex {
        out.truncate(start);
    }
    is_hex
}

/// Strings that were cut into words.
#[derive(Debug, Default)]
struct Cuts {
    /// Indexed by the number of an interned string.
    interned: Vec<Option<Cut>>,
    strings: HashMap<Box<[u8]>, Cut>,
    steps: Vec<Step>,
    words: Vec<Word>,
    word_numbers: HashMap<Box<[u8]>, usize>,
    beginnings: Vec<Beginning>,
    /// Finds the beginning that is longer than another one by one word.
    longer: HashMap<(Option<usize>, usize), usize>,
}

/// The range of a string's steps.
#[derive(Debug, Clone, Copy)]
struct Cut {
    from: usize,
    to: usize,
}

/// One more word of a string.
#[derive(Debug, Clone, Copy)]
struct Step {
    word: usize,
    /// The string up to the end of the word.
    beginning: usize,
}

#[derive(Debug)]
struct Word {
    /// The word's form at its first use in a chunk.
    spelled: Box<[u8]>,
    /// The last chunk that contained it, and its number there.
    chunk: u32,
    number: u32,
}

/// A sequence of words at the beginning of strings.
#[derive(Debug)]
struct Beginning {
    bytes: usize,
    /// The last chunk that contained it, and the last string there with this beginning.
    chunk: u32,
    string: u32,
}

impl Cuts {
    fn interned(&self, interned: u32) -> Option<Cut> {
        *self.interned.get(to_usize(interned))?
    }

    /// Returns the words of a string, and cuts it if it is new. `None` if it is too long.
    fn find(&mut self, string: &[u8], interned: Option<u32>) -> Option<Cut> {
        let cut = match self.strings.get(string) {
            Some(cut) => *cut,
            None => self.add(string)?,
        };
        if let Some(interned) = interned {
            let at = to_usize(interned);
            if self.interned.len() <= at {
                // At most as many as the process has interned.
                self.interned.resize(at + 1, None);
            }
            if let Some(place) = self.interned.get_mut(at) {
                *place = Some(cut);
            }
        }
        Some(cut)
    }

    fn add(&mut self, string: &[u8]) -> Option<Cut> {
        let mut words = Vec::new();
        if string.len() <= MAX_BYTES {
            split_words(string, |word| words.push(word));
        }
        if words.is_empty() || words.len() > MAX_WORDS {
            return None;
        }
        let from = self.steps.len();
        let (mut before, mut bytes) = (None, 0);
        for word in words {
            bytes += word.len();
            let word = self.word(word);
            let new = self.beginnings.len();
            let beginning = *self.longer.entry((before, word)).or_insert(new);
            if beginning == new {
                self.beginnings.push(Beginning {
                    bytes,
                    chunk: 0,
                    string: 0,
                });
            }
            self.steps.push(Step { word, beginning });
            before = Some(beginning);
        }
        let to = self.steps.len();
        let cut = Cut { from, to };
        self.strings.insert(string.into(), cut);
        Some(cut)
    }

    /// Returns the position of a word, and adds it if it is new.
    fn word(&mut self, text: &[u8]) -> usize {
        if let Some(at) = self.word_numbers.get(text) {
            return *at;
        }
        let token = TOKENS.iter().position(|token| token.as_bytes() == text);
        let token = token.and_then(|token| u8::try_from(token).ok());
        let (head, bytes) = match &token {
            Some(token) => (TOKEN, std::slice::from_ref(token)),
            // A word has one byte more than its head says.
            None => (to_u64(text.len()).wrapping_sub(1), text),
        };
        let mut spelled = Vec::with_capacity(1 + bytes.len());
        varint::write(&mut spelled, head);
        spelled.extend_from_slice(bytes);
        let at = self.words.len();
        self.words.push(Word {
            spelled: spelled.into(),
            chunk: 0,
            number: 0,
        });
        self.word_numbers.insert(text.into(), at);
        at
    }
}

/// Positions in the texts of chunks have 32 bits, and limits keep both sizes below.
pub(super) fn short(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
