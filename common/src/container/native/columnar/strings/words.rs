//! Strings as words: what begins like an earlier string is not said again, words that the chunk
//! has already are numbers, hexadecimal digits are packed; FORMAT.md, "Strings".

use super::hex;
use super::known::{Known, MAX_NEW, Parts, Seen, WORD_ROOM};
use super::room::Room;
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;
use crate::record::{StringKeys, StringTable};

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
#[derive(Debug, Default)]
pub(super) struct Writer {
    known: Known,
    /// Counts the chunks, so that nothing has to be wiped between them; 0 means never.
    chunk: u32,
    /// How many words the chunk has numbered so far.
    words: u32,
    /// Whether short words are spelled again and again.
    is_coarse: bool,
    text: Room,
    /// Nothing but a reason to look at memory.
    looked_at: u8,
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
        self.known.expect(strings.len());
        self.chunk = self.chunk.wrapping_add(1);
        if self.chunk == 0 {
            // After four billion chunks the numbers begin anew.
            self.known = Known::default();
            self.chunk = 1;
        }
        self.words = 0;
        // Where there are few records to a string, the strings take most of the time.
        let few_records = strings.len().saturating_mul(4) > records;
        self.is_coarse = few_records && strings.len() > FEW_TO_SPELL;
        self.text.filled = 0;
        // Strings that nearly every record has its own of are not worth remembering.
        let cut = if strings.len() <= FEW.max(records / 4) {
            MAX_NEW
        } else {
            0
        };
        let keys = strings.keys().unwrap_or_default();
        let text = strings.text().as_bytes();
        self.look_at(strings.ends(), keys, text);
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
            if known.is_none_or(|steps| !self.write_words(number, steps)) {
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

    /// Looks at the text of all strings that are no interned ones, before the first string is
    /// written: what comes from afar in memory is then waited for together.
    fn look_at(&mut self, ends: &[u32], keys: &[u64], text: &[u8]) {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        for (start, key) in starts.zip(keys) {
            if StringKeys::interned(*key).is_none() {
                let first = text.get(to_usize(start.into()));
                self.looked_at ^= first.copied().unwrap_or(0);
            }
        }
    }

    /// Appends a string that is not known as an interned one.
    fn write_text(&mut self, number: u32, string: &[u8], key: Option<u64>, is_cut: bool) {
        self.text.make(string.len() + 2 * varint::MAX_BYTES);
        // Most strings are no digits by their first byte.
        let may_be_hex = string.first().is_some_and(|byte| hex::is_digit(*byte));
        if may_be_hex && self.text.hex(string) {
            return;
        }
        let steps = if is_cut {
            self.known.steps(string, key)
        } else {
            None
        };
        if steps.is_none_or(|steps| !self.write_words(number, steps)) {
            self.text.varint(RAW);
            self.text.bytes(string);
        }
    }

    /// Appends a string as words; `false`, and nothing, if there would be too many of them.
    fn write_words(&mut self, number: u32, (from, to): (u32, u32)) -> bool {
        let (from, to) = (to_usize(from.into()), to_usize(to.into()));
        if to - from > MAX_NUMBERED.saturating_sub(to_usize(self.words.into())) {
            return false;
        }
        let Parts {
            steps,
            spelled,
            beginnings,
            words,
        } = self.known.parts((from, to));
        self.text
            .make((steps.len() + 1) * WORD_ROOM + 3 * varint::MAX_BYTES);
        // From the end: what begins like an earlier string does so with all beginnings before.
        let chunk = self.chunk;
        let mut new = steps;
        let mut shared = None;
        while let Some((step, before)) = new.split_last() {
            let Some(seen) = beginnings.get_mut(to_usize(step.beginning.into())) else {
                break;
            };
            if seen.chunk == chunk {
                shared = Some((step.end, seen.number));
                break;
            }
            *seen = Seen { chunk, number };
            new = before;
        }
        let new = steps.get(new.len()..).unwrap_or_default();
        self.text.head(
            shared.map(|(bytes, earlier)| (bytes, number - earlier)),
            new.len(),
        );
        let mut room = self.text.left();
        let mut filled = 0;
        let mut numbered = self.words;
        let mut left = new.iter();
        while let Some(step) = left.next() {
            let bytes = if self.is_coarse && step.short > 0 {
                let more = to_usize(step.short.into()) - 1;
                let (_, behind) = left.as_slice().split_at_checked(more).unwrap_or_default();
                let last = left.as_slice().get(more.wrapping_sub(1)).unwrap_or(step);
                left = behind.iter();
                let (from, to) = (step.spelled.0, last.spelled.1);
                let spelled = spelled.get(to_usize(from.into())..to_usize(to.into()));
                let spelled = spelled.unwrap_or_default();
                if let Some(to) = room.get_mut(..spelled.len()) {
                    to.copy_from_slice(spelled);
                }
                numbered += step.short;
                spelled.len()
            } else {
                let word = words.get_mut(to_usize(step.word.into()));
                let to = room.first_chunk_mut::<WORD_ROOM>();
                let Some((word, to)) = word.zip(to) else {
                    break;
                };
                if word.chunk == chunk {
                    let [code @ .., bytes] = word.again.to_le_bytes();
                    if let Some(to) = to.first_chunk_mut() {
                        *to = code;
                    }
                    usize::from(bytes)
                } else {
                    *to = word.new;
                    word.chunk = chunk;
                    word.again = again(numbered);
                    numbered += 1;
                    to_usize(word.new_bytes.into())
                }
            };
            filled += bytes;
            room = room.get_mut(bytes..).unwrap_or_default();
        }
        self.words = numbered;
        self.text.filled += filled;
        true
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
