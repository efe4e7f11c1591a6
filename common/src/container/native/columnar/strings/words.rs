//! Strings as words: a string names the beginning that it shares with an earlier string of its
//! chunk, and a word that the chunk already has is a number; FORMAT.md, "Strings".

use super::tokens::{MAX_WORD_BYTES, is_hex_digit, pack_hex, split_words, token};
use crate::container::cursor::{to_u64, to_usize};
use crate::container::varint;
use crate::record::{KeyMap, StringKeys, StringTable};

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

/// The most words that are kept for the next chunk.
const MAX_KEPT: usize = MAX_NUMBERED / 4;

/// If the remembered strings have more words, the strings are forgotten.
const MAX_STEPS: usize = 1 << 15;

/// The longest string that is cut, in bytes and in words.
const MAX_BYTES: usize = 1_024;
const MAX_WORDS: usize = 128;

/// Writes string tables. Remembers how it cut strings, because the next chunk has mostly the same
/// ones.
#[derive(Debug)]
pub(super) struct Writer {
    cuts: Cuts,
    /// By the length of strings, see [`Trial::number`].
    trials: Box<[Trial; TRIALS]>,
    /// Counts chunks, so that nothing must be cleared between them. 0 means never.
    chunk: u32,
    /// The number of words that this chunk has numbered.
    numbered: u32,
}

impl Default for Writer {
    fn default() -> Self {
        Self {
            cuts: Cuts::default(),
            trials: Box::new([Trial::default(); TRIALS]),
            chunk: 0,
            numbered: 0,
        }
    }
}

impl Writer {
    /// Appends the strings of a batch. Stops and returns `false` as soon as they take `limit`
    /// bytes; `out` then contains some of them.
    pub(super) fn write(&mut self, strings: &StringTable, limit: usize, out: &mut Vec<u8>) -> bool {
        self.begin();
        let keys = strings.keys().unwrap_or_default();
        let text = strings.text().as_bytes();
        let start = out.len();
        varint::write(out, to_u64(text.len()));
        let mut from = 0;
        for (number, end) in (0..).zip(strings.ends()) {
            let to = to_usize((*end).into());
            let string = text.get(from..to).unwrap_or_default();
            from = to;
            let key = keys.get(to_usize(number.into()));
            self.write_string(number, string, key.copied(), out);
            if out.len() - start >= limit {
                return false;
            }
        }
        true
    }

    fn begin(&mut self) {
        if self.cuts.words.len() > MAX_KEPT || self.chunk == u32::MAX {
            self.cuts = Cuts::default();
            self.chunk = 0;
        }
        self.chunk += 1;
        self.numbered = 0;
    }

    fn write_string(&mut self, number: u32, string: &[u8], key: Option<u64>, out: &mut Vec<u8>) {
        let interned = key.and_then(StringKeys::interned);
        let known = interned.and_then(|interned| self.cuts.interned(interned));
        if let Some(cut) = known {
            if self.write_words(number, cut, out) {
                return;
            }
        } else if write_hex(string, out) || self.try_words(number, string, key, out) {
            return;
        }
        varint::write(out, RAW);
        varint::write(out, to_u64(string.len()));
        out.extend_from_slice(string);
    }

    /// Appends a string as words. Returns `false`, and appends nothing, if words are not expected to
    /// pay, or are impossible.
    fn try_words(
        &mut self,
        number: u32,
        string: &[u8],
        key: Option<u64>,
        out: &mut Vec<u8>,
    ) -> bool {
        let is_interned = key.and_then(StringKeys::interned).is_some();
        let trial = Trial::number(string);
        // An interned string comes again, and then its words are known.
        let is_due = is_interned || self.trials.get_mut(trial).is_some_and(Trial::is_due);
        if !is_due {
            return false;
        }
        let start = out.len();
        let cut = self.cuts.find(string, key);
        let is_written = cut.is_some_and(|cut| self.write_words(number, cut, out));
        if let Some(trial) = self.trials.get_mut(trial).filter(|_| !is_interned) {
            let written = if is_written {
                out.len() - start
            } else {
                string.len()
            };
            trial.add(string.len(), written);
        }
        is_written
    }

