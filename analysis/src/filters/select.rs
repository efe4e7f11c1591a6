//! Selects records of some types, or of a span of time.

use std::ops::Range;

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// Names record types: the full name, its last part, or either with `*` for any characters.
///
/// `OperationExecutionRecord`, `kieker.common.record.flow.*`, `*Event`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypePattern(Box<str>);

impl TypePattern {
    /// Creates a pattern; every text is valid.
    pub fn new(pattern: impl Into<Box<str>>) -> Self {
        Self(pattern.into())
    }

    /// Whether the type's full name, or the part after its last `.` or `::`, matches.
    pub fn matches(&self, type_name: &str) -> bool {
        let short = type_name.rsplit(['.', ':']).next().unwrap_or(type_name);
        wildcard(self.0.as_bytes(), type_name.as_bytes())
            || wildcard(self.0.as_bytes(), short.as_bytes())
    }
}

/// Matches `*` against any bytes, in time proportional to the product of the lengths at most.
fn wildcard(pattern: &[u8], text: &[u8]) -> bool {
    let (mut next, mut read) = (0, 0);
    // The position of the last `*`, and the end of the text that it matches so far.
    let mut star: Option<(usize, usize)> = None;
    while let Some(byte) = text.get(read) {
        match pattern.get(next) {
            Some(b'*') => {
                star = Some((next, read));
                next += 1;
            }
            Some(wanted) if wanted == byte => {
                next += 1;
                read += 1;
            }
            _ => match &mut star {
                Some((from, swallowed)) => {
                    *swallowed += 1;
                    next = *from + 1;
                    read = *swallowed;
                }
                None => return false,
            },
        }
    }
    pattern.iter().skip(next).all(|byte| *byte == b'*')
}

/// Passes records whose type matches one of several patterns.
#[derive(Debug)]
pub struct ByType<S> {
    patterns: Vec<TypePattern>,
    next: S,
}

impl<S: Stage> ByType<S> {
    /// Passes records whose type matches one of `patterns` to `next`.
    pub fn new(patterns: impl IntoIterator<Item = TypePattern>, next: S) -> Self {
        Self {
            patterns: patterns.into_iter().collect(),
            next,
        }
    }
}

impl<S: Stage> Stage for ByType<S> {
    fn name(&self) -> &'static str {
        "by type"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let matches = |name: &str| self.patterns.iter().any(|pattern| pattern.matches(name));
        // A type is matched once a chunk, not once a record.
        let tables = parcel.chunk().batch.tables();
        let wanted: Vec<_> = tables
            .iter()
            .map(|table| table.schema())
            .filter(|schema| matches(schema.name()))
            .collect();
        let selected = parcel.select(|record| {
            wanted
                .iter()
                .any(|schema| std::ptr::eq(*schema, record.schema()))
        });
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }
}

/// Passes records whose timestamp lies in a span, and optionally records without a timestamp.
#[derive(Debug)]
pub struct ByTime<S> {
    unix_ns: Range<i64>,
    keep_timeless: bool,
    next: S,
}

impl<S: Stage> ByTime<S> {
    /// Passes records with a timestamp in `unix_ns` (nanoseconds since the Unix epoch; the end is
    /// excluded) to `next`. Records without a timestamp are dropped.
    pub fn new(unix_ns: Range<i64>, next: S) -> Self {
        Self {
            unix_ns,
            keep_timeless: false,
            next,
        }
    }

    /// Also passes records without a timestamp.
    #[must_use]
    pub fn keep_timeless(mut self) -> Self {
        self.keep_timeless = true;
        self
    }
}

impl<S: Stage> Stage for ByTime<S> {
    fn name(&self) -> &'static str {
        "by time"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let selected = parcel.select(|record| match record.timestamp() {
            Some(timestamp) => self.unix_ns.contains(&timestamp),
            None => self.keep_timeless,
        });
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }
}

#[cfg(test)]
mod tests;
