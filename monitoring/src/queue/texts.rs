//! Which texts a thread has put into its block lately.
//!
//! Texts of records come again: a session, a user, a path. A text that the block already has is not
//! written again. The collector finds the id of a known place sooner than that of a text.
//!
//! A place is a guess: the block may be another one by now, or the word may belong to another row.
//! So the words are compared, and a text is there if they are its own.

use std::cell::Cell;

use baler_common::record::text_words;

use super::sync::{AtomicU64, Ordering};

/// How many texts are remembered: as many as are told apart by the highest bits of a product.
const TEXTS: usize = 256;

thread_local! {
    /// Texts by some of their bits: where they may lie in the thread's block.
    static KNOWN: [Cell<u16>; TEXTS] = const { [const { Cell::new(0) }; TEXTS] };
}

/// Where a text lies among the words before `at` of the thread's block, or else `new`, where it is
/// going to lie.
///
/// One that is no longer than a word is not looked for.
#[inline(never)]
pub(super) fn place(words: &[AtomicU64], at: usize, text: &str, new: usize) -> usize {
    let text = text.as_bytes();
    let (Some(first), Some(last), true) = (
        text.first_chunk::<8>(),
        text.last_chunk::<8>(),
        text.len() > 8,
    ) else {
        return new;
    };
    let [first, last] = [first, last].map(|bytes| u64::from_le_bytes(*bytes));
    let mixed = (first ^ last.rotate_left(25)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let slot = usize::try_from(mixed >> (u64::BITS - TEXTS.ilog2())).unwrap_or(0) % TEXTS;
    let known = KNOWN.with(|known| known.get(slot).map_or(0, Cell::get));
    let known = usize::from(known);
    let count = text_words(text.len());
    if known.wrapping_add(count) <= at
        && let Some(there) = words.get(known..known.wrapping_add(count))
        && are_equal(there, text, last)
    {
        return known;
    }
    KNOWN.with(|known| {
        if let (Some(slot), Ok(new)) = (known.get(slot), u16::try_from(new)) {
            slot.set(new);
        }
    });
    new
}

/// Whether these words, as many as it needs, are a text that ends with this one.
#[inline(always)]
fn are_equal(words: &[AtomicU64], text: &[u8], last: u64) -> bool {
    let (whole, rest) = text.as_chunks::<8>();
    let mut pairs = words.iter().zip(whole);
    if !pairs.all(|(word, bytes)| word.load(Ordering::Relaxed) == u64::from_le_bytes(*bytes)) {
        return false;
    }
    match words.last() {
        Some(word) if !rest.is_empty() => {
            word.load(Ordering::Relaxed) == last >> ((8 - rest.len()) * 8)
        }
        _ => true,
    }
}

#[cfg(all(test, not(baler_loom)))]
mod tests {
    use baler_common::record::words_of_text;

    use super::*;

    /// A block with these texts, one behind the other.
    fn block(texts: &[&str]) -> Vec<AtomicU64> {
        let words = texts.iter().flat_map(|text| words_of_text(text));
        words.map(AtomicU64::new).collect()
    }

    #[test]
    fn text_is_found_where_it_lies_and_nowhere_else() {
        // Of whole words, and not; they differ in their last byte, or in their length.
        let texts = [
            "one of three words, not one less",
            "a session of 20 byte",
            "a session of 20 bytf",
            "a session of 20 bytes",
        ];
        let words = block(&texts);
        let mut at = 0;
        for text in texts {
            assert_eq!(place(&words, at, text, at), at, "new: {text}");
            at += text_words(text.len());
        }
        let mut at = 0;
        for text in texts {
            assert_eq!(place(&words, words.len(), text, 99), at, "known: {text}");
            // What is behind those in use may be anything.
            assert_eq!(place(&words, at, text, 77), 77, "later: {text}");
            assert_eq!(
                place(&words, words.len(), text, at),
                at,
                "known again: {text}"
            );
            at += text_words(text.len());
        }
        // In another block others lie there.
        let others = block(&texts.map(|_| "something else that is as long"));
        for text in texts {
            assert_eq!(
                place(&others, others.len(), text, 55),
                55,
                "elsewhere: {text}"
            );
        }
    }

    #[test]
    fn text_of_a_word_is_always_new() {
        let words = block(&["12345678"]);
        for _ in 0..2 {
            assert_eq!(place(&words, words.len(), "12345678", 5), 5);
            assert_eq!(place(&words, words.len(), "", 6), 6);
        }
    }
}
