//! A filter of records by an expression. The language is CEL, Google's Common Expression Language,
//! in which every evaluation ends.
//!
//! text -> [`lexer`] -> [`parse`] -> a tree, once; the tree and a record -> [`evaluate`] -> a value

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

use self::evaluate::{EvaluationError, Scope};
use self::parse::Expression;
use self::value::Value;
use crate::exit::Failure;
use crate::output;

mod evaluate;
mod functions;
mod lexer;
mod parse;
mod value;

/// An expression over the fields of a record. Clones share what they count.
#[derive(Clone)]
pub(crate) struct Condition {
    expression: Arc<Expression>,
    counts: Arc<FilterCounts>,
}

#[derive(Debug, Default)]
struct FilterCounts {
    filtered: AtomicU64,
    /// The number of records for which the expression could not be evaluated, and the first reason.
    undecided: Mutex<(u64, Option<String>)>,
}

impl Condition {
    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// The expression is invalid. The error names the place and the reason.
    pub(crate) fn new(text: &str) -> Result<Self, Failure> {
        let expression = parse::parse(text).map_err(|error| {
            Failure::configuration(format!("--where `{text}`: {}", error.in_text(text)))
        })?;
        Ok(Self {
            expression: Arc::new(expression),
            counts: Arc::default(),
        })
    }

    /// Whether the expression is true for a record. A record that does not pass is counted as
    /// filtered.
    pub(crate) fn passes(&self, record: RecordRef<'_>, chunk: Option<ChunkIdentity>) -> bool {
        let passes = self.holds(record, chunk).unwrap_or_else(|reason| {
            let mut undecided = self.undecided();
            undecided.0 = undecided.0.saturating_add(1);
            undecided.1.get_or_insert(reason);
            false
        });
        if !passes {
            self.counts.filtered.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }

    /// Returns the number of records that did not pass.
    pub(crate) fn filtered(&self) -> u64 {
        self.counts.filtered.load(Ordering::Relaxed)
    }

    /// Reports on standard error the records for which the expression could not be evaluated, if
    /// any.
    pub(crate) fn report_undecided(&self) {
        if let (records, Some(reason)) = &*self.undecided() {
            output::say(format_args!(
                "{} records were left out because --where cannot be said for them: {reason}",
                output::number(*records)
            ));
        }
    }

    fn undecided(&self) -> MutexGuard<'_, (u64, Option<String>)> {
        let undecided = self.counts.undecided.lock();
        undecided.unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the expression is true for a record.
    ///
    /// # Errors
    ///
    /// The expression cannot be evaluated: values do not go together, or the result is not a
    /// boolean. A field that the record lacks is no error.
    fn holds(&self, record: RecordRef<'_>, chunk: Option<ChunkIdentity>) -> Result<bool, String> {
        let mut scope = Scope {
            record,
            chunk,
            locals: Vec::new(),
        };
        match self.expression.evaluate(&mut scope) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("the result is {}, not a bool", other.type_name())),
            Err(EvaluationError::Missing) => Ok(false),
            Err(EvaluationError::Failed(reason)) => Err(reason),
        }
    }
}

/// Passes records for which an expression is true.
pub(crate) struct Where<S> {
    condition: Condition,
    next: S,
}

impl<S: Stage> Where<S> {
    pub(crate) fn new(condition: Condition, next: S) -> Self {
        Self { condition, next }
    }
}

impl<S: Stage> Stage for Where<S> {
    fn name(&self) -> &'static str {
        "where"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let chunk = parcel.identity();
        let selected = parcel.select(|record| self.condition.passes(record, chunk));
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }
}

#[cfg(test)]
mod tests;
