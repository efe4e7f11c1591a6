//! A consumer: chunks of a medium that are acknowledged, or come again.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use baler::ConsumerConfig;
use baler::analysis::{Parcel, Source, Step};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyTuple};

use crate::error::{ReadError, closed};
use crate::records::{RecordIterator, identity_dict};
use crate::tables::{Batch, Columns, named};

/// How long the consumer waits before it looks for signals.
const TICK: Duration = Duration::from_millis(50);

/// The time limit for closing a consumer that is dropped.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The source of a consumer and of its deliveries; `None` after the consumer has ended.
type SharedSource = Arc<Mutex<Option<Source>>>;

/// Iterates over the chunks of a medium.
#[pyclass(frozen, module = "baler")]
pub(crate) struct Consumer {
    source: SharedSource,
    columns: Columns,
}

impl Consumer {
    /// Opens the medium.
    pub(crate) fn open(
        py: Python<'_>,
        config: ConsumerConfig,
        columns: Columns,
    ) -> Result<Self, ReadError> {
        let source = py.detach(|| baler::source(config))?;
        Ok(Self {
            source: Arc::new(Mutex::new(Some(source))),
            columns,
        })
    }

    fn end(&self, py: Python<'_>, timeout: Duration) -> Result<Option<Figures>, ReadError> {
        let locked = self.source.lock_py_attached(py);
        let source = locked.unwrap_or_else(PoisonError::into_inner).take();
        let Some(source) = source else {
            return Ok(None);
        };
        let report = py.detach(|| source.close(Instant::now() + timeout))?;
        Ok(Some(Figures::of(&report)))
    }
}

#[pymethods]
impl Consumer {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<Delivery>> {
        loop {
            let locked = self.source.lock_py_attached(py);
            let mut guard = locked.unwrap_or_else(PoisonError::into_inner);
            let Some(source) = &mut *guard else {
                return Ok(None);
            };
            let step = py
                .detach(|| source.step(Instant::now() + TICK))
                .map_err(ReadError::from)?;
            let is_idle = source.is_idle();
            drop(guard);
            py.check_signals()?;
            match step {
                Step::Chunk(parcel) => {
                    return Ok(Some(Delivery {
                        parcel: Mutex::new(Some(parcel)),
                        source: Arc::clone(&self.source),
                        columns: self.columns,
                    }));
                }
                Step::End => return Ok(None),
                Step::Idle if is_idle => return Ok(None),
                Step::Idle => {}
            }
        }
    }

    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let locked = self.source.lock_py_attached(py);
        let guard = locked.unwrap_or_else(PoisonError::into_inner);
        let figures = guard.as_ref().map(|source| Figures::of(&source.report()));
        figures.map(|figures| figures.dict(py)).transpose()
    }

    #[pyo3(signature = (timeout=5.0))]
    fn close<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let figures = self.end(py, seconds("timeout", timeout)?)?;
        figures.map(|figures| figures.dict(py)).transpose()
    }

    fn __enter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    #[pyo3(signature = (*_error))]
    fn __exit__(&self, py: Python<'_>, _error: &Bound<'_, PyTuple>) -> PyResult<()> {
        self.end(py, CLOSE_TIMEOUT)?;
        Ok(())
    }
}

impl Drop for Consumer {
    fn drop(&mut self) {
        let source = self
            .source
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(source) = source {
            // Chunks that are not settled in time come again.
            source.close(Instant::now() + CLOSE_TIMEOUT).ok();
        }
    }
}

/// Returns a span of time.
///
/// # Errors
///
/// It is negative, or not a number.
pub(crate) fn seconds(name: &str, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyValueError::new_err(format!("{name} is {seconds}: {error}")))
}

