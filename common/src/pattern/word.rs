//! Pieces of a pattern that know where they stand.

use super::error::{Misfit, Problem};
use super::program::is_space;

/// A piece of the pattern and where it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'t> {
    pub(super) text: &'t str,
    pub(super) at: usize,
}

impl<'t> Word<'t> {
    pub(super) const fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// The part before and the part from a byte position on.
    pub(super) fn split_at(self, at: usize) -> (Self, Self) {
        let (before, after) = self.text.split_at_checked(at).unwrap_or((self.text, ""));
        let after = Self {
            text: after,
            at: self.at.saturating_add(before.len()),
        };
        (
            Self {
                text: before,
                at: self.at,
            },
            after,
        )
    }

    pub(super) fn skip(self, bytes: usize) -> Self {
        self.split_at(bytes).1
    }

    /// Without blanks and control characters around it, as Java's `String.trim`.
    pub(super) fn trim(self) -> Self {
        let trimmed = self.text.trim_start_matches(|c| c <= ' ');
        let at = self
            .at
            .saturating_add(self.text.len().saturating_sub(trimmed.len()));
        Self {
            text: trimmed.trim_end_matches(|c| c <= ' '),
            at,
        }
    }

    pub(super) fn split(self, separator: impl Fn(char) -> bool) -> Vec<Self> {
        let mut words = Vec::new();
        let mut rest = self;
        while let Some((at, c)) = rest.text.char_indices().find(|(_, c)| separator(*c)) {
            let (word, after) = rest.split_at(at);
            words.push(word);
            rest = after.skip(c.len_utf8());
        }
        words.push(rest);
        words
    }

    /// The words between blanks.
    pub(super) fn words(self) -> Vec<Self> {
        let mut words = self.split(is_space);
        words.retain(|word| !word.text.is_empty());
        words
    }

    /// The items of a list; blanks around an item do not count.
    pub(super) fn items(self, trim: bool) -> Vec<Self> {
        let items = self.split(|c| c == ',').into_iter();
        items
            .map(|item| if trim { item.trim() } else { item })
            .collect()
    }

    pub(super) fn expected(self, what: &'static str) -> Misfit {
        Problem::Expected(what).at(self.at)
    }
}
