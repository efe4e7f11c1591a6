//! Errors in patterns, and their positions.

/// The most bytes of a pattern.
pub const MAX_PATTERN_BYTES: usize = 2_048;

/// An error in a pattern, and its position.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct PatternError {
    message: Box<str>,
    position: usize,
}

/// A wrong part of a pattern.
#[derive(Debug)]
pub(super) struct Misfit<'t> {
    /// A part of the pattern's text. Its address gives its position.
    found: &'t str,
    expected: &'static str,
}

impl<'t> Misfit<'t> {
    pub(super) const fn new(found: &'t str, expected: &'static str) -> Self {
        Self { found, expected }
    }
}

impl PatternError {
    /// The position is that of the misfit within `pattern`.
    pub(super) fn unexpected(pattern: &str, misfit: &Misfit<'_>) -> Self {
        let position = misfit.found.as_ptr().addr() - pattern.as_ptr().addr();
        let found = match pattern.get(position..) {
            None | Some("") => "the end".to_owned(),
            Some(rest) => format!("`{}`", rest.chars().take(20).collect::<String>()),
        };
        let expected = misfit.expected;
        Self {
            message: format!(
                "pattern `{pattern}`: expected {expected} at byte {position}, found {found}"
            )
            .into(),
            position,
        }
    }

    /// The whole expression is wrong.
    pub(super) fn expression(pattern: &str, error: &regex_lite::Error) -> Self {
        Self {
            message: format!("pattern `{pattern}`: {error}").into(),
            position: 0,
        }
    }

    pub(super) fn too_long(pattern: &str) -> Self {
        let start: String = pattern.chars().take(200).collect();
        Self {
            message: format!("pattern `{start}…` is longer than {MAX_PATTERN_BYTES} bytes").into(),
            position: 0,
        }
    }

    /// Returns the position of the problem, in bytes from the start of the pattern.
    pub const fn position(&self) -> usize {
        self.position
    }
}
