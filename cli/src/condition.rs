//! A filter of records by an expression. The language is CEL, Google's Common Expression Language,
//! in which every evaluation ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::record::{RecordFields, RecordRef, ValueRef};
use baler_common::transport::ChunkIdentity;
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, Program, Value};

use crate::exit::Failure;
use crate::output;

/// The variable that holds all fields, for names that are no identifiers.
const FIELDS: &str = "fields";

/// An expression over the fields of a record. Clones share what they count.
#[derive(Clone)]
pub(crate) struct Condition {
    program: Arc<Program>,
    env: Arc<Env>,
    /// The variables that the expression names. Only these are looked up.
    variables: Arc<[String]>,
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
        let env = Arc::new(Env::stdlib());
        let program = env.compile(text).map_err(|errors| {
            let first = errors.errors.first().map_or_else(
                || errors.to_string(),
                |error| {
                    let (line, column) = error.pos;
                    format!("line {line}, column {column}: {}", error.msg)
                },
            );
            Failure::configuration(format!("--where `{text}`: {first}"))
        })?;
        let references = program.references();
        let variables = references.variables().into_iter().map(str::to_owned);
        let variables = variables.collect();
        Ok(Self {
            program: Arc::new(program),
            env,
            variables,
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
        let mut context = Context::with_env(Arc::clone(&self.env));
        for name in self.variables.iter() {
            if let Some(value) = variable(name, record, chunk) {
                context.add_variable_from_value(name.as_str(), value);
            }
        }
        match self.program.execute(&context) {
            Ok(Value::Bool(holds)) => Ok(holds),
            Ok(other) => Err(format!("the result is {}, not a bool", other.type_of())),
            Err(ExecutionError::UndeclaredReference(_) | ExecutionError::NoSuchKey(_)) => Ok(false),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Returns the value of a variable, or `None` if the record lacks it.
fn variable(name: &str, record: RecordRef<'_>, chunk: Option<ChunkIdentity>) -> Option<Value> {
    Some(match name {
        "type" => record.type_name().into(),
        "timestamp" => record.timestamp().map_or(Value::Null, Value::Int),
        "producer" => chunk?.producer.to_string().into(),
        "epoch" => chunk?.epoch.to_string().into(),
        "lane" => Value::Int(chunk?.lane.into()),
        "sequence" => unsigned(chunk?.sequence),
        FIELDS => map(record.fields()),
        name => value(record.field(name)?),
    })
}

/// Converts a field's value. Unsigned integers become signed ones if they fit, so that they compare
/// with plain numbers. Enums become the names of their variants.
fn value(field: ValueRef<'_>) -> Value {
    match field {
        ValueRef::Null => Value::Null,
        ValueRef::Bool(value) => Value::Bool(value),
        ValueRef::Signed(value) => Value::Int(value),
        ValueRef::Unsigned(value) => unsigned(value),
        ValueRef::F32(value) => Value::Float(value.into()),
        ValueRef::F64(value) => Value::Float(value),
        ValueRef::Char(value) => value.to_string().into(),
        ValueRef::String(value) => value.into(),
        ValueRef::Bytes(value) => value.to_vec().into(),
        ValueRef::Enum(variant) => variant.name().map_or(Value::Null, Value::from),
        ValueRef::List(items) => Value::List(Arc::new(items.iter().map(value).collect())),
        ValueRef::Record(fields) => map(fields),
    }
}

fn unsigned(value: u64) -> Value {
    i64::try_from(value).map_or(Value::UInt(value), Value::Int)
}

fn map(fields: RecordFields<'_>) -> Value {
    let entries = fields
        .values()
        .map(|(name, field)| (Key::String(Arc::new(name.to_owned())), value(field)));
    Value::Map(Map {
        map: Arc::new(entries.collect::<HashMap<_, _>>()),
    })
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
