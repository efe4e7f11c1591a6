//! A sender: values of Python become records of types that their values show.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baler::analysis::sinks::by_reason;
use baler::monitoring::{Overflow, Stats};
use baler::record::kieker::OperationExecutionRecord;
use baler::record::{AnyValue, DynamicRecord, Field, FieldType, Schema, Value};
use baler::{Controller, ControllerConfig};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};

use crate::consume::seconds;
use crate::error::{ReadError, failed};

/// The most lists and dicts in each other.
const MAX_DEPTH: usize = 16;

/// The collectors that are open, by number: they are closed when the interpreter ends.
static OPEN: Mutex<BTreeMap<u64, Controller>> = Mutex::new(BTreeMap::new());

static NEXT: AtomicU64 = AtomicU64::new(0);

/// The time limit for closing a collector that nobody closed.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// Closes all collectors that are open.
#[pyfunction]
pub(crate) fn _close_all(py: Python<'_>) {
    let open = std::mem::take(&mut *OPEN.lock().unwrap_or_else(PoisonError::into_inner));
    py.detach(|| {
        for controller in open.into_values() {
            controller.shutdown(CLOSE_TIMEOUT);
        }
    });
}

/// Sends records to a medium.
#[pyclass(frozen, module = "baler")]
pub(crate) struct Collector {
    controller: Controller,
    number: u64,
    /// Whether a record may have to wait for room.
    waits: bool,
    /// The latest version of each type.
    types: Mutex<HashMap<String, Arc<Shape>>>,
}

/// A record type, as its values have shown it so far.
#[derive(Debug)]
struct Shape {
    kinds: Vec<(String, Kind)>,
    schema: Arc<Schema>,
}

/// What is known of the type of a field. It only grows, so that a type soon keeps its version.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Bool,
    Bytes,
    F64,
    I64,
    List(Box<Kind>),
    /// A mapping that is no dict, with values of this kind.
    Map(Box<Kind>),
    Optional(Box<Kind>),
    Record(Vec<(String, Kind)>),
    String,
    U64,
    /// Values of a mapping that have several types.
    Any,
    /// Only `None`, or items of an empty list.
    Unknown,
}

impl Kind {
    /// Returns the kind of a value.
    fn of(value: &Bound<'_, PyAny>, depth: usize) -> PyResult<Self> {
        if depth > MAX_DEPTH {
            let message = format!("a value has more than {MAX_DEPTH} levels");
            return Err(PyValueError::new_err(message));
        }
        if value.is_none() {
            return Ok(Self::Optional(Box::new(Self::Unknown)));
        }
        // A bool is an int, too.
        if value.is_instance_of::<PyBool>() {
            return Ok(Self::Bool);
        }
        if value.is_instance_of::<PyInt>() {
            return match value.extract::<i64>() {
                Ok(_) => Ok(Self::I64),
                Err(_) => match value.extract::<u64>() {
                    Ok(_) => Ok(Self::U64),
                    Err(_) => Err(PyOverflowError::new_err(format!(
                        "{value} is no integer of 64 bits"
                    ))),
                },
            };
        }
        if value.is_instance_of::<PyFloat>() {
            return Ok(Self::F64);
        }
        if value.is_instance_of::<PyString>() {
            return Ok(Self::String);
        }
        if value.is_instance_of::<PyBytes>() {
            return Ok(Self::Bytes);
        }
        if let Ok(dict) = value.cast::<PyDict>() {
            let mut fields = Vec::with_capacity(dict.len());
            for (name, item) in dict {
                fields.push((name.extract()?, Self::of(&item, depth + 1)?));
            }
            return Ok(Self::Record(fields));
        }
        if let Ok(mapping) = value.cast::<PyMapping>() {
            let mut values = Self::Unknown;
            for entry in mapping.items()? {
                let (_, item): (String, Bound<'_, PyAny>) = entry.extract()?;
                // A value without a kind, such as a list of several types, may still become JSON.
                let kind = Self::of(&item, depth + 1).unwrap_or(Self::Any);
                values = values.merged_or_any(kind);
            }
            return Ok(Self::Map(Box::new(values)));
        }
        if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
            let mut items = Self::Unknown;
            for item in value.try_iter()? {
                items = items.merged(Self::of(&item?, depth + 1)?)?;
            }
            return Ok(Self::List(Box::new(items)));
        }
        let kind = value.get_type().name()?;
        Err(PyTypeError::new_err(format!(
            "{kind} is no type of a field"
        )))
    }

