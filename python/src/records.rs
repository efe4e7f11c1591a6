//! Records as dicts.

use std::sync::{Mutex, PoisonError};

use baler::analysis::Parcel;
use baler::record::{AnyValue, NO_TIMESTAMP, RecordFields, Table, ValueRef};
use baler::transport::ChunkIdentity;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::error::ReadError;
use crate::scan::{Query, Scan};

/// Iterates over records as dicts.
#[pyclass(frozen, module = "baler")]
pub(crate) struct RecordIterator {
    state: Mutex<State>,
}

struct State {
    /// `None` for the records of one chunk.
    scan: Option<Scan>,
    identity: bool,
    chunk: Option<Chunk>,
}

/// A chunk, and the position of its next record.
struct Chunk {
    parcel: Parcel,
    /// The next record's position in the chunk.
    position: u32,
    /// The next row of each table.
    rows: Vec<usize>,
    /// How many records of the selection were read.
    selected: usize,
}

impl RecordIterator {
    pub(crate) fn new(query: &Query, identity: bool) -> Result<Self, ReadError> {
        let state = State {
            scan: Some(Scan::new(query)?),
            identity,
            chunk: None,
        };
        Ok(Self {
            state: Mutex::new(state),
        })
    }

    /// Iterates over the records of one chunk.
    pub(crate) fn of(parcel: Parcel, identity: bool) -> Self {
        let state = State {
            scan: None,
            identity,
            chunk: Some(Chunk::new(parcel)),
        };
        Self {
            state: Mutex::new(state),
        }
    }
}

#[pymethods]
impl RecordIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // Another thread may hold it while it waits for Python's lock.
        let locked = self.state.lock_py_attached(py);
        let mut state = locked.unwrap_or_else(PoisonError::into_inner);
        loop {
            let identity = state.identity;
            if let Some(chunk) = &mut state.chunk {
                if let Some(record) = chunk.next(py, identity)? {
                    return Ok(Some(record));
                }
                // It is settled before the next one is read.
                state.chunk = None;
            }
            let Some(scan) = &mut state.scan else {
                return Ok(None);
            };
            match scan.next(py)? {
                Some(parcel) => state.chunk = Some(Chunk::new(parcel)),
                None => return Ok(None),
            }
        }
    }
}

impl Chunk {
    fn new(parcel: Parcel) -> Self {
        Self {
            rows: vec![0; parcel.chunk().batch.tables().len()],
            parcel,
            position: 0,
            selected: 0,
        }
    }

    /// Returns the next selected record.
    fn next<'py>(
        &mut self,
        py: Python<'py>,
        identity: bool,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        let batch = &self.parcel.chunk().batch;
        loop {
            let position = self.position as usize;
            if position >= batch.len() {
                return Ok(None);
            }
            // Without an order there is only one table.
            let at = batch.order().get(position).map_or(0, |at| *at as usize);
            let (table, row) = (&batch.tables()[at], self.rows[at]);
            self.rows[at] += 1;
            self.position += 1;
            if let Some(selection) = self.parcel.selection() {
                if selection.get(self.selected) != Some(&(self.position - 1)) {
                    continue;
                }
                self.selected += 1;
            }
            let record = PyDict::new(py);
            record.set_item("type", table.schema().name())?;
            let time = Some(table.timestamps()[row]).filter(|time| *time != NO_TIMESTAMP);
            record.set_item("timestamp", time)?;
            if identity {
                record.set_item("identity", self.identity(py, self.position - 1)?)?;
            }
            record.set_item("fields", self.fields(py, table, row)?)?;
            return Ok(Some(record));
        }
    }

    fn identity<'py>(&self, py: Python<'py>, index: u32) -> PyResult<Option<Bound<'py, PyDict>>> {
        let Some(chunk) = self.parcel.identity() else {
            return Ok(None);
        };
        let identity = identity_dict(py, &chunk)?;
        identity.set_item("index", index)?;
        Ok(Some(identity))
    }

    fn fields<'py>(
        &self,
        py: Python<'py>,
        table: &Table,
        row: usize,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (dict, strings) = (PyDict::new(py), self.parcel.chunk().batch.strings());
        for (field, column) in table.schema().fields().iter().zip(table.columns()) {
            let value = column.value(row, field.field_type(), strings);
            let value = value.expect("each column has a value for each row");
            dict.set_item(field.name(), to_python(py, value)?)?;
        }
        Ok(dict)
    }
}

/// Returns the identity of a chunk.
pub(crate) fn identity_dict<'py>(
    py: Python<'py>,
    chunk: &ChunkIdentity,
) -> PyResult<Bound<'py, PyDict>> {
    let identity = PyDict::new(py);
    identity.set_item("producer", chunk.producer.to_string())?;
    identity.set_item("epoch", chunk.epoch.to_string())?;
    identity.set_item("lane", chunk.lane)?;
    identity.set_item("sequence", chunk.sequence)?;
    Ok(identity)
}

/// Returns a value as Python has it: integers of any size, bytes, lists, dicts of records and maps.
fn to_python<'py>(py: Python<'py>, value: ValueRef<'_>) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        ValueRef::Signed(value) => value.into_pyobject(py)?.into_any(),
        ValueRef::Unsigned(value) => value.into_pyobject(py)?.into_any(),
        ValueRef::F32(value) => value.into_pyobject(py)?.into_any(),
        ValueRef::F64(value) => value.into_pyobject(py)?.into_any(),
        ValueRef::Char(value) => value.into_pyobject(py)?.into_any(),
        ValueRef::String(value) => PyString::new(py, value).into_any(),
        ValueRef::Bytes(value) => PyBytes::new(py, value).into_any(),
        ValueRef::Enum(value) => value.name().into_pyobject(py)?.into_any(),
        ValueRef::List(list) => {
            let items: PyResult<Vec<_>> = list.iter().map(|item| to_python(py, item)).collect();
            PyList::new(py, items?)?.into_any()
        }
        ValueRef::Map(map) => {
            let dict = PyDict::new(py);
            for (key, value) in map.iter() {
                dict.set_item(key, to_python(py, value)?)?;
            }
            dict.into_any()
        }
        ValueRef::Record(fields) => match AnyValue::plain(fields) {
            Some(value) => any_value(py, AnyValue::json(fields), value)?,
            None => record_dict(py, fields)?.into_any(),
        },
    })
}

/// Returns a value of any type. Text that is no JSON, against its type, stays text.
fn any_value<'py>(
    py: Python<'py>,
    json: Option<&str>,
    plain: ValueRef<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(json) = json
        && let Ok(value) = py.import("json")?.call_method1("loads", (json,))
    {
        return Ok(value);
    }
    to_python(py, plain)
}

fn record_dict<'py>(py: Python<'py>, fields: RecordFields<'_>) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in fields.values() {
        dict.set_item(name, to_python(py, value)?)?;
    }
    Ok(dict)
}
