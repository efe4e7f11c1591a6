//! Strings that were cut into words before: the same ones come in every chunk.

use std::collections::HashMap;

use super::beginnings::{Beginnings, Found, Line, NONE, Shared};
use super::split::{self, Digits};
use super::tokens::TOKENS;
use super::words::TOKEN;
use crate::container::num::{to_u64, to_usize};
use crate::record::StringKeys;

/// The most strings that one chunk may add.
pub(super) const MAX_NEW: usize = 2_048;

/// How many strings are remembered; when that may not be enough all are forgotten.
const MAX_STRINGS: usize = 4 * MAX_NEW;

/// The longest string that is cut.
const MAX_BYTES: usize = 1_024;

/// The most words of a string that is cut.
pub(super) const MAX_WORDS: usize = 64;

/// What a short word takes at most: those that are well-known are among them.
const SHORT_BYTES: u32 = 5;

/// So many bytes of what is spelled are copied at once.
pub(super) const SPELLED_BLOCK: usize = 64;

/// How many slots there are at first.
const FIRST_SLOTS: usize = 256;

/// Strings, cut into words; what is remembered changes how fast they are found, and nothing else.
#[derive(Debug, Default)]
pub(super) struct Known {
    digits: Digits,
    /// By a string's key, open addressing with linear probing: a power of two of them, at most
    /// half of them full.
    slots: Vec<Slot>,
    /// By number of the interned string: the string's number + 1, or 0.
    interned: Vec<u32>,
    strings: Vec<Cut>,
    text: Vec<u8>,
    /// All words of all strings as they are written for the first time.
    spelled: Vec<u8>,
    steps: Vec<Step>,
    /// What they begin with, of which each has a line.
    beginnings: Beginnings,
    lines: Vec<Line>,
    words: Vec<Word>,
    /// One a word.
    written: Vec<Written>,
    numbers: HashMap<Box<[u8]>, u32>,
    keys: StringKeys,
}

#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    key: u64,
    /// The string's number + 1, or 0 if the slot is free.
    next_string: u32,
}

/// A string as it was cut.
#[derive(Debug, Clone, Copy)]
struct Cut {
    /// Where its text and its steps begin and end.
    text: (u32, u32),
    steps: (u32, u32),
}

/// One word further in a string.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) word: u32,
    /// Where it is spelled from.
    pub(super) spelled: u32,
    /// How many words from here on are so short that they may as well be spelled again, and where
    /// the last of them is spelled to.
    pub(super) short: u32,
    pub(super) short_to: u32,
}

/// A word that was written before. Most words were: what is looked at then is by itself, so that
/// little of it has to come near when all has left the caches since the chunk before.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    /// The chunk that it was written in last, and how it is written there for a second time.
    pub(super) chunk: u32,
    pub(super) again: u32,
}

/// A word, as it is written for the first time.
#[derive(Debug, Clone, Copy)]
pub(super) struct Word {
    pub(super) new: [u8; WORD_ROOM],
    pub(super) new_bytes: u32,
}

/// How many bytes are set aside for a word, so that one is copied without asking for its length.
pub(super) const WORD_ROOM: usize = 40;

/// What a string is written from.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    pub(super) steps: &'a [Step],
    pub(super) spelled: &'a [u8],
    pub(super) words: &'a [Word],
    pub(super) written: &'a mut [Written],
}

impl Known {
    /// Knows nothing yet, and cuts numbers like this.
    pub(super) fn new(digits: Digits) -> Self {
        Self {
            digits,
            ..Self::default()
        }
    }

    /// How it cuts numbers.
    pub(super) fn digits(&self) -> Digits {
        self.digits
    }

    /// Begins a chunk and makes room for so many strings, of which some may be known.
    pub(super) fn begin(&mut self, strings: usize) {
        if self.strings.len() + strings.min(MAX_NEW) > MAX_STRINGS {
            self.slots.clear();
            self.interned.clear();
            self.strings.clear();
            self.text.clear();
            self.spelled.clear();
            self.steps.clear();
            self.beginnings.clear();
            self.lines.clear();
            self.words.clear();
            self.written.clear();
            self.numbers.clear();
        }
        self.beginnings.begin(short(strings));
    }

    /// The number of an interned string by its key, if it was cut before.
    #[inline]
    pub(super) fn interned(&self, key: u64) -> Option<u32> {
        let number = self.interned.get(index(StringKeys::interned(key)?))?;
        number.checked_sub(1)
    }

    /// The number of a string, which is cut if it is new; `None` where it is too long.
    pub(super) fn cut(&mut self, text: &[u8], key: Option<u64>) -> Option<u32> {
        let key = key.unwrap_or_else(|| self.keys.of(text));
        match StringKeys::interned(key) {
            Some(number) => self.add_interned(text, number),
            None => self.find(text, key),
        }
    }

    #[cold]
    fn add_interned(&mut self, text: &[u8], interned: u32) -> Option<u32> {
        let cut = self.add(text)?;
        if self.interned.len() <= index(interned) {
            // No more than all interned strings that there are.
            self.interned.resize(index(interned) + 1, 0);
        }
        if let Some(number) = self.interned.get_mut(index(interned)) {
            *number = short(self.strings.len());
        }
        Some(cut)
    }

