//! Patterns that say which operations and sensors are monitored, and lists of them.
//!
//! ```
//! use baler_common::pattern::{Action, Dialect, Pattern, PatternList};
//!
//! let pattern = Pattern::parse("public * shop.till..*.*(..)", Dialect::Strict)?;
//! assert!(pattern.matches("public Result shop.till.Till.order(str, u32)"));
//!
//! let (list, errors) = PatternList::parse("- *\n+ shop::till::**\n", Dialect::Rust);
//! assert!(errors.is_empty());
//! // The last one that matches decides.
//! assert_eq!(list.decide("public void shop.Cart.add(u32)"), Action::Deactivate);
//! assert_eq!(list.decide("public Result shop.till.Till.order(str, u32)"), Action::Activate);
//! # Ok::<(), baler_common::pattern::PatternError>(())
//! ```
//!
//! The syntax is Kieker's (`adaptiveMonitoring`), in three dialects:
//!
//! ```text
//! text -> (syntax -> kieker | strict) | rust | special -> program
//! ```
//!
//! A pattern is a few instructions for a matcher that takes time linear in the signature, whatever
//! the pattern is, and that has no recursion to exhaust.

mod error;
mod kieker;
mod list;
mod program;
mod rust;
mod special;
mod strict;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;
mod word;

use std::fmt;

pub use error::PatternError;
pub use list::{Action, DutyCycle, LineError, LineProblem, ListFull, MAX_RULES, PatternList, Rule};

use error::{Misfit, Problem};
use program::{Class, Node, Program};
use strict::Modifiers;
use syntax::Care;
use word::Word;

/// Patterns are at most so many bytes long.
pub const MAX_PATTERN_BYTES: usize = 2_048;

/// How patterns for operations are written and what they mean.
///
/// In all of them `*` alone matches everything, and what begins with `%` is for sensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Dialect {
    /// Kieker's, bug for bug: what its parser refuses is refused, and what its regular expressions
    /// match is matched.
    ///
    /// Checked against Kieker's own parser for the patterns and signatures of
    /// `tests/golden/kieker/pattern-golden.json`.
    /// Letters beyond ASCII are Rust's, which are nearly Java's.
    Kieker,
    /// Kieker's syntax without what is odd about it. The differences:
    ///
    /// | | Kieker | strict |
    /// |---|---|---|
    /// | the comma between parameters | optional: `(int, ..)` matches `(integer)` | must be there |
    /// | a modifier that is not named | may be there, but not `default` if none is named | may be there |
    /// | modifiers | in one order; two of a kind are taken | in any order, each kind once |
    /// | `*` at the start of a name | spans dots, and nothing | spans no dot; alone it is one name |
    /// | `*` or `..*` as the result or a parameter | no array, a parameter `*` no package | any type |
    /// | the result | must be there | may be left out, then there may be any or none |
    /// | blanks in the signature | one at most around each parameter | any |
    /// | `throws A, B` | an error for the blank | two exceptions |
    /// | `throwsA` | taken for the exception `throwsA` | an error |
    /// | `(int,)` | taken for `(int)` | an error |
    /// | `$` at the start of a name | never matches | a character |
    #[default]
    Strict,
    /// Rust's paths: `[pub] [fn] shop::till::*::order(str, ..) -> Result`, where `**` is any number
    /// of segments, and parameters and result may be left out. Matches signatures of Kieker's form,
    /// those of Rust's, and plain names.
    Rust,
}

impl Dialect {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kieker, Self::Strict, Self::Rust];

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kieker => "kieker",
            Self::Strict => "strict",
            Self::Rust => "rust",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Says which signatures are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    text: Box<str>,
    dialect: Dialect,
    /// Checked apart from the program, which matches what is left.
    modifiers: Option<Modifiers>,
    program: Program,
}

impl Pattern {
    /// Parses a pattern; blanks around it do not count.
    ///
    /// # Errors
    ///
    /// Where the text is no pattern of this dialect, and what was expected there.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, PatternError> {
        Self::new(text, dialect).map_err(|misfit| PatternError::new(text, misfit))
    }

    fn new(text: &str, dialect: Dialect) -> Result<Self, Misfit> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(Problem::TooLong(MAX_PATTERN_BYTES).at(0));
        }
        let word = Word::new(text).trim();
        let (modifiers, node) = if word.text.is_empty() {
            return Err(word.expected("a pattern"));
        } else if word.text == "*" {
            // Everything, where Kieker's `.*` stops at the end of a line.
            let any = match dialect {
                Dialect::Kieker => Class::Any,
                _ => Class::Listed {
                    ranges: Vec::new(),
                    negated: true,
                },
            };
            (None, Node::One(any).any_times())
        } else if word.text.starts_with('%') {
            let node = special::parse(word.text).map_err(|misfit| Misfit {
                position: misfit.position.saturating_add(word.at),
                ..misfit
            })?;
            (None, node)
        } else {
            match dialect {
                Dialect::Kieker => {
                    let operation = syntax::parse(word, Care::Kieker)?;
                    (None, kieker::expression(&operation))
                }
                Dialect::Strict => {
                    let operation = syntax::parse(word, Care::Strict)?;
                    let modifiers = Modifiers::new(&operation.modifiers);
                    (Some(modifiers), strict::expression(&operation))
                }
                Dialect::Rust => {
                    let (modifiers, node) = rust::parse(word)?;
                    (Some(modifiers), node)
                }
            }
        };
        Ok(Self {
            text: word.text.into(),
            dialect,
            modifiers,
            program: Program::new(&node).map_err(|problem| problem.at(word.at))?,
        })
    }

    /// Whether this signature is meant. Takes time linear in its length.
    pub fn matches(&self, signature: &str) -> bool {
        let rest = match &self.modifiers {
            Some(modifiers) => modifiers.strip(signature),
            None => Some(signature),
        };
        rest.is_some_and(|rest| self.program.matches(rest))
    }

    /// The pattern as it was written, without blanks around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it is written.
    pub const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether it matches everything: the pattern `*`.
    pub fn is_everything(&self) -> bool {
        &*self.text == "*"
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
