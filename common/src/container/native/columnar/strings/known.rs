//! Strings that were cut into words before: the same ones come in every chunk.

use std::collections::HashMap;

use super::split::{self, MAX_WORD_BYTES};
use super::tokens::TOKENS;
use crate::container::num::to_usize;
use crate::record::StringKeys;

/// The most strings that one chunk may add.
pub(super) const MAX_NEW: usize = 2_048;

/// How many strings are remembered; when that may not be enough all are forgotten.
const MAX_STRINGS: usize = 4 * MAX_NEW;

/// The longest string that is cut.
const MAX_BYTES: usize = 1_024;

/// The most words of a string that is cut.
const MAX_WORDS: usize = 64;

/// How many slots there are at first.
const FIRST_SLOTS: usize = 256;

/// Strings, cut into words; what is remembered changes how fast they are found, and nothing else.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// By a string's key, open addressing with linear probing: a power of two of them, at most
    /// half of them full.
    slots: Vec<Slot>,
    strings: Vec<Cut>,
    text: Vec<u8>,
    steps: Vec<Step>,
    /// What is known of a beginning of strings, by its number.
    beginnings: Vec<Seen>,
    next: HashMap<(u32, u32), u32>,
    words: Vec<Word>,
    numbers: HashMap<Box<[u8]>, u32>,
    keys: StringKeys,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    /// The string's number + 1, or 0 if the slot is free.
    next_string: u32,
}

/// Where a string's text and steps begin and end.
#[derive(Debug, Clone, Copy)]
struct Cut {
    text: (u32, u32),
    steps: (u32, u32),
}

/// One word further in a string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// The number of what begins like this, up to this word.
    pub(super) beginning: u32,
    pub(super) word: u32,
    /// Where the word ends in the string.
    pub(super) end: u32,
}

/// In which chunk something was seen last, and as what.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    pub(super) chunk: u32,
    pub(super) number: u32,
}

/// A word.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) seen: Seen,
    pub(super) bytes: [u8; MAX_WORD_BYTES],
    pub(super) len: u8,
    /// Its number among the well-known words.
    pub(super) token: Option<u8>,
}

impl Known {
    /// Makes room for so many strings, of which some may be known.
    pub(super) fn expect(&mut self, strings: usize) {
        if self.strings.len() + strings.min(MAX_NEW) > MAX_STRINGS {
            self.slots.clear();
            self.strings.clear();
            self.text.clear();
            self.steps.clear();
            self.beginnings.clear();
            self.next.clear();
            self.words.clear();
            self.numbers.clear();
        }
    }

    /// The key of a string that has none of its batch.
    pub(super) fn key(&self, text: &[u8]) -> u64 {
        self.keys.of(text)
    }

    /// The steps of a string, which is cut if it is new; `None` where it is too long.
    #[inline]
    pub(super) fn steps(&mut self, text: &[u8], key: u64) -> Option<(usize, usize)> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = to_usize(key) & mask;
        while let Some(slot) = self.slots.get(place) {
            let Some(number) = slot.next_string.checked_sub(1) else {
                break;
            };
            if slot.key == key
                && let Some(known) = self.strings.get(index(number))
                && self.text.get(range(known.text)) == Some(text)
            {
                return Some((index(known.steps.0), index(known.steps.1)));
            }
            place = place.wrapping_add(1) & mask;
        }
        self.add(text, key)
    }

    /// The steps at these positions, with what was seen of beginnings and words.
    pub(super) fn parts(
        &mut self,
        (from, to): (usize, usize),
    ) -> (&[Step], &mut [Seen], &mut [Word]) {
        let steps = self.steps.get(from..to).unwrap_or_default();
        (steps, &mut self.beginnings, &mut self.words)
    }

    #[cold]
    fn add(&mut self, text: &[u8], key: u64) -> Option<(usize, usize)> {
        let mut count = 0;
        split::words(text, |_| count += 1);
        if text.len() > MAX_BYTES || count > MAX_WORDS {
            return None;
        }
        if self.strings.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let (text_from, steps_from) = (self.text.len(), self.steps.len());
        self.text.extend_from_slice(text);
        // The beginning of nothing has the number of no beginning.
        let mut beginning = u32::MAX;
        let mut end = 0;
        split::words(text, |word| {
            end += short(word.len());
            let word = self.word(word);
            let new = short(self.beginnings.len());
            beginning = *self.next.entry((beginning, word)).or_insert(new);
            if beginning == new {
                self.beginnings.push(Seen::default());
            }
            self.steps.push(Step {
                beginning,
                word,
                end,
            });
        });
        let steps = (steps_from, self.steps.len());
        self.put(Slot {
            key,
            next_string: short(self.strings.len() + 1),
        });
        self.strings.push(Cut {
            text: (short(text_from), short(self.text.len())),
            steps: (short(steps.0), short(steps.1)),
        });
        Some(steps)
    }

    /// The number of a word, which is added if it is new.
    fn word(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = short(self.words.len());
        let mut bytes = [0; MAX_WORD_BYTES];
        bytes
            .iter_mut()
            .zip(text)
            .for_each(|(to, from)| *to = *from);
        let token = TOKENS.iter().position(|token| token.as_bytes() == text);
        self.words.push(Word {
            seen: Seen::default(),
            bytes,
            len: u8::try_from(text.len()).unwrap_or(u8::MAX),
            token: token.and_then(|token| u8::try_from(token).ok()),
        });
        self.numbers.insert(text.into(), number);
        number
    }

    fn put(&mut self, slot: Slot) {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = to_usize(slot.key) & mask;
        while let Some(at) = self.slots.get_mut(place) {
            if at.next_string == 0 {
                *at = slot;
                return;
            }
            place = place.wrapping_add(1) & mask;
        }
    }

    fn grow(&mut self) {
        let count = self.slots.len().saturating_mul(2).max(FIRST_SLOTS);
        let old = std::mem::replace(&mut self.slots, vec![Slot::default(); count]);
        let full = old.into_iter().filter(|slot| slot.next_string > 0);
        full.for_each(|slot| self.put(slot));
    }
}

/// Positions of what is remembered have 32 bits: it is bounded.
fn short(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn index(number: u32) -> usize {
    to_usize(number.into())
}

fn range((from, to): (u32, u32)) -> std::ops::Range<usize> {
    index(from)..index(to)
}
