//! Strings as words: what begins like an earlier string is not said again, words that the chunk
//! has already are numbers, hexadecimal digits are packed; FORMAT.md, "Strings".

use std::mem;

use super::beginnings::Found;
use super::hex;
use super::known::{Known, MAX_NEW, MAX_WORDS, Parts, SPELLED_BLOCK, WORD_ROOM, Written, short};
use super::room::Room;
use super::split::Digits;
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

/// So few strings take no time worth speaking of.
const FEW_TO_SPELL: usize = 12;

/// Writes string tables; keeps what it knows of their strings.
#[derive(Debug)]
pub(super) struct Writer {
    known: Known,
    /// What is known of strings whose numbers are cut in the other way.
    known_otherwise: Known,
    /// Counts the chunks, so that nothing has to be wiped between them; 0 means never.
    chunk: u32,
    /// How many more words the chunk may number; whether it has so many strings that this may not be
    /// enough.
    words_left: u32,
    is_long: bool,
    /// Whether short words are spelled again and again.
    is_coarse: bool,
    /// Whether they never are.
    is_thorough: bool,
    text: Room,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            known: Known::new(Digits::Together),
            known_otherwise: Known::new(Digits::Apart),
            chunk: 0,
            words_left: 0,
            is_long: false,
            is_coarse: false,
            is_thorough: false,
            text: Room::default(),
        }
    }
}

impl Writer {
    /// Whether every word that comes again is a number, however long finding it takes.
    pub(super) fn set_thorough(&mut self, is_thorough: bool) {
        self.is_thorough = is_thorough;
    }

    /// Appends the strings of so many records; stops, and says `false`, as soon as they would take
    /// `limit` bytes.
    pub(super) fn write(
        &mut self,
        strings: &StringTable,
        records: usize,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        self.chunk = self.chunk.checked_add(1).unwrap_or_else(|| {
            // After four billion chunks the numbers begin anew.
            *self = Self {
                is_thorough: self.is_thorough,
                ..Self::default()
            };
            1
        });
        self.words_left = short(MAX_NUMBERED);
        self.is_long = strings.len() > MAX_NUMBERED / MAX_WORDS;
        // Where there are few records to a string, the strings take most of the time.
        let few_records = strings.len().saturating_mul(4) > records;
        self.is_coarse = !self.is_thorough && few_records && strings.len() > FEW_TO_SPELL;
        self.begin(strings.len());
        // Strings that nearly every record has its own of are not worth remembering.
        let cut = if strings.len() <= FEW.max(records / 4) {
            MAX_NEW
        } else {
            0
        };
        let keys = strings.keys().unwrap_or_default();
        let text = strings.text().as_bytes();
        self.text.make(varint::MAX_BYTES);
        self.text.varint(to_u64(text.len()));
        let mut from = 0;
        for (number, end) in (0..).zip(strings.ends()) {
            let at = to_usize(number.into());
            let to = to_usize((*end).into());
            let key = keys.get(at).copied();
            // The text of most strings need not even be looked at.
            let known = key.and_then(|key| self.known.interned(key));
            let known = known.filter(|_| at < cut);
            if known.is_none_or(|known| !self.write_words(number, known)) {
                let string = text.get(from..to).unwrap_or_default();
                self.write_text(number, string, key, at < cut);
            }
            from = to;
            if self.text.filled >= limit {
                return false;
            }
        }
        out.extend_from_slice(self.text.written());
        true
    }

    /// Begins a chunk of so many strings.
    fn begin(&mut self, strings: usize) {
        let digits = if self.is_coarse {
            Digits::Together
        } else {
            Digits::Apart
        };
        if self.known.digits() != digits {
            mem::swap(&mut self.known, &mut self.known_otherwise);
        }
        self.known.begin(strings);
        self.text.filled = 0;
    }

    /// Appends a string that is not known as an interned one.
    #[inline(never)]
    fn write_text(&mut self, number: u32, string: &[u8], key: Option<u64>, is_cut: bool) {
        self.text.make(string.len() + 2 * varint::MAX_BYTES);
        // Most strings are no digits by their first byte.
        let may_be_hex = string.first().is_some_and(|byte| hex::is_digit(*byte));
        if may_be_hex && self.text.hex(string) {
            return;
        }
        let known = if is_cut {
            self.known.cut(string, key)
        } else {
            None
        };
        if known.is_none_or(|known| !self.write_words(number, known)) {
            self.text.varint(RAW);
            self.text.bytes(string);
        }
    }