/// The figures of a consumer, by name.
struct Figures([(&'static str, u64); 8]);

impl Figures {
    fn of(report: &baler::analysis::SourceReport) -> Self {
        Self([
            ("chunks", report.chunks),
            ("records", report.records),
            ("bytes", report.bytes),
            ("acknowledged", report.acknowledged),
            ("given_back", report.given_back),
            ("in_work", report.in_work as u64),
            ("quarantined", report.quarantined),
            ("duplicates", report.duplicates),
        ])
    }

    fn dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, count) in self.0 {
            dict.set_item(name, count)?;
        }
        Ok(dict)
    }
}

/// A received chunk until it is settled.
#[pyclass(frozen, module = "baler")]
pub(crate) struct Delivery {
    /// Taken when it is settled.
    parcel: Mutex<Option<Parcel>>,
    source: SharedSource,
    columns: Columns,
}

impl Delivery {
    fn take(&self) -> Option<Parcel> {
        let mut parcel = self.parcel.lock().unwrap_or_else(PoisonError::into_inner);
        parcel.take()
    }

    fn parcel(&self) -> PyResult<Parcel> {
        let parcel = self.parcel.lock().unwrap_or_else(PoisonError::into_inner);
        let parcel = parcel.clone();
        parcel.ok_or_else(|| PyValueError::new_err("the delivery is settled already"))
    }

    /// Converts the records, one batch a type.
    fn batches(&self, py: Python<'_>) -> PyResult<Vec<Batch>> {
        let (parcel, columns) = (self.parcel()?, self.columns);
        let batches = py.detach(|| {
            let mut converter = columns.converter();
            let opened = parcel.opened();
            let identity = opened.identity();
            converter.convert(&opened.chunk().batch, None, identity.as_ref())
        });
        let batches = batches.map_err(ReadError::from)?.into_iter();
        Ok(batches.map(Batch::from).collect())
    }
}

#[pymethods]
impl Delivery {
    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        PyTuple::new(py, self.batches(py)?)?.call_method0("__iter__")
    }

    fn __getitem__(&self, py: Python<'_>, name: &str) -> PyResult<Batch> {
        let mut batches = self.batches(py)?;
        let schemas: Vec<_> = batches.iter().map(Batch::schema).collect();
        let named = named(&schemas, name);
        let found = named.first();
        let at = found.and_then(|found| schemas.iter().position(|it| Arc::ptr_eq(it, found)));
        match at {
            Some(at) => Ok(batches.swap_remove(at)),
            None => Err(PyKeyError::new_err(format!("no record is a {name}"))),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        Ok(self.parcel()?.len())
    }

    fn records(&self) -> PyResult<RecordIterator> {
        Ok(RecordIterator::of(
            self.parcel()?.opened(),
            self.columns.identity,
        ))
    }

    #[getter]
    fn identity<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let identity = self.parcel()?.identity();
        identity
            .map(|identity| identity_dict(py, &identity))
            .transpose()
    }

    #[getter]
    fn origin(&self) -> PyResult<Option<String>> {
        Ok(self.parcel()?.origin().map(ToString::to_string))
    }

    #[getter]
    fn is_redelivered(&self) -> PyResult<bool> {
        Ok(self.parcel()?.is_redelivered())
    }

    fn ack(&self, py: Python<'_>) -> PyResult<()> {
        let Some(parcel) = self.take() else {
            return Ok(());
        };
        let mut guard = match self.source.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // Another thread waits for the next chunk, and settles this one meanwhile.
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        let Some(source) = &mut *guard else {
            parcel.fail();
            return Err(closed());
        };
        drop(parcel);
        let settled = py.detach(|| source.settle_processed());
        Ok(settled.map_err(ReadError::from)?)
    }

    #[pyo3(signature = (reason="the delivery was given back"))]
    fn give_back(&self, reason: &str) {
        if let Some(parcel) = self.take() {
            parcel.fail_because(reason);
        }
    }

    fn __repr__(&self) -> String {
        let parcel = self.parcel.lock().unwrap_or_else(PoisonError::into_inner);
        match &*parcel {
            Some(parcel) => format!("<baler.Delivery of {} records>", parcel.len()),
            None => "<baler.Delivery, settled>".to_owned(),
        }
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        if let Some(parcel) = self.take() {
            parcel.fail_because("the delivery was dropped without an acknowledgement");
        }
    }
}
