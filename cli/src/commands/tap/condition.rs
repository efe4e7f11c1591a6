//! Records for which an expression is true. The language is CEL, Google's Common Expression
//! Language, in which every expression ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::record::{RecordFields, RecordRef, ValueRef};
use baler_common::transport::ChunkIdentity;
use cel::objects::{Key, Map};
use cel::{Context, Env, ExecutionError, Program, Value};

use crate::exit::Failure;
use crate::output;

/// The variable that holds all fields, for names that are no identifiers.
const FIELDS: &str = "fields";

/// An expression over the fields of a record.
pub(in crate::commands) struct Condition {
    program: Program,
    env: Arc<Env>,
    /// The variables that it names: only these are looked up.
    variables: Vec<String>,
}

impl Condition {
    /// Reads an expression.
    ///
    /// # Errors
    ///
    /// It is none: says where and why.
    pub(in crate::commands) fn new(text: &str) -> Result<Self, Failure> {
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
            program,
            env,
            variables,
        })
    }

    /// Whether it is true for a record.
    ///
    /// # Errors
    ///
    /// It cannot be said: values do not go together, or the result is neither true nor false. A
    /// field that the record lacks is no error.
    fn holds(&self, record: RecordRef<'_>, chunk: Option<ChunkIdentity>) -> Result<bool, String> {
        let mut context = Context::with_env(Arc::clone(&self.env));
        for name in &self.variables {
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

/// The value of a variable; nothing when the record lacks it.
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

/// A field's value. Unsigned integers become signed ones where they fit, so that they compare with
/// plain numbers; enums become the names of their variants.
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
pub(in crate::commands) struct Where<S> {
    condition: Condition,
    failures: Failures,
    next: S,
}

/// For how many records an expression could not be said, and why for the first. Cloning shares.
#[derive(Debug, Clone, Default)]
pub(in crate::commands) struct Failures(Arc<Mutex<(u64, Option<String>)>>);

impl Failures {
    fn add(&self, reason: String) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.0 = failures.0.saturating_add(1);
        failures.1.get_or_insert(reason);
    }

    /// Tells of them on standard error, if there were any.
    pub(in crate::commands) fn tell(&self) {
        let failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let (records, Some(reason)) = &*failures {
            output::say(format_args!(
                "{} records were not shown because --where cannot be said for them: {reason}",
                output::number(*records)
            ));
        }
    }
}

impl<S: Stage> Where<S> {
    pub(in crate::commands) fn new(condition: Condition, next: S) -> Self {
        Self {
            condition,
            failures: Failures::default(),
            next,
        }
    }

    /// A handle to what could not be said.
    pub(in crate::commands) fn failures(&self) -> Failures {
        self.failures.clone()
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
        let selected = parcel.select(|record| {
            self.condition
                .holds(record, chunk)
                .unwrap_or_else(|reason| {
                    self.failures.add(reason);
                    false
                })
        });
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }
}

#[cfg(test)]
mod tests {
    use baler_common::record::BatchBuilder;
    use baler_common::record::kieker::OperationExecutionRecord;

    use super::*;

    fn holds(text: &str) -> Result<bool, String> {
        let record = OperationExecutionRecord {
            operation_signature: "void shop.Cart.add(int)".into(),
            trace_id: 17,
            tin: 5,
            session_id: "s".into(),
            tout: 6,
            hostname: "h".into(),
            eoi: 0,
            ess: 0,
        };
        let mut batch = BatchBuilder::new();
        batch.push(&record).unwrap();
        let batch = batch.take();
        let record = batch.records().next().unwrap();
        Condition::new(text).unwrap().holds(record, None)
    }

    #[test]
    fn expressions_see_fields_type_and_timestamp() {
        for (text, expected) in [
            ("traceId == 17", true),
            ("traceId > 17", false),
            ("traceId < 17.5 && tin + 1 == 6", true),
            ("operationSignature.contains('Cart')", true),
            ("operationSignature.startsWith('int')", false),
            ("type.endsWith('OperationExecutionRecord')", true),
            ("timestamp == null || timestamp > 0", true),
            ("fields['traceId'] == 17", true),
            ("has(fields.eoi) && !has(fields.nothing)", true),
            ("traceId in [1, 17]", true),
        ] {
            assert_eq!(holds(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_record_that_lacks_a_field_does_not_match() {
        for text in ["nothing == 1", "fields.nothing == 1", "producer == 'x'"] {
            assert_eq!(holds(text), Ok(false), "{text}");
        }
        assert_eq!(holds("traceId == 17 || nothing == 1"), Ok(true));
    }

    #[test]
    fn what_cannot_be_said_tells_why() {
        let error = holds("traceId").unwrap_err();
        assert_eq!(error, "the result is int, not a bool");
        assert!(holds("traceId + 'x' == 'y'").is_err());
        assert!(holds("traceId / 0 == 1").is_err());
    }

    #[test]
    fn what_is_no_expression_is_told_with_its_place() {
        let error = Condition::new("traceId ==").err().unwrap().message;
        assert!(
            error.contains("--where `traceId ==`: line 1, column "),
            "{error}"
        );
        assert!(Condition::new("").is_err());
    }
}
