//! Strings as words: what begins like an earlier string is not said again, words that the chunk
//! has already are numbers, hexadecimal digits are packed; FORMAT.md, "Strings".

use super::hex;
use super::known::{Known, MAX_NEW, Seen};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;
use crate::record::StringTable;

/// Heads of strings: digits, bytes as they are, and from here on as many bytes less are those of
/// an earlier string.
pub(super) const HEX: u64 = 0;
pub(super) const RAW: u64 = 1;
pub(super) const WORDS: u64 = 2;

/// Words: those below are spelled and have one byte more than their number says; then the one that
/// is among the well-known ones, and from here on those of this chunk.
pub(super) const TOKEN: u64 = 32;
pub(super) const OF_CHUNK: u64 = 33;

/// The most words that a chunk may number.
pub(super) const MAX_NUMBERED: usize = 1 << 16;

/// So many strings are always cut, however few records share them.
const FEW: usize = 256;

/// Writes string tables; keeps what it knows of their strings.
#[derive(Debug, Default)]
pub(super) struct Writer {
    known: Known,
    /// Counts the chunks, so that nothing has to be wiped between them; 0 means never.
    chunk: u32,
}

impl Writer {
    /// Appends the strings of so many records; stops, and says `false`, as soon as they would take
    /// `limit` bytes.
    pub(super) fn write(
        &mut self,
        strings: &StringTable,
        records: usize,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let limit = out.len().saturating_add(limit);
        self.known.expect(strings.len());
        self.chunk = self.chunk.wrapping_add(1);
        if self.chunk == 0 {
            // After four billion chunks the numbers begin anew.
            self.known = Known::default();
            self.chunk = 1;
        }
        // Strings that nearly every record has its own of are not worth remembering.
        let cut = if strings.len() <= FEW.max(records / 4) {
            MAX_NEW
        } else {
            0
        };
        varint::write(out, to_u64(strings.text_bytes()));
        let keys = strings.keys();
        let text = strings.text().as_bytes();
        let (mut from, mut words) = (0, 0);
        for (number, end) in strings.ends().iter().enumerate() {
            let to = to_usize((*end).into());
            let string = text.get(from..to).unwrap_or_default();
            from = to;
            let key = keys.and_then(|keys| keys.get(number)).copied();
            let written = write_hex(string, out)
                || number < cut && self.write_words(number, string, key, &mut words, out);
            if !written {
                varint::write(out, RAW);
                varint::write(out, to_u64(string.len()));
                out.extend_from_slice(string);
            }
            if out.len() >= limit {
                return false;
            }
        }
        true
    }

    /// Appends a string as words, unless it is too long.
    fn write_words(
        &mut self,
        number: usize,
        string: &[u8],
        key: Option<u64>,
        words_of_chunk: &mut u32,
        out: &mut Vec<u8>,
    ) -> bool {
        let key = key.unwrap_or_else(|| self.known.key(string));
        let room = MAX_NUMBERED.saturating_sub(to_usize((*words_of_chunk).into()));
        let steps = self.known.steps(string, key);
        let Some(steps) = steps.filter(|(from, to)| to - from <= room) else {
            return false;
        };
        let chunk = self.chunk;
        let this = u32::try_from(number).unwrap_or(u32::MAX);
        let (steps, beginnings, words) = self.known.parts(steps);
        let mut shared = None;
        let mut new = steps;
        while let Some((step, rest)) = new.split_first() {
            match beginnings.get(to_usize(step.beginning.into())) {
                Some(seen) if seen.chunk == chunk => shared = Some((step.end, seen.number)),
                _ => break,
            }
            new = rest;
        }
        match shared {
            None => varint::write(out, WORDS),
            Some((bytes, earlier)) => {
                varint::write(out, WORDS + u64::from(bytes));
                varint::write(out, this.wrapping_sub(earlier).into());
            }
        }
        varint::write(out, to_u64(new.len()));
        for step in new {
            if let Some(seen) = beginnings.get_mut(to_usize(step.beginning.into())) {
                *seen = Seen {
                    chunk,
                    number: this,
                };
            }
            let Some(word) = words.get_mut(to_usize(step.word.into())) else {
                continue;
            };
            if word.seen.chunk == chunk {
                varint::write(out, OF_CHUNK + u64::from(word.seen.number));
                continue;
            }
            word.seen = Seen {
                chunk,
                number: *words_of_chunk,
            };
            *words_of_chunk = words_of_chunk.wrapping_add(1);
            match (word.token, word.bytes.get(..usize::from(word.len))) {
                (Some(token), _) => out.extend(u8::try_from(TOKEN).ok().into_iter().chain([token])),
                (None, text) => {
                    out.push(word.len.wrapping_sub(1));
                    out.extend_from_slice(text.unwrap_or_default());
                }
            }
        }
        true
    }
}

/// Appends a string of hexadecimal digits; `false` if it is none.
fn write_hex(string: &[u8], out: &mut Vec<u8>) -> bool {
    // Most strings are none by their first byte.
    let first = string.first();
    if !first.is_some_and(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)) {
        return false;
    }
    let start = out.len();
    varint::write(out, HEX);
    varint::write(out, to_u64(string.len() / 2));
    let packed = hex::pack(string, out);
    if !packed {
        out.truncate(start);
    }
    packed
}
