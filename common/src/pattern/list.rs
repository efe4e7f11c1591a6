//! Lists of patterns: the last one that matches decides.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::PatternError;
use super::{Dialect, Pattern};

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
    /// They record for a part of the time.
    Cycle(DutyCycle),
}

impl Action {
    /// Whether probes record at this time after the cycles began.
    pub fn is_active(self, elapsed: Duration) -> bool {
        match self {
            Self::Activate => true,
            Self::Deactivate => false,
            Self::Cycle(cycle) => cycle.is_on(elapsed),
        }
    }
}

/// On for a time, off for a time, and so on; both at least 10 ms.
///
/// In a file it is written as `1s/9s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct DutyCycle {
    on: Duration,
    off: Duration,
}

impl DutyCycle {
    /// Neither part is shorter, as each change costs a look at every call site.
    pub const SHORTEST: Duration = Duration::from_millis(10);
    /// Neither part is longer: a year.
    pub const LONGEST: Duration = Duration::from_secs(365 * 24 * 3_600);

    /// A cycle that begins with being on; `None` if a part is shorter than
    /// [`SHORTEST`](Self::SHORTEST) or longer than [`LONGEST`](Self::LONGEST).
    pub fn new(on: Duration, off: Duration) -> Option<Self> {
        let allowed = Self::SHORTEST..=Self::LONGEST;
        (allowed.contains(&on) && allowed.contains(&off)).then_some(Self { on, off })
    }

    /// For how long probes record.
    pub const fn on(self) -> Duration {
        self.on
    }

    /// For how long they do not.
    pub const fn off(self) -> Duration {
        self.off
    }

    /// Whether it is on at this time after its beginning.
    pub fn is_on(self, elapsed: Duration) -> bool {
        self.phase(elapsed) < self.on.as_nanos()
    }

    /// How long it stays as it is at this time.
    pub fn until_change(self, elapsed: Duration) -> Duration {
        let phase = self.phase(elapsed);
        let on = self.on.as_nanos();
        let end = if phase < on { on } else { self.period() };
        let left = u64::try_from(end.saturating_sub(phase)).unwrap_or(u64::MAX);
        Duration::from_nanos(left)
    }

    fn phase(self, elapsed: Duration) -> u128 {
        elapsed.as_nanos().checked_rem(self.period()).unwrap_or(0)
    }

    fn period(self) -> u128 {
        self.on.saturating_add(self.off).as_nanos()
    }
}

impl fmt::Display for DutyCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms/{}ms", self.on.as_millis(), self.off.as_millis())
    }
}

impl FromStr for DutyCycle {
    type Err = LineProblem;

    fn from_str(text: &str) -> Result<Self, LineProblem> {
        let parts = text.split_once('/');
        let times = parts.and_then(|(on, off)| Some((duration(on)?, duration(off)?)));
        times
            .and_then(|(on, off)| Self::new(on, off))
            .ok_or_else(|| LineProblem::DutyCycle(text.into()))
    }
}

/// A whole number and its unit.
fn duration(text: &str) -> Option<Duration> {
    let unit = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(unit)?;
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "min" => number.checked_mul(60).map(Duration::from_secs),
        "h" => number.checked_mul(3_600).map(Duration::from_secs),
        _ => None,
    }
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
    /// Reads a line: `+ pattern`, `- pattern`, or `~ 1s/9s pattern` for a part of the time.
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
        } else if let Some(rest) = line.strip_prefix('~') {
            let rest = rest.trim_start();
            let (cycle, pattern) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
            (Action::Cycle(cycle.parse()?), pattern)
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
            Action::Cycle(cycle) => write!(f, "~ {cycle} ")?,
        }
        fmt::Display::fmt(&self.pattern, f)
    }
}

/// What is wrong with a line of patterns.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LineProblem {
    /// It begins with none of `+`, `-`, `~` and `#`.
    #[error("begins with none of +, -, ~ and #")]
    NoSign,
    /// After `~` there is no duty cycle.
    #[error("`{0}` is no duty cycle such as 1s/9s, of 10 ms to a year each")]
    DutyCycle(Box<str>),
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
