//! Record types as tables, which Arrow's C interface hands over without a copy.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use arrow_array::array::StructArray;
use arrow_array::ffi::to_ffi;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, SchemaRef};
use baler::analysis::Parcel;
use baler::analysis::filters::TypePattern;
use baler::arrow::{Converter, Times, TypeBatch, schema_of};
use baler::record::Schema;
use baler::transport::panic_text;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyCapsule, PyTuple};

use crate::error::ReadError;
use crate::scan::{Query, Scan, Step};

/// How often a stream looks for signals, which needs Python's lock.
const SIGNALS_INTERVAL: Duration = Duration::from_millis(50);

/// What `read` returns: one table a record type.
#[pyclass(frozen, module = "baler")]
pub(crate) struct Tables {
    query: Query,
    columns: Columns,
    known: Mutex<Known>,
}

/// The columns beside the fields.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Columns {
    pub(crate) identity: bool,
    pub(crate) times: Times,
}

impl Columns {
    pub(crate) fn converter(self) -> Converter {
        let converter = Converter::new(self.times);
        match self.identity {
            true => converter.with_identity(),
            false => converter,
        }
    }

    fn schema(self, schema: &Schema) -> SchemaRef {
        Arc::new(schema_of(schema, self.times, self.identity))
    }
}

/// The record types that were found so far.
#[derive(Debug, Default)]
struct Known {
    schemas: Vec<Arc<Schema>>,
    is_complete: bool,
}

impl Known {
    /// Adds the types of a chunk's selected records.
    fn add(&mut self, parcel: &Parcel) {
        let mut add = |schema: &Arc<Schema>| {
            let mut known = self.schemas.iter();
            if !known.any(|it| it.fingerprint() == schema.fingerprint()) {
                self.schemas.push(Arc::clone(schema));
            }
        };
        match parcel.selection() {
            Some(_) => parcel.records().for_each(|(_, it)| add(it.schema())),
            None => {
                let tables = parcel.chunk().batch.tables().iter();
                let filled = tables.filter(|table| !table.is_empty());
                filled.for_each(|table| add(table.schema()));
            }
        }
    }
}

/// Returns the types with this name: the full one, or its last part.
pub(crate) fn named(schemas: &[Arc<Schema>], name: &str) -> Vec<Arc<Schema>> {
    let pattern = TypePattern::new(name);
    let exact = schemas.iter().filter(|it| it.name() == name);
    let exact: Vec<_> = exact.cloned().collect();
    match exact.is_empty() {
        true => {
            let matching = schemas.iter().filter(|it| pattern.matches(it.name()));
            matching.cloned().collect()
        }
        false => exact,
    }
}

impl Tables {
    pub(crate) fn new(query: Query, columns: Columns) -> Self {
        Self {
            query,
            columns,
            known: Mutex::default(),
        }
    }

    /// Reads until `is_enough`, and returns the types up to there. The types of an earlier pass are
    /// remembered.
    fn look<T>(
        &self,
        py: Python<'_>,
        mut found: impl FnMut(&Known) -> Option<T>,
    ) -> PyResult<Option<T>> {
        let locked = self.known.lock_py_attached(py);
        let mut known = locked.unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = found(&known) {
            return Ok(Some(found));
        }
        let mut scan = Scan::new(&self.query)?;
        while !known.is_complete {
            match scan.next(py)? {
                Some(parcel) => known.add(&parcel),
                None => known.is_complete = true,
            }
            if let Some(found) = found(&known) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    fn all(&self, py: Python<'_>) -> PyResult<Vec<Arc<Schema>>> {
        let all = self.look(py, |it| it.is_complete.then(|| it.schemas.clone()))?;
        Ok(all.expect("the last look sees all types"))
    }

    fn table(&self, schema: &Arc<Schema>, is_only: bool) -> Table {
        Table {
            query: self.query.clone(),
            columns: self.columns,
            schema: Arc::clone(schema),
            is_only,
        }
    }
}

#[pymethods]
impl Tables {
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let tables = self.all(py)?;
        let tables = tables.iter().map(|schema| self.table(schema, false));
        PyTuple::new(py, tables.collect::<Vec<_>>())?.call_method0("__iter__")
    }

    fn batches(&self) -> PyResult<BatchIterator> {
        let batches = Batches::new(&self.query, self.columns.converter(), None)?;
        Ok(BatchIterator(Mutex::new(batches)))
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.all(py)?.len())
    }

