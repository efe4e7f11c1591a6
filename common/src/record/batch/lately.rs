//! Texts that came lately, as a queue has them: most texts in a row's place came shortly before.

use crate::record::words::{Words, text_words};

/// How many texts are remembered: a power of two.
const TEXTS: usize = 128;

/// How long they are at most: a UUID with its dashes is among them.
const MOST_WORDS: usize = 5;

/// The ids of short texts by their words, which are sooner compared than looked up by a hash of their
/// bytes.
#[derive(Debug, Default)]
pub(super) struct LatelyTexts {
    /// [`TEXTS`] of them, or none before the first.
    slots: Vec<Lately>,
}

/// A text that came lately.
#[derive(Debug, Clone, Copy, Default)]
struct Lately {
    /// The batch that has it; none has number 0.
    batch: u32,
    length: u32,
    id: u32,
    words: [u64; MOST_WORDS],
}

/// A text that is short enough to be remembered.
#[derive(Debug)]
pub(super) struct ShortText {
    /// Those behind its own are 0.
    words: [u64; MOST_WORDS],
    length: u32,
    /// Where it is remembered.
    place: usize,
}

impl LatelyTexts {
    /// The id of a text, if it was found in this batch, lately.
    #[inline(always)]
    pub(super) fn known(&self, text: &ShortText, batch: u32) -> Option<u32> {
        let lately = self.slots.get(text.place)?;
        let is_it = lately.batch == batch
            && lately.length == text.length
            && are_equal(&lately.words, &text.words);
        is_it.then_some(lately.id)
    }

    /// Remembers a text of this batch.
    pub(super) fn found(&mut self, text: &ShortText, batch: u32, id: u32) {
        self.slots.resize(TEXTS, Lately::default());
        if let Some(slot) = self.slots.get_mut(text.place) {
            *slot = Lately {
                batch,
                length: text.length,
                id,
                words: text.words,
            };
        }
    }

    /// Forgets everything.
    pub(super) fn forget(&mut self) {
        self.slots.clear();
    }
}

impl ShortText {
    /// The text of so many bytes that begins at this word; `None` if it is too long, or if there are
    /// too few words to look at so many, as behind the last texts.
    #[inline(always)]
    pub(super) fn read(words: &(impl Words + ?Sized), at: usize, length: u32) -> Option<Self> {
        let count = text_words(usize::try_from(length).ok()?);
        let mut text = words.words::<MOST_WORDS>(at)?;
        if count > MOST_WORDS {
            return None;
        }
        let mut mixed = u64::from(length);
        for (number, word) in text.iter_mut().enumerate() {
            *word = if number < count { *word } else { 0 };
            mixed = mixed.rotate_left(17) ^ *word;
        }
        // What is equal has one place; no more is asked of it, so nobody need be kept from choosing
        // texts that share one.
        let place = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - TEXTS.ilog2());
        Some(Self {
            words: text,
            length,
            place: usize::try_from(place).unwrap_or(0),
        })
    }

    /// How many bytes it has.
    pub(super) fn length(&self) -> u32 {
        self.length
    }

    /// Its bytes, and zeros behind them.
    pub(super) fn bytes(&self) -> [u8; MOST_WORDS * 8] {
        let mut bytes = [0; MOST_WORDS * 8];
        for (to, word) in bytes.as_chunks_mut::<8>().0.iter_mut().zip(self.words) {
            *to = word.to_le_bytes();
        }
        bytes
    }
}

/// Compares without a call: the usual text is equal.
#[inline(always)]
fn are_equal(a: &[u64; MOST_WORDS], b: &[u64; MOST_WORDS]) -> bool {
    a.iter().zip(b).fold(0, |all, (a, b)| all | (a ^ b)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words, of which some text begins at 1 that is so long.
    fn text(first: u64, length: u32) -> ShortText {
        let words: &[u64] = &[7, first, 2, 3, 4, 5, 6];
        ShortText::read(words, 1, length).unwrap()
    }

    #[test]
    fn text_is_known_in_its_batch_by_its_words_and_length() {
        let mut texts = LatelyTexts::default();
        assert_eq!(texts.known(&text(1, 12), 1), None);
        texts.found(&text(1, 12), 1, 30);
        assert_eq!(texts.known(&text(1, 12), 1), Some(30));
        assert_eq!(texts.known(&text(1, 12), 2), None);
        assert_eq!(texts.known(&text(1, 13), 1), None);
        assert_eq!(texts.known(&text(9, 12), 1), None);
        texts.forget();
        assert_eq!(texts.known(&text(1, 12), 1), None);
    }

    #[test]
    fn text_has_its_own_bytes_and_is_no_longer_than_what_is_remembered() {
        let found = text(1, 12);
        assert_eq!((found.length(), found.words), (12, [1, 2, 0, 0, 0]));
        assert_eq!(found.bytes().get(8..10), Some([2, 0].as_slice()));
        let words: &[u64] = &[1; 8];
        assert!(ShortText::read(words, 0, 40).is_some());
        assert!(ShortText::read(words, 0, 41).is_none());
        assert!(ShortText::read(words, 4, 8).is_none());
    }
}