    /// Appends a string as words. Returns `false`, and appends nothing, if the chunk would get too
    /// many numbered words.
    fn write_words(&mut self, number: u32, cut: Cut, out: &mut Vec<u8>) -> bool {
        let cuts = &mut self.cuts;
        let steps = cuts.steps.get(cut.from..cut.to).unwrap_or_default();
        let (mut shared_words, mut shared_bytes, mut distance) = (0, 0, 0);
        for (words, step) in (1..).zip(steps) {
            let beginning = cuts.beginnings.get_mut(to_usize(step.beginning.into()));
            if let Some(beginning) = beginning {
                if beginning.chunk == self.chunk {
                    (shared_words, shared_bytes) = (words, beginning.bytes);
                    distance = number - beginning.string;
                }
                (beginning.chunk, beginning.string) = (self.chunk, number);
            }
        }
        let steps = steps.get(shared_words..).unwrap_or_default();
        if to_usize(self.numbered.into()) + steps.len() > MAX_NUMBERED {
            return false;
        }
        varint::write(out, WORDS + to_u64(shared_bytes));
        if shared_words > 0 {
            varint::write(out, distance.into());
        }
        varint::write(out, to_u64(steps.len()));
        for step in steps {
            let Some(word) = cuts.words.get_mut(to_usize(step.word.into())) else {
                continue;
            };
            if word.chunk == self.chunk {
                varint::write(out, OF_CHUNK + u64::from(word.number));
            } else {
                word.spell(out);
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
    let is_hex = pack_hex(string, out.get_mut(from..).unwrap_or_default());
    if !is_hex {
        out.truncate(start);
    }
    is_hex
}

/// The number of [`Trial`]s.
const TRIALS: usize = 128;

/// The debt in bytes at which strings are no longer cut.
const MAX_DEBT: usize = 256;

/// The number of strings that are then not cut: at first, and after many trials without success.
const LEAST_PAUSE: u32 = 1 << 10;
const MAX_PAUSE: u32 = 1 << 16;

/// Finds out whether words are shorter for strings of about one length, which mostly belong to few
/// fields. Cutting takes far longer than copying, so it must save an eighth of the bytes.
#[derive(Debug, Clone, Copy, Default)]
struct Trial {
    /// The bytes of words beyond seven eighths of the bytes of their strings, never below 0.
    debt: usize,
    /// The number of strings that are not cut before the next trial.
    remaining: u32,
    /// The length of the last pause.
    pause: u32,
}

impl Trial {
    /// The number of the trial to which a string belongs. Short strings have one for each length,
    /// long strings one for 16 lengths.
    fn number(string: &[u8]) -> usize {
        let length = string.len();
        length.min(64 + length / 16).min(TRIALS - 1)
    }

    /// Whether the next string is cut.
    fn is_due(&mut self) -> bool {
        match self.remaining.checked_sub(1) {
            Some(remaining) => {
                self.remaining = remaining;
                false
            }
            None => true,
        }
    }

    /// Adds a string of `bytes` bytes that took `written` bytes.
    fn add(&mut self, bytes: usize, written: usize) {
        self.debt = (self.debt + written).saturating_sub(bytes - bytes / 8);
        if self.debt > MAX_DEBT {
            self.debt = 0;
            self.pause = self.pause.saturating_mul(4).clamp(LEAST_PAUSE, MAX_PAUSE);
            self.remaining = self.pause;
        }
    }
}

/// Strings that were cut into words.
#[derive(Debug, Default)]
struct Cuts {
    /// Indexed by the number of an interned string.
    interned: Vec<Option<Cut>>,
    /// By the key of the string.
    strings: KeyMap<Cut>,
    steps: Vec<Step>,
    words: Vec<Word>,
    /// By the key of the word.
    word_numbers: KeyMap<u32>,
    beginnings: Vec<Beginning>,
    /// By the key of the beginning that is shorter by one word, and of this word.
    longer: KeyMap<u32>,
    keys: StringKeys,
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
    word: u32,
    /// The string up to the end of the word.
    beginning: u32,
}

#[derive(Debug)]
struct Word {
    text: [u8; MAX_WORD_BYTES],
    bytes: u8,
    /// Its number if it is well-known.
    token: Option<u8>,
    /// The last chunk that contained it, and its number there.
    chunk: u32,
    number: u32,
}

impl Word {
    fn new(text: &[u8]) -> Self {
        let mut word = Self {
            text: [0; MAX_WORD_BYTES],
            bytes: u8::try_from(text.len()).unwrap_or(u8::MAX),
            token: token(text),
            chunk: 0,
            number: 0,
        };
        word.text
            .iter_mut()
            .zip(text)
            .for_each(|(to, from)| *to = *from);
        word
    }

    fn text(&self) -> &[u8] {
        self.text.get(..self.bytes.into()).unwrap_or(&self.text)
    }

    /// Appends its form at its first use in a chunk.
    fn spell(&self, out: &mut Vec<u8>) {
        match self.token {
            Some(token) => {
                varint::write(out, TOKEN);
                out.push(token);
            }
            None => {
                // A word has one byte more than its head says.
                varint::write(out, u64::from(self.bytes).wrapping_sub(1));
                out.extend_from_slice(self.text());
            }
        }
    }
}

/// A sequence of words at the beginning of strings.
#[derive(Debug)]
struct Beginning {
    /// The beginning that is shorter by one word, and this word.
    steps: (Option<u32>, u32),
    bytes: usize,
    /// The last chunk that contained it, and the last string there with this beginning.
    chunk: u32,
    string: u32,
}

impl Cuts {
    fn interned(&self, interned: u32) -> Option<Cut> {
        *self.interned.get(to_usize(interned.into()))?
    }

    fn steps(&self, cut: Cut) -> &[Step] {
        self.steps.get(cut.from..cut.to).unwrap_or_default()
    }

    /// Returns the words of a string, and cuts it if it is new. `None` if it is too long, or there
    /// are too many words.
    fn find(&mut self, string: &[u8], key: Option<u64>) -> Option<Cut> {
        let interned = key.and_then(StringKeys::interned);
        let key = key.unwrap_or_else(|| self.keys.of(string));
        let known = self.strings.get(&key).copied();
        let cut = match known.filter(|cut| self.is(*cut, string)) {
            Some(cut) => cut,
            None => self.add(string, key)?,
        };
        if let Some(interned) = interned {
            let at = to_usize(interned.into());
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

    /// Whether these words are the string.
    fn is(&self, cut: Cut, string: &[u8]) -> bool {
        let words = self.steps(cut).iter();
        let mut words = words.filter_map(|step| self.words.get(to_usize(step.word.into())));
        let rest = words.try_fold(string, |rest, word| rest.strip_prefix(word.text()));
        rest.is_some_and(<[u8]>::is_empty)
    }

    /// Forgets all but the words: those of this chunk have their numbers.
    fn forget_strings(&mut self) {
        self.interned.clear();
        self.strings.clear();
        self.steps.clear();
        self.beginnings.clear();
        self.longer.clear();
    }

    fn add(&mut self, string: &[u8], key: u64) -> Option<Cut> {
        // A word has at least one byte.
        if string.len() > MAX_BYTES || self.words.len() + string.len() > MAX_NUMBERED {
            return None;
        }
        if self.steps.len() > MAX_STEPS {
            self.forget_strings();
        }
        let from = self.steps.len();
        let (mut before, mut bytes) = (None, 0);
        split_words(string, |word| {
            bytes += word.len();
            let word = self.word(word);
            let beginning = self.beginning((before, word), bytes);
            self.steps.push(Step { word, beginning });
            before = Some(beginning);
        });
        let to = self.steps.len();
        if !(1..=MAX_WORDS).contains(&(to - from)) {
            self.steps.truncate(from);
            return None;
        }
        let cut = Cut { from, to };
        self.strings.insert(key, cut);
        Some(cut)
    }

    /// Returns the position of a word, and adds it if it is new.
    fn word(&mut self, text: &[u8]) -> u32 {
        let key = self.keys.of(text);
        let known = self.word_numbers.get(&key).copied();
        let is_it = |at: &u32| {
            let word = self.words.get(to_usize((*at).into()));
            word.is_some_and(|word| word.text() == text)
        };
        known.filter(is_it).unwrap_or_else(|| {
            let at = short(self.words.len());
            self.words.push(Word::new(text));
            self.word_numbers.insert(key, at);
            at
        })
    }

    /// Returns the position of the beginning with these last steps, and adds it if it is new.
    fn beginning(&mut self, steps: (Option<u32>, u32), bytes: usize) -> u32 {
        let (before, word) = steps;
        let [before, word] = [before.map_or(0, |it| u64::from(it) + 1), word.into()];
        let key = self.keys.of(&(before << 32 | word).to_le_bytes());
        let known = self.longer.get(&key).copied();
        let is_it = |at: &u32| {
            let beginning = self.beginnings.get(to_usize((*at).into()));
            beginning.is_some_and(|it| it.steps == steps)
        };
        known.filter(is_it).unwrap_or_else(|| {
            let at = short(self.beginnings.len());
            self.beginnings.push(Beginning {
                steps,
                bytes,
                chunk: 0,
                string: 0,
            });
            self.longer.insert(key, at);
            at
        })
    }
}

/// Positions in the texts of chunks have 32 bits, and limits keep both sizes below.
pub(super) fn short(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
