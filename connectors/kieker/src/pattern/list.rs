//! Lists of patterns: the last matching one decides.

use std::fmt;

use super::{Dialect, Pattern, PatternError};

/// The most rules of a list.
pub const MAX_RULES: usize = 10_000;

/// The effect of a pattern on the probes that it matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Action {
    /// They record. A probe that no pattern matches also records.
    #[default]
    Activate,
    /// They do not record.
    Deactivate,
}

/// A pattern and its effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The pattern.
    pub pattern: Pattern,
    /// Its effect.
    pub action: Action,
}

impl Rule {
    /// Reads a line: `+ pattern` or `- pattern`.
    ///
    /// # Errors
    ///
    /// See [`LineProblem`].
    pub fn parse(line: &str, dialect: Dialect) -> Result<Self, LineProblem> {
        let line = line.trim();
        let (action, pattern) = if let Some(pattern) = line.strip_prefix('+') {
            (Action::Activate, pattern)
        } else if let Some(pattern) = line.strip_prefix('-') {
            (Action::Deactivate, pattern)
        } else {
            return Err(LineProblem::NoSign);
        };
        Ok(Self {
            pattern: Pattern::parse(pattern, dialect)?,
            action,
        })
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.action {
            Action::Activate => f.write_str("+ ")?,
            Action::Deactivate => f.write_str("- ")?,
        }
        fmt::Display::fmt(&self.pattern, f)
    }
}

/// The reasons why a line of patterns is wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// It does not begin with `+`, `-` or `#`.
    #[error("begins with none of +, - and #")]
    NoSign,
    /// The rest of the line is not a pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// The list is full.
    #[error(transparent)]
    Full(#[from] ListFull),
}

/// A line of patterns that was left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// The problem.
    pub problem: LineProblem,
}

/// A list has no room for another pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a list of patterns holds {MAX_RULES} at most")]
pub struct ListFull;

/// Rules in order. The last matching rule decides; a probe that no rule matches is active.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatternList {
    rules: Vec<Rule>,
}

impl PatternList {
    /// Returns a list without rules: everything is active.
    pub const fn new() -> Self {
        Self { rules: Vec::new() }
    }

    /// Reads a file of Kieker's adaptive monitoring: a [`Rule`] a line. Empty lines, and lines that
    /// begin with `#`, are skipped.
    ///
    /// A wrong line is left out and reported, as in Kieker. It does not affect the other lines.
    pub fn parse(text: &str, dialect: Dialect) -> (Self, Vec<LineError>) {
        let mut list = Self::new();
        let mut errors = Vec::new();
        // Some systems begin a text with it.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (line, number) in text.lines().zip(1..) {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let rule = Rule::parse(line, dialect);
            if let Err(problem) = rule.and_then(|rule| Ok(list.push(rule)?)) {
                let line = number;
                errors.push(LineError { line, problem });
            }
        }
        (list, errors)
    }

    /// Adds a rule after all others. It takes precedence over them.
    ///
    /// An earlier rule with the same pattern would have no effect any more, so it is removed. The
    /// pattern `*` removes all rules, except in Kieker's dialect. Kieker's own list grows with each
    /// call.
    ///
    /// # Errors
    ///
    /// [`ListFull`] when there are 10,000 others.
    pub fn push(&mut self, rule: Rule) -> Result<(), ListFull> {
        if rule.pattern.is_everything() && rule.pattern.dialect() != Dialect::Kieker {
            self.rules.clear();
        } else {
            self.rules.retain(|other| {
                other.pattern.as_str() != rule.pattern.as_str()
                    || other.pattern.dialect() != rule.pattern.dialect()
            });
        }
        if self.rules.len() >= MAX_RULES {
            return Err(ListFull);
        }
        self.rules.push(rule);
        Ok(())
    }

    /// Returns the effect on the probe with this signature.
    pub fn decide(&self, signature: &str) -> Action {
        let mut last_first = self.rules.iter().rev();
        last_first
            .find(|rule| rule.pattern.matches(signature))
            .map_or(Action::Activate, |rule| rule.action)
    }

    /// Whether the probe with this signature records. Tries each pattern.
    pub fn is_active(&self, signature: &str) -> bool {
        self.decide(signature) == Action::Activate
    }

    /// Returns the rules; the last matching one decides.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there is no rule, so that everything is active.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// In the form of a file: a rule a line.
impl fmt::Display for PatternList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}
