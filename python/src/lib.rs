//! The extension module `baler._baler`: Python's view of `baler`, with no logic of its own.
//!
//! `input` (what a caller names) -> `scan` (sources and filters) -> `tables` (Arrow), `records`
//! (dicts); `inspect` shows chunks,
//! `consume` acknowledges them, `collect` sends records. Its documentation for users is `baler/_baler.pyi`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen becomes an exception in Python"
)]

mod collect;
mod consume;
mod error;
mod input;
mod inspect;
mod records;
mod scan;
mod tables;

/// The extension module.
#[pyo3::pymodule]
mod _baler {
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::Arc;

    use baler::ConsumerConfig;
    use baler::analysis::filters::TypePattern;
    use baler::arrow::Times;
    use bytes::Bytes;
    use pyo3::buffer::PyBuffer;
    use pyo3::exceptions::{PyFileNotFoundError, PyTypeError, PyValueError};
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::{PyDateTime, PyList, PyTuple};

    #[pymodule_export]
    use crate::collect::{_close_all, Collector};
    use crate::consume::seconds;
    #[pymodule_export]
    use crate::consume::{Consumer, Delivery};
    use crate::error::ReadError;
    use crate::input::{Input, is_uri};
    #[pymodule_export]
    use crate::inspect::ChunkIterator;
    #[pymodule_export]
    use crate::records::RecordIterator;
    use crate::scan::Query;
    use crate::tables::Columns;
    #[pymodule_export]
    use crate::tables::{Batch, BatchIterator, Table, Tables};