    fn __contains__(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        let found = self.look(py, |it| {
            (!named(&it.schemas, name).is_empty()).then_some(())
        })?;
        Ok(found.is_some())
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let found = self.look(py, |it| {
            let named = named(&it.schemas, name);
            (!named.is_empty()).then_some(named)
        })?;
        match found.as_deref() {
            Some([schema]) => Ok(self.table(schema, true)),
            Some(several) => Err(ReadError::Version(several_types(name, several)).into()),
            None => {
                let names: Vec<_> = self
                    .all(py)?
                    .iter()
                    .map(|it| it.name().to_owned())
                    .collect();
                let names = match names.is_empty() {
                    true => "there are no records".to_owned(),
                    false => format!("there are {}", names.join(", ")),
                };
                Err(PyKeyError::new_err(format!(
                    "no record type is {name}; {names}"
                )))
            }
        }
    }

    fn __repr__(&self) -> String {
        let locked = self.known.lock();
        let known = locked.unwrap_or_else(PoisonError::into_inner);
        let names = known.schemas.iter().map(|it| it.name());
        let more = if known.is_complete { "" } else { ", ..." };
        format!(
            "<baler.Tables: {}{more}>",
            names.collect::<Vec<_>>().join(", ")
        )
    }
}

fn several_types(name: &str, types: &[Arc<Schema>]) -> String {
    let versions = types
        .iter()
        .map(|it| format!("{} version {:?}", it.name(), it.fingerprint()));
    format!(
        "{name} names several tables: {}; iterate over the tables, and choose by type and version",
        versions.collect::<Vec<_>>().join(", ")
    )
}

/// The records of one type, in one version of the type.
#[pyclass(frozen, module = "baler")]
pub(crate) struct Table {
    query: Query,
    columns: Columns,
    schema: Arc<Schema>,
    /// Whether the caller named the type, and knows of no other version. Otherwise each version has
    /// a table of its own.
    is_only: bool,
}

impl Table {
    fn batches(&self) -> Result<Batches, ReadError> {
        let converter = self.columns.converter();
        let converter = converter.with_only(self.schema.fingerprint());
        let only = self.is_only.then(|| Arc::clone(&self.schema));
        Batches::new(&self.query, converter, only)
    }
}

#[pymethods]
impl Table {
    /// The name of the record type.
    #[getter]
    fn r#type(&self) -> &str {
        self.schema.name()
    }

    /// The fingerprint of the record type's fields, in hexadecimal digits.
    #[getter]
    fn version(&self) -> String {
        format!("{:?}", self.schema.fingerprint())
    }

    /// The fields of the record type, and their types.
    #[getter]
    fn fields(&self) -> Vec<(String, String)> {
        let fields = self.schema.fields().iter();
        fields
            .map(|it| (it.name().to_owned(), it.field_type().to_string()))
            .collect()
    }

    fn __iter__(&self) -> PyResult<BatchIterator> {
        Ok(BatchIterator(Mutex::new(self.batches()?)))
    }

    fn __repr__(&self) -> String {
        format!(
            "<baler.Table {} version {}>",
            self.schema.name(),
            self.version()
        )
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.columns.schema(&self.schema))
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Arrow's specification lets a producer ignore it.
        drop(requested_schema);
        let threading = py.import("threading")?;
        let is_main = threading
            .call_method0("current_thread")?
            .is(threading.call_method0("main_thread")?);
        let stream = BatchStream {
            batches: self.batches()?,
            schema: self.columns.schema(&self.schema),
            signals: is_main.then(|| thread::current().id()),
            next_look: Instant::now(),
            is_broken: false,
        };
        let stream = FFI_ArrowArrayStream::new(Box::new(stream));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }
}

fn schema_capsule<'py>(py: Python<'py>, schema: &SchemaRef) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(&**schema).map_err(ReadError::from)?;
    PyCapsule::new_with_value(py, schema, c"arrow_schema")
}

/// Records by type, chunk by chunk.
struct Batches {
    scan: Scan,
    converter: Converter,
    /// The type whose other versions are an error.
    only: Option<Arc<Schema>>,
    /// The other types of the last chunk.
    ready: VecDeque<TypeBatch>,
}

impl Batches {
    fn new(
        query: &Query,
        converter: Converter,
        only: Option<Arc<Schema>>,
    ) -> Result<Self, ReadError> {
        Ok(Self {
            scan: Scan::new(query)?,
            converter,
            only,
            ready: VecDeque::new(),
        })
    }

