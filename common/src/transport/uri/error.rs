//! The error of a URI, with the correction of a misspelled word.

use std::fmt;

/// A URI is wrong. The text of the error never contains credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}{message}", Place(*.offset))]
pub struct UriError {
    /// The position in the text, in bytes; `None` if there is no single position.
    pub offset: Option<usize>,
    /// The mistake, and its correction.
    pub message: Box<str>,
}

impl UriError {
    /// Something is wrong at this byte of the text.
    pub(in crate::transport) fn at(offset: usize, message: impl Into<Box<str>>) -> Self {
        Self {
            offset: Some(offset),
            ..Self::refused(message)
        }
    }

    /// A connector lacks a required part of its URI, at no particular position.
    pub fn missing(what: impl fmt::Display) -> Self {
        Self::refused(format!("{what} is missing"))
    }

    /// A setting is unknown; `known` are the known ones.
    pub fn unknown<'a>(name: impl AsRef<str>, known: impl IntoIterator<Item = &'a str>) -> Self {
        let name = name.as_ref();
        let proposal = proposal(name, known.into_iter());
        Self::refused(format!("the setting {name} is unknown{proposal}"))
    }

    /// The medium itself refuses the URI.
    pub fn refused(why: impl Into<Box<str>>) -> Self {
        Self {
            offset: None,
            message: why.into(),
        }
    }

    /// This build lacks the medium with this scheme.
    pub(in crate::transport) fn absent_scheme(scheme: &str, why: &str) -> Self {
        Self::at(0, format!("{scheme}: {why}"))
    }

    /// No medium has this scheme; `known` are the schemes of all media.
    pub(in crate::transport) fn unknown_scheme<'a>(
        scheme: &str,
        known: impl Iterator<Item = &'a str>,
    ) -> Self {
        let mut schemes: Vec<_> = known.map(|known| format!("{known}:")).collect();
        schemes.sort_unstable();
        let proposal = proposal(&format!("{scheme}:"), schemes.iter().map(String::as_str));
        let known = schemes.join(", ");
        let message = format!("{scheme}: is no known scheme, use one of {known}{proposal}");
        Self::at(0, message)
    }

    /// Two settings exclude each other.
    pub fn conflict(
        first: impl fmt::Display,
        second: impl fmt::Display,
        why: impl fmt::Display,
    ) -> Self {
        Self::refused(format!("{first} conflicts with {second}: {why}"))
    }
}

/// The beginning of a message, if it has a position.
struct Place(Option<usize>);

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .map_or(Ok(()), |offset| write!(f, "byte {offset} of the URI: "))
    }
}

/// The end of a message about a word: the most similar known word, if there is one.
pub(super) fn proposal<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> String {
    nearest(word, known).map_or_else(String::new, |nearest| format!("; did you mean {nearest}?"))
}

/// Returns the most similar word, if one is similar (Damerau and Levenshtein's distance).
fn nearest<'a>(word: &str, words: impl Iterator<Item = &'a str>) -> Option<Box<str>> {
    words
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .filter(|(distance, known)| *distance <= 1 + known.chars().count() / 3)
        .min()
        .map(|(_, known)| known.into())
}