    /// Returns the kind that holds the values of both.
    fn merged(self, other: Self) -> PyResult<Self> {
        Ok(match (self, other) {
            (one, other) if one == other => one,
            (Self::Any, _) | (_, Self::Any) => Self::Any,
            (Self::Unknown, it) | (it, Self::Unknown) => it,
            (Self::Optional(one), Self::Optional(other)) => one.merged(*other)?.optional(),
            (Self::Optional(one), other) | (other, Self::Optional(one)) => {
                one.merged(other)?.optional()
            }
            (Self::I64, Self::F64) | (Self::F64, Self::I64) => Self::F64,
            (Self::I64, Self::U64) | (Self::U64, Self::I64) => Self::U64,
            (Self::List(one), Self::List(other)) => Self::List(Box::new(one.merged(*other)?)),
            (Self::Map(one), Self::Map(other)) => Self::Map(Box::new(one.merged_or_any(*other))),
            (Self::Record(one), Self::Record(other)) => Self::Record(merged(one, other)?),
            (one, other) => {
                let message = format!("a field has values of {} and {}", one.name(), other.name());
                return Err(PyTypeError::new_err(message));
            }
        })
    }

    /// Returns the kind that holds the values of both in one mapping.
    fn merged_or_any(self, other: Self) -> Self {
        self.merged(other).unwrap_or(Self::Any)
    }

    fn optional(self) -> Self {
        match self {
            Self::Optional(_) => self,
            other => Self::Optional(Box::new(other)),
        }
    }

    const fn name(&self) -> &'static str {
        match self {
            Self::Any => "several types",
            Self::Bool => "bool",
            Self::Bytes => "bytes",
            Self::F64 => "float",
            Self::I64 => "int",
            Self::List(_) => "list",
            Self::Map(_) => "mapping",
            Self::Optional(_) | Self::Unknown => "None",
            Self::Record(_) => "dict",
            Self::String => "str",
            Self::U64 => "int above 2^63",
        }
    }

    /// Returns the type of a field; `name` names a record in it.
    fn field_type(&self, name: &str) -> PyResult<FieldType> {
        Ok(match self {
            Self::Any => FieldType::Record(Arc::clone(AnyValue::schema())),
            Self::Bool => FieldType::Bool,
            Self::Bytes => FieldType::Bytes,
            Self::F64 => FieldType::F64,
            Self::I64 => FieldType::I64,
            Self::List(items) => items.field_type(name)?.list(),
            Self::Map(values) => values.field_type(name)?.map(),
            Self::Optional(kind) => kind.field_type(name)?.optional(),
            Self::Record(fields) => FieldType::Record(schema(name, fields)?),
            // Any type can be absent.
            Self::String | Self::Unknown => FieldType::String,
            Self::U64 => FieldType::U64,
        })
    }
}

/// Merges the fields of a record. A field that one of them lacks becomes optional.
fn merged(
    one: Vec<(String, Kind)>,
    mut other: Vec<(String, Kind)>,
) -> PyResult<Vec<(String, Kind)>> {
    let mut fields = Vec::with_capacity(one.len().max(other.len()));
    for (name, kind) in one {
        let kind = match other.iter().position(|(it, _)| *it == name) {
            Some(at) => {
                let merged = kind.merged(other.remove(at).1);
                merged.map_err(|error| in_field(&name, error))?
            }
            None => kind.optional(),
        };
        fields.push((name, kind));
    }
    let new = other.into_iter();
    fields.extend(new.map(|(name, kind)| (name, kind.optional())));
    Ok(fields)
}

/// Names the field of an error.
fn in_field(name: &str, error: PyErr) -> PyErr {
    Python::attach(|py| {
        let text = format!("{name}: {}", error.value(py));
        PyErr::from_type(error.get_type(py), text)
    })
}