    /// Returns the next records of a chunk; `None` if it has no more of the wanted types.
    fn convert(&mut self, parcel: &Parcel) -> Result<Option<TypeBatch>, ReadError> {
        let records = &parcel.chunk().batch;
        if let Some(only) = &self.only {
            let (name, version) = (only.name(), only.fingerprint());
            let tables = records.tables().iter().map(|table| table.schema());
            let mut others = tables.filter(|it| it.name() == name && it.fingerprint() != version);
            if let Some(other) = others.next() {
                let both = [Arc::clone(only), Arc::clone(other)];
                return Err(ReadError::Version(several_types(name, &both)));
            }
        }
        let identity = parcel.identity();
        let selection = parcel.selection();
        let batches = self
            .converter
            .convert(records, selection, identity.as_ref())?;
        self.ready.extend(batches);
        Ok(self.ready.pop_front())
    }
}

/// Iterates over batches, one a chunk and type.
#[pyclass(frozen, module = "baler")]
pub(crate) struct BatchIterator(Mutex<Batches>);

#[pymethods]
impl BatchIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Batch>> {
        let locked = self.0.lock_py_attached(py);
        let batches = &mut *locked.unwrap_or_else(PoisonError::into_inner);
        if let Some(batch) = batches.ready.pop_front() {
            return Ok(Some(batch.into()));
        }
        while let Some(parcel) = batches.scan.next(py)? {
            if let Some(batch) = py.detach(|| batches.convert(&parcel))? {
                return Ok(Some(batch.into()));
            }
        }
        Ok(None)
    }
}

/// Records of one type from one chunk.
#[pyclass(frozen, module = "baler")]
pub(crate) struct Batch {
    schema: Arc<Schema>,
    rows: RecordBatch,
}

impl Batch {
    pub(crate) fn schema(&self) -> Arc<Schema> {
        Arc::clone(&self.schema)
    }
}

impl From<TypeBatch> for Batch {
    fn from(batch: TypeBatch) -> Self {
        Self {
            schema: batch.schema,
            rows: batch.rows,
        }
    }
}

#[pymethods]
impl Batch {
    /// The name of the record type.
    #[getter]
    fn r#type(&self) -> &str {
        self.schema.name()
    }

    /// The fingerprint of the record type's fields, in hexadecimal digits.
    #[getter]
    fn version(&self) -> String {
        format!("{:?}", self.schema.fingerprint())
    }

    fn __len__(&self) -> usize {
        self.rows.num_rows()
    }

    fn __repr__(&self) -> String {
        let (records, name) = (self.rows.num_rows(), self.schema.name());
        format!("<baler.Batch of {records} records of {name}>")
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.rows.schema())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        drop(requested_schema);
        let rows = StructArray::from(self.rows.clone());
        let (array, _) = to_ffi(&rows.to_data()).map_err(ReadError::from)?;
        let schema = schema_capsule(py, &self.rows.schema())?;
        Ok((
            schema,
            PyCapsule::new_with_value(py, array, c"arrow_array")?,
        ))
    }
}

/// Batches for Arrow's C stream. Its owner may call from any thread, with Python's lock or without.
struct BatchStream {
    batches: Batches,
    schema: SchemaRef,
    /// The main thread, if it made the stream: only there Python handles signals.
    signals: Option<ThreadId>,
    next_look: Instant,
    is_broken: bool,
}

impl BatchStream {
    fn next_batch(&mut self) -> Result<Option<RecordBatch>, ReadError> {
        loop {
            let step = self.batches.scan.step()?;
            self.look_for_signals()?;
            match step {
                Step::Chunk(parcel) => {
                    if let Some(batch) = self.batches.convert(&parcel)? {
                        return Ok(Some(batch.rows));
                    }
                }
                Step::End => return Ok(None),
                Step::Idle => {}
            }
        }
    }

    /// Handles signals now and then.
    fn look_for_signals(&mut self) -> Result<(), ReadError> {
        let now = Instant::now();
        if self.signals != Some(thread::current().id()) || now < self.next_look {
            return Ok(());
        }
        self.next_look = now + SIGNALS_INTERVAL;
        let handled = Python::attach(|py| {
            py.check_signals().inspect_err(|_| {
                // Arrow's stream carries no exception, only text. So the signal comes once more,
                // and Python raises its exception as soon as the owner of the stream returns.
                py.import("_thread")
                    .and_then(|it| it.call_method0("interrupt_main"))
                    .ok();
            })
        });
        handled.map_err(ReadError::Interrupted)
    }
}

impl Iterator for BatchStream {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_broken {
            return None;
        }
        // A panic must not pass through C.
        let next = catch_unwind(AssertUnwindSafe(|| self.next_batch()));
        let next = next
            .unwrap_or_else(|panic| Err(ReadError::Panic(panic_text(panic.as_ref()).to_owned())));
        self.is_broken = next.is_err();
        let next = next.map_err(|error| ArrowError::ExternalError(Box::new(error)));
        next.transpose()
    }
}

impl RecordBatchReader for BatchStream {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
