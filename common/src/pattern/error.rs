//! What is wrong with a pattern, and where.

use std::fmt;

/// What is wrong with a pattern, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    pattern: Box<str>,
    position: usize,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Problem {
    /// Something else should be here.
    Expected(&'static str),
    /// It means something, but not here.
    Unsupported(&'static str),
    /// Longer than patterns may be, in bytes.
    TooLong(usize),
    /// Too much repetition.
    TooLarge,
}

impl Problem {
    /// The problem at a byte of the pattern.
    pub(super) fn at(self, position: usize) -> Misfit {
        Misfit {
            position,
            problem: self,
        }
    }
}

/// A problem and its place, before it is known of which pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Misfit {
    pub(super) position: usize,
    pub(super) problem: Problem,
}

impl PatternError {
    /// So many characters of a pattern that is too long are repeated in its error.
    const SHOWN: usize = 200;

    pub(super) fn new(pattern: &str, misfit: Misfit) -> Self {
        Self {
            pattern: match misfit.problem {
                Problem::TooLong(_) => pattern.chars().take(Self::SHOWN).collect(),
                _ => pattern.into(),
            },
            position: misfit.position,
            problem: misfit.problem,
        }
    }

    /// The pattern as it was given; the first 200 characters of one that is too long.
    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// Where the problem is, in bytes from the start of the pattern.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Up to so many characters from the problem on.
    fn found(&self) -> Option<String> {
        let rest = self.pattern.get(self.position..)?;
        (!rest.is_empty()).then(|| rest.chars().take(20).collect())
    }
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pattern,
            position,
            problem,
        } = self;
        match problem {
            Problem::Expected(what) => {
                write!(
                    f,
                    "pattern `{pattern}`: expected {what} at byte {position}, found "
                )?;
                match self.found() {
                    Some(found) => write!(f, "`{found}`"),
                    None => f.write_str("the end"),
                }
            }
            Problem::Unsupported(what) => {
                write!(
                    f,
                    "pattern `{pattern}`: {what}, at byte {position}, cannot be used here"
                )
            }
            Problem::TooLong(most) => {
                write!(f, "pattern `{pattern}…` is longer than {most} bytes")
            }
            Problem::TooLarge => write!(f, "pattern `{pattern}` repeats too much"),
        }
    }
}

impl std::error::Error for PatternError {}
