//! A filter of records by an expression. The language is CEL, Google's Common Expression Language,
//! in which every evaluation ends.
//!
//! text -> [`lexer`] -> [`parse`] -> a tree, once; the tree and a record -> [`evaluate`] -> a value

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use self::evaluate::Scope;
use self::parse::{Expression, Names};
use self::value::{EvaluationError, FieldValue, Value};
use super::fields::{FieldSearch, SelectionError};
use crate::{AnalysisError, Parcel, Stage};
use baler_common::mutex::lock;
use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

mod evaluate;
mod functions;
mod lexer;
mod operator;
mod parse;
mod value;

/// The most pairs of field and type that are counted separately among values that cannot be judged.
const MAX_KINDS: usize = 20;

/// An expression over the fields of a record. Clones share what they count.
#[derive(Debug, Clone)]
pub struct Condition {
    expression: Arc<Expression>,
    search: Arc<Mutex<FieldSearch>>,
    filtered: Arc<AtomicU64>,
    undecided: Arc<Mutex<Undecided>>,
}

/// The records for which the expression could not be evaluated.
#[derive(Debug, Default)]
pub struct Undecided {
    /// Their number.
    pub records: u64,
    /// By the field and the type of its value, both empty if no field is the reason.
    pub kinds: BTreeMap<(String, &'static str), UndecidedKind>,
}

/// Records with values of one field and type, of which none can be judged.
#[derive(Debug)]
pub struct UndecidedKind {
    /// Their number.
    pub records: u64,
    /// The first value.
    pub example: String,
    /// Why it has no answer.
    pub reason: String,
}

impl Condition {
    /// Parses an expression. Messages call it by the name of the caller's `setting`.
    ///
    /// # Errors
    ///
    /// The expression is invalid. The error names the place and the reason.
    pub fn new(setting: &'static str, text: &str) -> Result<Self, SelectionError> {
        let expression = parse::parse(text).map_err(|error| {
            SelectionError(format!("{setting} `{text}`: {}", error.in_text(text)).into())
        })?;
        let mut names = Names::default();
        names.add(&expression);
        let hint = "has(name) in the expression says that records may lack a field";
        let search = FieldSearch::new(setting, hint, names.needed()).for_condition();
        Ok(Self {
            search: Arc::new(Mutex::new(search)),
            expression: Arc::new(expression),
            filtered: Arc::default(),
            undecided: Arc::default(),
        })
    }

    /// Whether the expression is true for a record. A record that does not pass is counted as
    /// filtered.
    pub fn passes(&self, record: RecordRef<'_>, chunk: Option<ChunkIdentity>) -> bool {
        let passes = self.holds(record, chunk).unwrap_or_else(|unclear| {
            self.undecided().add(unclear);
            false
        });
        if !passes {
            self.filtered.fetch_add(1, Ordering::Relaxed);
        }
        passes
    }

    /// Returns the number of records that did not pass.
    pub fn filtered(&self) -> u64 {
        self.filtered.load(Ordering::Relaxed)
    }

    /// Returns the records for which the expression could not be evaluated. They are part of the
    /// filtered ones.
    pub fn undecided(&self) -> MutexGuard<'_, Undecided> {
        lock(&self.undecided)
    }

    /// Whether the expression is true for a record.
    ///
    /// # Errors
    ///
    /// The expression cannot be evaluated: values do not go together, or the result is not a
    /// boolean. A field that the record lacks is no error.
    fn holds(
        &self,
        record: RecordRef<'_>,
        chunk: Option<ChunkIdentity>,
    ) -> Result<bool, (String, Option<FieldValue>)> {
        let mut scope = Scope::new(record, chunk);
        match self.expression.evaluate(&mut scope) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => {
                let reason = format!("the result is {}, not a bool", other.type_name());
                Err((reason, self.expression.field(&scope)))
            }
            Err(EvaluationError::Missing) => Ok(false),
            Err(EvaluationError::Failed { reason, field }) => Err((reason, field)),
        }
    }
}

impl Undecided {
    fn add(&mut self, (reason, field): (String, Option<FieldValue>)) {
        self.records += 1;
        let (mut kind, example) = match field {
            Some(field) => ((field.name, field.type_name), field.example),
            None => ((String::new(), ""), String::new()),
        };
        if self.kinds.len() >= MAX_KINDS && !self.kinds.contains_key(&kind) {
            kind = ("(other)".to_owned(), "(other)");
        }
        let first = || UndecidedKind {
            records: 0,
            example,
            reason,
        };
        self.kinds.entry(kind).or_insert_with(first).records += 1;
    }
}

/// Passes records for which an expression is true.
#[derive(Debug)]
pub struct Where<S> {
    condition: Condition,
    next: S,
}

impl<S: Stage> Where<S> {
    /// Passes records that meet the condition to `next`.
    pub fn new(condition: Condition, next: S) -> Self {
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
        lock(&self.condition.search).look(&parcel)?;
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
