//! Patterns that select operations and sensors for monitoring, and lists of patterns.
//!
//! ```
//! use baler_connector_kieker::pattern::{Action, Dialect, Pattern, PatternList};
//!
//! let pattern = Pattern::parse("public * shop.till..*.*(..)", Dialect::Strict)?;
//! assert!(pattern.matches("public Result shop.till.Till.order(str, u32)"));
//!
//! let (list, errors) = PatternList::parse("- *\n+ shop::till::**\n", Dialect::Rust);
//! assert!(errors.is_empty());
//! // The last one that matches decides.
//! assert_eq!(list.decide("public void shop.Cart.add(u32)"), Action::Deactivate);
//! assert_eq!(list.decide("public Result shop.till.Till.order(str, u32)"), Action::Activate);
//! # Ok::<(), baler_connector_kieker::pattern::PatternError>(())
//! ```
//!
//! The syntax is Kieker's (`adaptiveMonitoring`), in three dialects.
//! A pattern becomes a regular expression. `regex-lite` matches it in time linear in the signature,
//! for any pattern.

mod dialect;
mod error;
mod kieker;
mod list;
mod rust;
mod strict;
mod syntax;
#[cfg(test)]
mod tests;

use std::fmt;

use regex_lite::{Regex, RegexBuilder};

use error::Misfit;

pub use dialect::Dialect;
pub use error::{MAX_PATTERN_BYTES, PatternError};
pub use list::{Action, LineError, LineProblem, ListFull, MAX_RULES, PatternList, Rule};

/// The limit of a compiled expression. Only counted repetitions in sensors' patterns come near it.
const MAX_EXPRESSION_BYTES: usize = 1 << 20;

/// Selects signatures.
#[derive(Debug, Clone)]
pub struct Pattern {
    text: Box<str>,
    dialect: Dialect,
    /// The modifiers that signatures must have, or must not have. The expression matches the rest.
    modifiers: Option<Box<[Box<str>]>>,
    /// Texts that each matching signature has. Most patterns of a long list do not match. To miss a
    /// text takes about 50 ns, to try the expression several microseconds.
    parts: Box<[Box<str>]>,
    expression: Regex,
}

impl Pattern {
    /// Parses a pattern; blanks around it are ignored.
    ///
    /// A text that begins with `%` is a regular expression for the names of sensors, such as
    /// `%CPU::[0-2]`, without groups that begin with `(?`, and without possessive repetitions.
    ///
    /// # Errors
    ///
    /// The text is not a pattern of this dialect. The error has the position, and what was expected
    /// there.
    pub fn parse(text: &str, dialect: Dialect) -> Result<Self, PatternError> {
        if text.len() > MAX_PATTERN_BYTES {
            return Err(PatternError::too_long(text));
        }
        let unexpected = |misfit| PatternError::unexpected(text, &misfit);
        let compile = |expression: &str| {
            let compiled = RegexBuilder::new(expression)
                .size_limit(MAX_EXPRESSION_BYTES)
                .build();
            compiled.map_err(|error| PatternError::expression(text, &error))
        };
        let trimmed = text.trim();
        let mut parts = Vec::new();
        let (modifiers, expression) = if trimmed == "*" {
            // Everything; Kieker's `.*` stops at the end of a line.
            let any = match dialect {
                Dialect::Kieker => ".*",
                Dialect::Strict | Dialect::Rust => "(?s:.*)",
            };
            (None, any.to_owned())
        } else if trimmed.starts_with('%') {
            check_sensor(trimmed).map_err(unexpected)?;
            // Compile it alone first, because `x)(y` would be well-formed between parentheses.
            compile(trimmed)?;
            (None, trimmed.to_owned())
        } else {
            let parsed = match dialect {
                _ if trimmed.is_empty() => Err(Misfit::new(trimmed, "a pattern")),
                // The expression also covers the modifiers.
                Dialect::Kieker => kieker::parse(trimmed).map(|it| (None, it)),
                Dialect::Strict => strict::parse(trimmed).map(|(it, rest)| (Some(it), rest)),
                Dialect::Rust => rust::parse(trimmed).map(|(it, rest)| (Some(it), rest)),
            };
            let (modifiers, expression) = parsed.map_err(unexpected)?;
            let modifiers = modifiers.map(|it| it.into_iter().map(Into::into).collect());
            parts = parts_of_name(trimmed);
            (modifiers, expression)
        };
        Ok(Self {
            text: trimmed.into(),
            dialect,
            modifiers,
            parts: parts.into(),
            expression: compile(&format!(r"\A(?:{expression})\z"))?,
        })
    }

    /// Whether the pattern matches this signature. Takes time linear in its length.
    pub fn matches(&self, signature: &str) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| signature.contains(&**part)) && self.fits(signature)
    }

    /// As [`matches`](Self::matches), by the expression alone.
    fn fits(&self, signature: &str) -> bool {
        let rest = match &self.modifiers {
            Some(wanted) => syntax::strip_modifiers(signature, wanted),
            None => Some(signature),
        };
        rest.is_some_and(|rest| self.expression.is_match(rest))
    }

    /// The pattern as it was written, without blanks around it.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns its dialect.
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

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        (&self.text, self.dialect) == (&other.text, other.dialect)
    }
}

impl Eq for Pattern {}

/// Returns the letters and digits between stars, dots and colons in the operation's name. It is the
/// last word before parameters and result.
fn parts_of_name(pattern: &str) -> Vec<Box<str>> {
    let (head, _) = pattern.split_once('(').unwrap_or((pattern, ""));
    let (head, _) = head.split_once("->").unwrap_or((head, ""));
    let name = head.split_whitespace().next_back().into_iter();
    let parts = name.flat_map(|name| name.split(|it: char| !it.is_alphanumeric()));
    let mut parts: Vec<Box<str>> = parts.filter(|it| !it.is_empty()).map(Into::into).collect();
    // The longest ones are the rarest.
    parts.sort_by_key(|it| std::cmp::Reverse(it.len()));
    parts
}

/// Refuses expressions with another meaning in Java than in `regex-lite`.
fn check_sensor(text: &str) -> Result<(), Misfit<'_>> {
    let mut previous = ' ';
    let (mut rest, mut characters) = (text, text.chars());
    while let Some(c) = characters.next() {
        match (previous, c) {
            ('(', '?') if !rest.starts_with("?:") => {
                return Err(Misfit::new(rest, "a group without `?`"));
            }
            ('*' | '+' | '?' | '}', '*' | '+' | '{') => {
                return Err(Misfit::new(rest, "no second repetition"));
            }
            _ => {}
        }
        previous = c;
        if c == '\\' {
            characters.next();
        }
        rest = characters.as_str();
    }
    Ok(())
}