    fn find(&mut self, text: &[u8], key: u64) -> Option<u32> {
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
                return Some(number);
            }
            place = place.wrapping_add(1) & mask;
        }
        self.add_by_key(text, key)
    }

    #[cold]
    fn add_by_key(&mut self, text: &[u8], key: u64) -> Option<u32> {
        let cut = self.add(text)?;
        if self.strings.len() * 2 > self.slots.len() {
            self.grow();
        }
        self.put(Slot {
            key,
            next_string: short(self.strings.len()),
        });
        Some(cut)
    }

    /// How many words a string has.
    #[inline]
    pub(super) fn words(&self, string: u32) -> Option<u32> {
        let (from, to) = self.strings.get(index(string))?.steps;
        to.checked_sub(from)
    }

    /// What a string has of an earlier one of its chunk, in which it has this number; it is an earlier
    /// one for those behind it.
    #[inline(always)]
    pub(super) fn share(&mut self, string: u32, number: u32) -> Option<Found> {
        let line = self.lines.get_mut(index(string))?;
        if !self.beginnings.is_right(line) {
            let (from, to) = self.strings.get(index(string))?.steps;
            let steps = self.steps.get(index(from)..index(to))?;
            self.beginnings.mend(line, steps);
        }
        match self.beginnings.share(line, number) {
            None => self.beginnings.share_beyond(line, number),
            found => found,
        }
    }

    /// What was found, if it is anything.
    #[inline]
    pub(super) fn shared(&self, found: Option<Found>) -> Option<Shared> {
        self.beginnings.shared(found?)
    }

    /// All words as they are spelled.
    #[inline]
    pub(super) fn spelled(&self) -> &[u8] {
        &self.spelled
    }

    /// A string's steps but for the first ones, with what was seen of words.
    pub(super) fn parts(&mut self, string: u32, skipped: u32) -> Parts<'_> {
        let cut = self.strings.get(index(string));
        let (from, to) = cut.map_or((0, 0), |cut| cut.steps);
        let steps = index(from.saturating_add(skipped))..index(to);
        Parts {
            steps: self.steps.get(steps).unwrap_or_default(),
            spelled: &self.spelled,
            words: &self.words,
            written: &mut self.written,
        }
    }

    /// Cuts a string.
    fn add(&mut self, text: &[u8]) -> Option<u32> {
        if text.len() > MAX_BYTES {
            return None;
        }
        let fits = |digits: &Digits| {
            let mut count = 0;
            split::words(text, *digits, |_| count += 1);
            count <= MAX_WORDS
        };
        let digits = [self.digits, Digits::Together].into_iter().find(fits)?;
        let (text_from, steps_from) = (self.text.len(), self.steps.len());
        self.text.extend_from_slice(text);
        let mut path = Vec::new();
        let (mut known, mut bytes, mut before) = (0, 0, NONE);
        split::words(text, digits, |word| {
            bytes += short(word.len());
            let word = self.word(word);
            let (number, is_new) =
                self.beginnings
                    .with_word(before, word, bytes, short(path.len() + 1));
            path.push(number);
            before = number;
            if !is_new {
                known = path.len();
            }
            let spelled_from = short(self.spelled.len());
            let new = self.words.get(index(word));
            let spelled = new.and_then(|word| word.new.get(..index(word.new_bytes)));
            self.spelled.extend_from_slice(spelled.unwrap_or_default());
            self.steps.push(Step {
                word,
                spelled: spelled_from,
                short: 0,
                short_to: short(self.spelled.len()),
            });
        });
        // So that a block may be copied wherever a word begins.
        self.spelled.extend_from_slice(&[0; SPELLED_BLOCK]);
        self.beginnings.plant(&path, known);
        let (mut short_words, mut short_to) = (0, 0);
        for step in self.steps.iter_mut().skip(steps_from).rev() {
            if step.short_to - step.spelled > SHORT_BYTES {
                short_words = 0;
            } else {
                if short_words == 0 {
                    short_to = step.short_to;
                }
                short_words += 1;
            }
            (step.short, step.short_to) = (short_words, short_to);
        }
        let number = short(self.strings.len());
        self.strings.push(Cut {
            text: (short(text_from), short(self.text.len())),
            steps: (short(steps_from), short(self.steps.len())),
        });
        self.lines
            .push(Line::new(path.last().copied().unwrap_or(NONE)));
        Some(number)
    }

    /// The number of a word, which is added if it is new.
    fn word(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = short(self.words.len());
        let token = TOKENS.iter().position(|token| token.as_bytes() == text);
        let token = token.and_then(|token| u8::try_from(token).ok());
        let mut new = [0; WORD_ROOM];
        let (head, bytes) = match &token {
            Some(token) => (TOKEN, std::slice::from_ref(token)),
            // A word has a byte more than its number says.
            None => (to_u64(text.len()).wrapping_sub(1), text),
        };
        let head = u8::try_from(head).unwrap_or(u8::MAX);
        let spelled = std::iter::once(&head).chain(bytes);
        new.iter_mut()
            .zip(spelled)
            .for_each(|(to, from)| *to = *from);
        self.words.push(Word {
            new,
            new_bytes: short(bytes.len() + 1),
        });
        self.written.push(Written::default());
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

/// Positions in what is remembered, and in texts of chunks, have 32 bits: both are bounded.
pub(super) fn short(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

fn index(number: u32) -> usize {
    to_usize(number.into())
}

fn range((from, to): (u32, u32)) -> std::ops::Range<usize> {
    index(from)..index(to)
}