fn schema(name: &str, fields: &[(String, Kind)]) -> PyResult<Arc<Schema>> {
    let mut typed = Vec::with_capacity(fields.len());
    for (field, kind) in fields {
        typed.push(Field::new(field.as_str(), kind.field_type(field)?));
    }
    let schema = Schema::new(name, typed);
    let schema = schema.map_err(|error| PyValueError::new_err(format!("{name}: {error}")))?;
    Ok(Arc::new(schema))
}

/// Returns a value of this type; `None` if the value is not of it.
fn to_value(value: &Bound<'_, PyAny>, field_type: &FieldType) -> PyResult<Option<Value>> {
    Ok(match field_type {
        FieldType::Optional(_) if value.is_none() => Some(Value::Null),
        FieldType::Optional(inner) => to_value(value, inner)?,
        FieldType::Bool => value
            .cast::<PyBool>()
            .ok()
            .map(|it| Value::Bool(it.is_true())),
        FieldType::I64 if !value.is_instance_of::<PyBool>() => {
            let int = value.cast::<PyInt>().ok();
            int.and_then(|it| it.extract().ok()).map(Value::Signed)
        }
        FieldType::U64 if !value.is_instance_of::<PyBool>() => {
            let int = value.cast::<PyInt>().ok();
            int.and_then(|it| it.extract().ok()).map(Value::Unsigned)
        }
        FieldType::F64 if value.is_instance_of::<PyFloat>() => Some(Value::F64(value.extract()?)),
        FieldType::F64 if !value.is_instance_of::<PyBool>() => {
            let int = value.cast::<PyInt>().ok();
            let int: Option<i64> = int.and_then(|it| it.extract().ok());
            // Other integers would lose digits.
            let exact = int.filter(|it| it.unsigned_abs() <= 1 << f64::MANTISSA_DIGITS);
            exact.map(|it| Value::F64(it as f64))
        }
        FieldType::String => match value.cast::<PyString>() {
            Ok(text) => Some(Value::String(text.to_str()?.into())),
            Err(_) => None,
        },
        FieldType::Bytes => {
            let bytes = value.cast::<PyBytes>().ok();
            bytes.map(|it| Value::Bytes(bytes::Bytes::copy_from_slice(it.as_bytes())))
        }
        FieldType::List(inner) => {
            if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
                return Ok(None);
            }
            let mut items = Vec::with_capacity(value.len()?);
            for item in value.try_iter()? {
                let Some(item) = to_value(&item?, inner)? else {
                    return Ok(None);
                };
                items.push(item);
            }
            Some(Value::List(items))
        }
        FieldType::Map(_) => match value.cast::<PyMapping>() {
            Ok(mapping) => {
                let inner = field_type.map_value().expect("a schema has whole maps");
                entries(mapping, inner)?.map(Value::map)
            }
            Err(_) => None,
        },
        FieldType::Record(schema) if schema == AnyValue::schema() => Some(any_value(value)?),
        FieldType::Record(schema) => match value.cast::<PyDict>() {
            Ok(dict) => values(dict, schema)?.map(Value::Record),
            Err(_) => None,
        },
        _ => None,
    })
}

