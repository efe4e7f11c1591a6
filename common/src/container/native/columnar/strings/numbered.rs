//! The words of a chunk by their numbers, while its strings are read.

use super::split::MAX_WORD_BYTES;
use super::text::{BLOCK, Full, Text};
use super::tokens::TOKENS;
use super::words::short;
use super::words::{OF_CHUNK, TOKEN};
use crate::container::num::to_usize;

/// Words with smaller numbers, as these are written, are copied in one go; most chunks have fewer.
pub(super) const SHORT_NUMBERS: usize = 512;

/// The first number that is written in two bytes, of which the first one has this much of it.
pub(super) const TWO_BYTES: usize = 128;

/// Instead of the length of a word that there is not: no word has as many bytes.
const NO_WORD: u8 = u8::MAX;

/// The words of a chunk by number, as it is written.
pub(super) struct Words {
    /// How long those are that have a small number.
    short: [u8; SHORT_NUMBERS],
    /// Their bytes, and any behind them: a word that was just written, together with others, cannot
    /// be read back from the text in one go without waiting for all of them.
    pub(super) spelled: Vec<[u8; MAX_WORD_BYTES]>,
    /// Where each of the others begins in the text, and its length.
    long: Vec<(u32, u32)>,
    pub(super) count: usize,
}

impl Words {
    /// None; the memory has room for the short ones.
    pub(super) fn new(spelled: Vec<[u8; MAX_WORD_BYTES]>) -> Self {
        Self {
            short: [NO_WORD; SHORT_NUMBERS],
            spelled,
            long: Vec::new(),
            count: 0,
        }
    }

    /// Adds the word with this number to the text; `None` if there is none.
    pub(super) fn repeat(&self, code: u64, text: &mut Text<'_>) -> Option<Result<(), Full>> {
        let code = to_usize(code);
        if let Some(beyond) = code.checked_sub(SHORT_NUMBERS) {
            let (from, bytes) = *self.long.get(beyond)?;
            return Some(text.repeat(to_usize(from.into()), to_usize(bytes.into())));
        }
        let bytes = *self.short.get(code)?;
        let word = self.spelled.get(code)?.get(..bytes.into())?;
        Some(text.add(word))
    }

    #[inline]
    pub(super) fn push(&mut self, from: usize, bytes: usize, spelled: &[u8; MAX_WORD_BYTES]) {
        let code = to_usize(OF_CHUNK) + self.count;
        match self.short.get_mut(code).zip(self.spelled.get_mut(code)) {
            Some((length, spelling)) => {
                *length = u8::try_from(bytes).unwrap_or(NO_WORD);
                *spelling = *spelled;
            }
            None => self.long.push((short(from), short(bytes))),
        }
        self.count += 1;
    }

    /// Those that have a small number.
    pub(super) fn numbered(&mut self) -> Option<Numbered<'_>> {
        Some(Numbered {
            short: &mut self.short,
            spelled: self.spelled.first_chunk_mut()?,
            next: to_usize(OF_CHUNK) + self.count,
        })
    }

    /// Sets what the next new word is numbered.
    pub(super) fn set_next(&mut self, next: usize) {
        self.count = next - to_usize(OF_CHUNK);
    }
}

/// Words that have a small number.
pub(super) struct Numbered<'a> {
    short: &'a mut [u8; SHORT_NUMBERS],
    spelled: &'a mut [[u8; MAX_WORD_BYTES]; SHORT_NUMBERS],
    /// What the next new word is numbered.
    pub(super) next: usize,
}

impl Numbered<'_> {
    /// Takes words as long as they are as most are: those of this chunk by a small number, and new
    /// ones which get such a number; up to so many. Returns how many are left.
    ///
    /// `to` is where the text goes on. Words are copied with what is behind them: that is overwritten
    /// or cut off, and so much room is behind the text.
    #[inline(always)]
    pub(super) fn take(&mut self, input: &mut &[u8], mut left: usize, to: &mut &mut [u8]) -> usize {
        let mut rest = *input;
        let mut text = std::mem::take(to);
        while left > 0
            && let Some((code, behind)) = rest.split_first()
        {
            let (mut number, mut behind) = (usize::from(*code), behind);
            if number >= TWO_BYTES {
                let Some((high, others)) = behind.split_first() else {
                    break;
                };
                // Zeros need not be written, and are refused.
                if !(1..SHORT_NUMBERS / TWO_BYTES).contains(&usize::from(*high)) {
                    break;
                }
                number = number % TWO_BYTES + usize::from(*high) * TWO_BYTES;
                behind = others;
            }
            let bytes = usize::from(self.short.get(number).copied().unwrap_or(NO_WORD));
            if bytes <= MAX_WORD_BYTES {
                let Some(word) = self.spelled.get(number) else {
                    break;
                };
                if put(&mut text, word, bytes).is_none() {
                    break;
                }
                rest = behind;
            } else {
                let (bytes, word, behind) = if u64::from(*code) < TOKEN {
                    // It may not be all behind it that is the word.
                    let bytes = usize::from(*code) + 1;
                    let word = behind.first_chunk().zip(behind.get(bytes..));
                    let Some((word, behind)) = word else { break };
                    (bytes, word, behind)
                } else {
                    let is_token = u64::from(*code) == TOKEN;
                    let Some((token, behind)) = behind.split_first().filter(|_| is_token) else {
                        break;
                    };
                    let Some((word, bytes)) = PADDED.get(usize::from(*token)) else {
                        break;
                    };
                    (usize::from(*bytes), word, behind)
                };
                let numbered = self.short.get_mut(self.next);
                let numbered = numbered.zip(self.spelled.get_mut(self.next));
                let Some((length, spelling)) = numbered else {
                    break;
                };
                if put(&mut text, word, bytes).is_none() {
                    break;
                }
                *spelling = *word;
                *length = u8::try_from(bytes).unwrap_or(NO_WORD);
                self.next += 1;
                rest = behind;
            }
            left -= 1;
        }
        (*to, *input) = (text, rest);
        left
    }
}

/// Adds a word of so many bytes where the text goes on, if there is room, and goes on behind it.
#[inline(always)]
fn put(text: &mut &mut [u8], word: &[u8; MAX_WORD_BYTES], bytes: usize) -> Option<()> {
    if text.len() < bytes + BLOCK {
        return None;
    }
    *text.first_chunk_mut()? = *word;
    *text = std::mem::take(text).get_mut(bytes..)?;
    Some(())
}

/// The well-known words, each with zeros behind it and its length.
static PADDED: [([u8; MAX_WORD_BYTES], u8); TOKENS.len()] = padded();

const fn padded() -> [([u8; MAX_WORD_BYTES], u8); TOKENS.len()] {
    let mut padded = [([0; MAX_WORD_BYTES], 0); TOKENS.len()];
    let mut places = padded.as_mut_slice();
    let mut tokens = TOKENS.as_slice();
    while let (Some(((place, bytes), behind)), Some((token, others))) =
        (places.split_first_mut(), tokens.split_first())
    {
        let mut place = place.as_mut_slice();
        let mut token = token.as_bytes();
        while let (Some((to, left)), Some((byte, rest))) =
            (place.split_first_mut(), token.split_first())
        {
            *to = *byte;
            *bytes += 1;
            (place, token) = (left, rest);
        }
        assert!(token.is_empty(), "a word is longer than words may be");
        (places, tokens) = (behind, others);
    }
    padded
}