    /// Appends a string as words; `false`, and nothing, if there would be too many of them.
    #[inline(always)]
    fn write_words(&mut self, number: u32, string: u32) -> bool {
        if self.is_long && self.has_too_many_words(string) {
            return false;
        }
        let found = self.known.share(string, number);
        if self.is_coarse
            && let Some(found) = found
            && self.text.run(found, self.known.spelled())
        {
            self.words_left -= u32::from(found.behind.words);
            return true;
        }
        self.write_new(found, string)
    }

    #[cold]
    fn has_too_many_words(&self, string: u32) -> bool {
        let words = self.known.words(string);
        words.is_none_or(|words| words > self.words_left)
    }

    /// Appends the words of a string that an earlier one does not share.
    #[inline(never)]
    fn write_new(&mut self, found: Option<Found>, string: u32) -> bool {
        let shared = self.known.shared(found);
        let skipped = shared.map_or(0, |shared| shared.words);
        let Parts {
            steps,
            spelled,
            words,
            written,
        } = self.known.parts(string, skipped);
        self.text
            .make((steps.len() + 1) * WORD_ROOM + 3 * varint::MAX_BYTES + SPELLED_BLOCK);
        self.text.head(shared, steps.len());
        let chunk = self.chunk;
        let mut room = self.text.left();
        let mut filled = 0;
        let mut numbered = short(MAX_NUMBERED) - self.words_left;
        let mut left = steps.iter();
        while let Some(step) = left.next() {
            let bytes = if self.is_coarse && step.short > 0 {
                let more = to_usize(step.short.into()) - 1;
                left = left.as_slice().get(more..).unwrap_or_default().iter();
                let (from, to) = (step.spelled, step.short_to);
                let (from, to) = (to_usize(from.into()), to_usize(to.into()));
                copy(spelled.get(from..).unwrap_or_default(), to - from, room);
                numbered += step.short;
                to - from
            } else {
                let word = to_usize(step.word.into());
                let to = room.first_chunk_mut::<WORD_ROOM>();
                let Some((written, to)) = written.get_mut(word).zip(to) else {
                    break;
                };
                if written.chunk == chunk {
                    let [code @ .., bytes] = written.again.to_le_bytes();
                    if let Some(to) = to.first_chunk_mut() {
                        *to = code;
                    }
                    usize::from(bytes)
                } else {
                    let Some(word) = words.get(word) else {
                        break;
                    };
                    *to = word.new;
                    *written = Written {
                        chunk,
                        again: again(numbered),
                    };
                    numbered += 1;
                    to_usize(word.new_bytes.into())
                }
            };
            filled += bytes;
            room = room.get_mut(bytes..).unwrap_or_default();
        }
        self.words_left = short(MAX_NUMBERED).saturating_sub(numbered);
        self.text.filled += filled;
        true
    }
}

/// Copies so many bytes, or a few more: by blocks, of which there is seldom more than one.
#[inline]
fn copy(mut from: &[u8], bytes: usize, mut to: &mut [u8]) {
    let mut copied = 0;
    while copied < bytes {
        let Some((block, from_rest)) = from.split_first_chunk::<SPELLED_BLOCK>() else {
            break;
        };
        let Some((place, to_rest)) = to.split_first_chunk_mut() else {
            break;
        };
        *place = *block;
        (from, to) = (from_rest, to_rest);
        copied += SPELLED_BLOCK;
    }
}

/// How a word is written for a second time that so many were new before: a number of up to three
/// bytes and, in the fourth, how many they are.
fn again(before: u32) -> u32 {
    let number = OF_CHUNK + u64::from(before);
    let [low, middle, high] = [0, 7, 14].map(|shift| number >> shift & 0x7f);
    let code = match number {
        0..0x80 => low | 1 << 24,
        0x80..0x4000 => low | 0x80 | middle << 8 | 2 << 24,
        _ => low | 0x80 | (middle | 0x80) << 8 | high << 16 | 3 << 24,
    };
    // No number is so large that it could fill the fourth byte.
    u32::try_from(code).unwrap_or(0)
}
