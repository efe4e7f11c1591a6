//! Errors and warnings with their positions.

use std::ops::Range;

/// The most findings of a file.
pub(crate) const MAX_FINDINGS: usize = 200;

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    pub(crate) fn to(self, last: Self) -> Self {
        Self::new(self.start, last.end)
    }
}

impl From<Span> for Range<usize> {
    fn from(span: Span) -> Self {
        span.start..span.end
    }
}

/// Whether a finding makes the files unusable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Severity {
    /// The files are wrong.
    Error,
    /// The files can be used.
    Warning,
}

impl Severity {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

/// An error or a warning.
#[derive(Debug, Clone, PartialEq)]
pub struct Finding {
    /// Whether it is an error.
    pub severity: Severity,
    /// The rule, such as `unknown-name`.
    pub rule: &'static str,
    /// The number of the file, counted from 0.
    pub file: usize,
    /// The position in the file.
    pub span: Span,
    /// The problem.
    pub message: String,
    /// How to solve it.
    pub hint: Option<String>,
    /// Another place that belongs to the problem: file, position and a remark.
    pub related: Option<(usize, Span, &'static str)>,
    /// The text to write in place of that at the position.
    pub replacement: Option<&'static str>,
}

impl Finding {
    pub(crate) fn error(
        rule: &'static str,
        file: usize,
        span: Span,
        message: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            rule,
            file,
            span,
            message: message.into(),
            hint: None,
            related: None,
            replacement: None,
        }
    }

    pub(crate) fn warning(
        rule: &'static str,
        file: usize,
        span: Span,
        message: impl Into<String>,
    ) -> Self {
        let mut warning = Self::error(rule, file, span, message);
        warning.severity = Severity::Warning;
        warning
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn related(mut self, file: usize, span: Span, remark: &'static str) -> Self {
        self.related = Some((file, span, remark));
        self
    }
}

/// Returns the line and the column of a position, both counted from 1. The column counts
/// characters.
pub fn line_and_column(text: &str, position: usize) -> (usize, usize) {
    let before = text.get(..position).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let last = before.rsplit('\n').next().unwrap_or(before);
    (line, last.chars().count() + 1)
}