/// Returns the entries of a mapping; `None` if a value is not of this type.
fn entries(
    mapping: &Bound<'_, PyMapping>,
    value_type: &FieldType,
) -> PyResult<Option<Vec<(String, Value)>>> {
    let mut entries = Vec::with_capacity(mapping.len()?);
    for entry in mapping.items()? {
        let (key, value): (String, Bound<'_, PyAny>) = entry.extract()?;
        let Some(value) = to_value(&value, value_type)? else {
            return Ok(None);
        };
        entries.push((key, value));
    }
    Ok(Some(entries))
}

/// Returns a value of any type, by the first type that holds it. Lists and dicts become JSON text.
fn any_value(value: &Bound<'_, PyAny>) -> PyResult<Value> {
    let fields = AnyValue::schema().fields();
    let mut values = vec![Value::Null; fields.len()];
    for (slot, field) in values.iter_mut().zip(fields) {
        let found = to_value(value, field.field_type())?;
        if let Some(found) = found {
            *slot = found;
            return Ok(Value::Record(values));
        }
    }
    let json = value.py().import("json")?.call_method1("dumps", (value,))?;
    Ok(AnyValue::Json(json.extract::<String>()?.into()).to_value())
}

/// Returns the values of the fields in order; `None` if they do not fit the schema.
fn values(fields: &Bound<'_, PyDict>, schema: &Schema) -> PyResult<Option<Vec<Value>>> {
    let (mut values, mut found) = (Vec::with_capacity(schema.fields().len()), 0);
    for field in schema.fields() {
        let value = match fields.get_item(field.name())? {
            Some(value) => {
                found += 1;
                to_value(&value, field.field_type())?
            }
            None => matches!(field.field_type(), FieldType::Optional(_)).then_some(Value::Null),
        };
        match value {
            Some(value) => values.push(value),
            None => return Ok(None),
        }
    }
    Ok((found == fields.len()).then_some(values))
}

impl Collector {
    /// Returns the record, by the version of its type that holds it.
    fn record(
        &self,
        py: Python<'_>,
        name: &str,
        timestamp: i64,
        fields: &Bound<'_, PyDict>,
    ) -> PyResult<DynamicRecord> {
        let locked = self.types.lock_py_attached(py);
        let mut types = locked.unwrap_or_else(PoisonError::into_inner);
        let known = types.get(name).map(Arc::clone);
        if let Some(shape) = &known
            && let Some(values) = values(fields, &shape.schema)?
        {
            return record(&shape.schema, timestamp, values);
        }
        let Kind::Record(kinds) = Kind::of(fields, 0)? else {
            return Err(PyTypeError::new_err("the fields of a record are a dict"));
        };
        let kinds = match known {
            Some(shape) => merged(shape.kinds.clone(), kinds)?,
            None => kinds,
        };
        let schema = schema(name, &kinds)?;
        let values = values(fields, &schema)?;
        let values = values.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{name}: values do not fit those of earlier records"
            ))
        })?;
        let shape = Shape {
            kinds,
            schema: Arc::clone(&schema),
        };
        types.insert(name.to_owned(), Arc::new(shape));
        record(&schema, timestamp, values)
    }
}

impl Collector {
    /// Removes it from the open collectors.
    fn forget(&self) {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&self.number);
    }

    fn send_fields(
        &self,
        py: Python<'_>,
        name: &str,
        timestamp: Option<i64>,
        fields: &Bound<'_, PyDict>,
    ) -> PyResult<bool> {
        let timestamp = timestamp.unwrap_or_else(|| self.controller.clock().unix_ns());
        let record = self.record(py, name, timestamp, fields)?;
        Ok(match self.waits {
            true => py.detach(|| self.controller.emit_as_is(record.as_ref())),
            false => self.controller.emit_as_is(record.as_ref()),
        })
    }
}

fn record(schema: &Arc<Schema>, timestamp: i64, values: Vec<Value>) -> PyResult<DynamicRecord> {
    let record = DynamicRecord::new(Arc::clone(schema), Some(timestamp), values);
    record.map_err(|error| PyTypeError::new_err(error.to_string()))
}

#[pymethods]
impl Collector {
    #[new]
    #[pyo3(signature = (uri, *, application=None, chunk_records=None, wait_time=None, memory=None, overflow="drop-newest", spool=None))]
    fn new(
        uri: &str,
        application: Option<String>,
        chunk_records: Option<usize>,
        wait_time: Option<f64>,
        memory: Option<usize>,
        overflow: &str,
        spool: Option<PathBuf>,
    ) -> PyResult<Self> {
        let mut config: ControllerConfig = uri.parse().map_err(ReadError::from)?;
        config.application = application.map(String::into_boxed_str);
        config.chunk_records = chunk_records;
        config.spool = spool;
        config.wait_time = wait_time
            .map(|time| seconds("wait_time", time))
            .transpose()?;
        let overflow = match overflow {
            "block" => Overflow::Block,
            "drop-newest" => Overflow::DropNewest,
            "drop-oldest" => Overflow::DropOldest,
            other => {
                let message = format!(
                    "overflow is {other:?}; it can be \"block\", \"drop-newest\" or \"drop-oldest\""
                );
                return Err(PyValueError::new_err(message));
            }
        };
        let controller = Controller::with(config, |mut builder| {
            if let Some(bytes) = memory {
                builder = builder.memory(bytes);
            }
            builder.overflow(overflow)
        });
        let controller = controller.map_err(ReadError::from)?;
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        open.insert(number, controller.clone());
        Ok(Self {
            controller,
            number,
            waits: overflow == Overflow::Block,
            types: Mutex::default(),
        })
    }