    #[pyfunction]
    #[pyo3(signature = (source, types=None, r#where=None, fields=None, *, since=None, until=None, identity=false, times="ns"))]
    #[expect(clippy::too_many_arguments, reason = "each has a name in Python")]
    fn read(
        source: &Bound<'_, PyAny>,
        types: Option<Names>,
        r#where: Option<String>,
        fields: Option<Names>,
        since: Option<Moment>,
        until: Option<Moment>,
        identity: bool,
        times: &str,
    ) -> PyResult<Tables> {
        let columns = columns(identity, times)?;
        let span = span(since, until)?;
        Ok(Tables::new(
            query(source, types, r#where, fields, span)?,
            columns,
        ))
    }

    #[pyfunction]
    #[pyo3(signature = (source, types=None, r#where=None, fields=None, *, since=None, until=None, identity=false))]
    fn iter_records(
        source: &Bound<'_, PyAny>,
        types: Option<Names>,
        r#where: Option<String>,
        fields: Option<Names>,
        since: Option<Moment>,
        until: Option<Moment>,
        identity: bool,
    ) -> PyResult<RecordIterator> {
        let query = query(source, types, r#where, fields, span(since, until)?)?;
        Ok(RecordIterator::new(&query, identity)?)
    }

    #[pyfunction]
    #[pyo3(signature = (source, *, strings=0, records=0))]
    fn inspect(
        source: &Bound<'_, PyAny>,
        strings: usize,
        records: usize,
    ) -> PyResult<ChunkIterator> {
        Ok(ChunkIterator::new(inputs(source)?, strings, records))
    }

    #[pyfunction]
    #[pyo3(signature = (uri, *, follow=false, idle_timeout=None, quarantine=None, max_attempts=None, demand=None, identity=false, times="ns"))]
    #[expect(clippy::too_many_arguments, reason = "each has a name in Python")]
    fn consume(
        py: Python<'_>,
        uri: &str,
        follow: bool,
        idle_timeout: Option<f64>,
        quarantine: Option<String>,
        max_attempts: Option<u32>,
        demand: Option<usize>,
        identity: bool,
        times: &str,
    ) -> PyResult<Consumer> {
        let mut config: ConsumerConfig = uri.parse().map_err(ReadError::from)?;
        config.follow = follow;
        config.idle_timeout = idle_timeout
            .map(|time| seconds("idle_timeout", time))
            .transpose()?;
        config.quarantine = quarantine.map(String::into_boxed_str);
        config.max_attempts = max_attempts.unwrap_or(config.max_attempts);
        config.demand = demand.unwrap_or(config.demand);
        Ok(Consumer::open(py, config, columns(identity, times)?)?)
    }

    #[pyfunction]
    fn positions(py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<BTreeMap<i32, (i64, i64)>> {
        let inputs = inputs(source)?;
        let [input] = &inputs[..] else {
            return Err(PyValueError::new_err(
                "positions are those of one topic or folder",
            ));
        };
        let positions = py.detach(|| input.positions())?.into_iter();
        Ok(positions
            .map(|(partition, it)| (partition, (it.start, it.end)))
            .collect())
    }

    fn columns(identity: bool, times: &str) -> PyResult<Columns> {
        let times = match times {
            "ns" => Times::Nanos,
            "us" => Times::Micros,
            other => {
                let message = format!("times is {other:?}; it can be \"ns\" or \"us\"");
                return Err(PyValueError::new_err(message));
            }
        };
        Ok(Columns { identity, times })
    }

    /// Chunks at offsets, as a source.
    #[pyclass(frozen, subclass, module = "baler")]
    pub(crate) struct Range(Input);

    /// Chunks of a folder, as a source.
    #[pyclass(frozen, extends = Range, module = "baler")]
    pub(crate) struct FileRange;

    #[pymethods]
    impl FileRange {
        #[new]
        fn new(folder: PathBuf, start: u64, end: u64) -> PyClassInitializer<Self> {
            let range = Range(Input::Chunks(folder, start..end));
            PyClassInitializer::from(range).add_subclass(Self)
        }
    }

    /// Chunks of a topic, as a source.
    #[pyclass(frozen, extends = Range, module = "baler")]
    pub(crate) struct KafkaRange;

    #[pymethods]
    impl KafkaRange {
        #[new]
        fn new(
            topic: &str,
            partitions: BTreeMap<i32, (i64, i64)>,
        ) -> PyResult<PyClassInitializer<Self>> {
            let ranges = partitions.into_iter();
            let ranges = ranges.map(|(partition, (start, end))| (partition, start..end));
            let range = Range(Input::kafka(topic, ranges.collect())?);
            Ok(PyClassInitializer::from(range).add_subclass(Self))
        }
    }

    /// One name, or several.
    #[derive(FromPyObject)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }

    impl Names {
        fn into_list(self) -> Vec<String> {
            match self {
                Self::One(name) => vec![name],
                Self::Several(names) => names,
            }
        }
    }

    /// A point in time: nanoseconds since 1970, or a `datetime`.
    #[derive(FromPyObject)]
    enum Moment<'py> {
        Nanos(i64),
        Time(Bound<'py, PyDateTime>),
    }

    impl Moment<'_> {
        fn nanos(self) -> PyResult<i64> {
            match self {
                Self::Nanos(nanos) => Ok(nanos),
                Self::Time(time) => {
                    let seconds: f64 = time.call_method0("timestamp")?.extract()?;
                    // A `datetime` has whole microseconds, which an `f64` has up to the year 2255.
                    Ok(((seconds * 1e6).round() as i64).saturating_mul(1_000))
                }
            }
        }
    }

    /// Nanoseconds since the Unix epoch; the end is excluded.
    type Span = std::ops::Range<i64>;

    fn span(since: Option<Moment<'_>>, until: Option<Moment<'_>>) -> PyResult<Option<Span>> {
        if since.is_none() && until.is_none() {
            return Ok(None);
        }
        let start = since.map_or(Ok(i64::MIN), Moment::nanos)?;
        let end = until.map_or(Ok(i64::MAX), Moment::nanos)?;
        match start < end {
            true => Ok(Some(start..end)),
            false => Err(PyValueError::new_err("since is not before until")),
        }
    }

    fn query(
        source: &Bound<'_, PyAny>,
        types: Option<Names>,
        condition: Option<String>,
        fields: Option<Names>,
        span: Option<Span>,
    ) -> PyResult<Query> {
        let types = types.map_or_else(Vec::new, Names::into_list).into_iter();
        let query = Query {
            inputs: inputs(source)?.into(),
            types: types.map(TypePattern::new).collect(),
            condition: condition.map(Arc::from),
            fields: fields.map(|names| names.into_list().into()),
            span,
        };
        query.check()?;
        Ok(query)
    }

    /// Returns the inputs that a path, a pattern of paths, a URI, bytes, or a list of them names.
    fn inputs(source: &Bound<'_, PyAny>) -> PyResult<Vec<Input>> {
        if source.is_instance_of::<PyList>() || source.is_instance_of::<PyTuple>() {
            let mut all = Vec::new();
            for item in source.try_iter()? {
                all.extend(inputs(&item?)?);
            }
            return Ok(all);
        }
        if let Ok(range) = source.cast::<Range>() {
            return Ok(vec![range.get().0.clone()]);
        }
        if let Ok(bytes) = source.extract::<PyBackedBytes>() {
            return Ok(vec![Input::Bytes(Bytes::from_owner(bytes))]);
        }
        if let Ok(buffer) = PyBuffer::<u8>::get(source) {
            return Ok(vec![Input::Bytes(buffer.to_vec(source.py())?.into())]);
        }
        let Ok(path) = source.extract::<PathBuf>() else {
            let kind = source.get_type().name()?;
            let message = format!("source is {kind}; it can be a path, a URI, bytes or a list");
            return Err(PyTypeError::new_err(message));
        };
        let text = path.to_string_lossy();
        if !text.contains(['*', '?', '[']) || path.exists() || is_uri(&text) {
            return Ok(Input::named(&path)?);
        }
        let glob = source.py().import("glob")?;
        let found = glob.call_method1("glob", (path.as_os_str(),))?;
        let mut found: Vec<PathBuf> = found.extract()?;
        found.sort();
        if found.is_empty() {
            let message = format!("no path matches {}", path.display());
            return Err(PyFileNotFoundError::new_err(message));
        }
        let mut all = Vec::new();
        for path in found {
            all.extend(Input::named(&path)?);
        }
        Ok(all)
    }
}
