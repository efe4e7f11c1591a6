//! Lists of patterns: the last one that matches decides.

use std::fmt;

use super::{Dialect, Pattern, PatternError};

/// The most rules of a list.
pub const MAX_RULES: usize = 10_000;

/// What becomes of the probes that a pattern matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Action {
    /// They record. What no pattern matches does so, too.
    #[default]
    Activate,
    /// They do not.
    Deactivate,
}

/// A pattern and what becomes of what it matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What is meant.
    pub pattern: Pattern,
    /// What becomes of it.
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

/// What is wrong with a line of patterns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// It begins with none of `+`, `-` and `#`.
    #[error("begins with none of +, - and #")]
    NoSign,
    /// What follows is no pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
    /// There are as many rules as a list holds.
    #[error(transparent)]
    Full(#[from] ListFull),
}

/// A line of patterns that was left out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct LineError {
    /// Its number, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub problem: LineProblem,
}

/// A list has no room for another pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a list of patterns holds {MAX_RULES} at most")]
pub struct ListFull;

/// Rules in order: the last one that matches decides, and what none matches is active.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PatternList {
    rules: Vec<Rule>,
}

impl PatternList {
    /// A list by which everything is active.
    pub const fn new() -> Self {
        Self { rules: Vec::new() }
    }

    /// Reads a file of Kieker's adaptive monitoring: a [`Rule`] a line; lines that begin with `#`,
    /// and empty ones, do not count.
    ///
    /// A line that is wrong is left out and told of, as in Kieker; it never stops the others.
    pub fn parse(text: &str, dialect: Dialect) -> (Self, Vec<LineError>) {
        let mut list = Self::new();
        let mut errors = Vec::new();
        // As other systems begin a text.
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

    /// Adds a rule behind all others, over which it prevails.
    ///
    /// A rule of the same pattern, which would never be asked again, makes room for it; so do all
    /// rules for the pattern `*`.
    /// Kieker's list, in contrast, grows with each call.
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

    /// What becomes of the probe with this signature.
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

    /// The rules, the last one prevails.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Whether there is no rule, so that everything is active.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// As a file: a rule a line.
impl fmt::Display for PatternList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}