    #[pyo3(signature = (r#type, timestamp=None, /, **fields))]
    fn emit(
        &self,
        py: Python<'_>,
        r#type: &str,
        timestamp: Option<i64>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<bool> {
        match fields {
            Some(fields) => self.send_fields(py, r#type, timestamp, fields),
            None => self.send_fields(py, r#type, timestamp, &PyDict::new(py)),
        }
    }

    #[pyo3(signature = (record, timestamp=None))]
    fn send(
        &self,
        py: Python<'_>,
        record: &Bound<'_, PyAny>,
        timestamp: Option<i64>,
    ) -> PyResult<bool> {
        if let Ok(dict) = record.cast::<PyDict>() {
            let part = |key: &str| {
                let part = dict.get_item(key)?;
                part.ok_or_else(|| PyValueError::new_err(format!("the dict lacks {key:?}")))
            };
            let (name, fields) = (part("type")?, part("fields")?);
            let own = dict.get_item("timestamp")?;
            let own = own.map(|it| it.extract::<Option<i64>>()).transpose()?;
            let timestamp = timestamp.or(own.flatten());
            let fields = fields.cast::<PyDict>().map_err(PyErr::from)?;
            return self.send_fields(py, name.extract()?, timestamp, fields);
        }
        let dataclasses = py.import("dataclasses")?;
        let class = record.get_type();
        let is_dataclass = dataclasses.call_method1("is_dataclass", (&class,))?;
        if !is_dataclass.is_truthy()? {
            let message = format!("{} is no dict and no dataclass", class.name()?);
            return Err(PyTypeError::new_err(message));
        }
        let name = format!("{}.{}", class.module()?, class.qualname()?);
        let fields = dataclasses.call_method1("asdict", (record,))?;
        let fields = fields.cast::<PyDict>().map_err(PyErr::from)?;
        self.send_fields(py, &name, timestamp, fields)
    }

    /// A call that `baler.probe` has seen: trace, begin and end in nanoseconds, order and depth.
    fn _emit_call(&self, signature: String, host: String, call: (i64, i64, i64, i32, i32)) -> bool {
        let (trace_id, tin, tout, eoi, ess) = call;
        self.controller.emit(&OperationExecutionRecord {
            operation_signature: signature,
            session_id: "<no-session-id>".to_owned(),
            trace_id,
            tin,
            tout,
            hostname: host,
            eoi,
            ess,
        })
    }

    #[pyo3(signature = (timeout=5.0))]
    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<()> {
        let timeout = seconds("timeout", timeout)?;
        py.detach(|| self.controller.flush(timeout))
            .map_err(|error| failed(&error))
    }

    #[getter]
    fn account<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.controller.stats();
        account(py, &stats)
    }

    #[pyo3(signature = (timeout=5.0))]
    fn close<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Bound<'py, PyDict>> {
        let timeout = seconds("timeout", timeout)?;
        let report = py.detach(|| self.controller.shutdown(timeout));
        self.forget();
        let account = account(py, &report.stats)?;
        account.set_item("on_time", report.on_time)?;
        account.set_item("error", report.error.as_deref())?;
        Ok(account)
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.close(py, 5.0)?;
        Ok(())
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        self.forget();
        // It waits for nothing if the collector is closed.
        self.controller.shutdown(CLOSE_TIMEOUT);
    }
}

/// Returns the account of a collector.
fn account<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let (account, dropped) = (PyDict::new(py), PyDict::new(py));
    for (reason, records) in by_reason(&stats.dropped) {
        dropped.set_item(reason, records)?;
    }
    account.set_item("emitted", stats.emitted)?;
    account.set_item("delivered", stats.delivered)?;
    account.set_item("spooled", stats.spooled)?;
    account.set_item("dropped", dropped)?;
    Ok(account)
}
