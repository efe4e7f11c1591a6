//! The extension module `baler._baler`: Python's view of `baler`, with no logic of its own.
//!
//! `input` (what a caller names) -> `scan` (sources and filters) -> `tables` (Arrow), `records`
//! (dicts). Its documentation for users is `baler/_baler.pyi`.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen becomes an exception in Python"
)]

mod error;
mod input;
mod records;
mod scan;
mod tables;

/// The extension module.
#[pyo3::pymodule]
mod _baler {
    use std::path::PathBuf;
    use std::sync::Arc;

    use baler::analysis::filters::TypePattern;
    use baler::arrow::Times;
    use bytes::Bytes;
    use pyo3::buffer::PyBuffer;
    use pyo3::exceptions::{PyFileNotFoundError, PyTypeError, PyValueError};
    use pyo3::prelude::*;
    use pyo3::pybacked::PyBackedBytes;
    use pyo3::types::{PyList, PyTuple};

    use crate::input::{Input, is_uri};
    #[pymodule_export]
    use crate::records::RecordIterator;
    use crate::scan::Query;
    use crate::tables::Columns;
    #[pymodule_export]
    use crate::tables::{Batch, BatchIterator, Table, Tables};

    #[pyfunction]
    #[pyo3(signature = (source, types=None, *, identity=false, times="ns"))]
    fn read(
        source: &Bound<'_, PyAny>,
        types: Option<Names>,
        identity: bool,
        times: &str,
    ) -> PyResult<Tables> {
        let times = match times {
            "ns" => Times::Nanos,
            "us" => Times::Micros,
            other => {
                let message = format!("times is {other:?}; it can be \"ns\" or \"us\"");
                return Err(PyValueError::new_err(message));
            }
        };
        let columns = Columns { identity, times };
        Ok(Tables::new(query(source, types)?, columns))
    }

    #[pyfunction]
    #[pyo3(signature = (source, types=None, *, identity=false))]
    fn iter_records(
        source: &Bound<'_, PyAny>,
        types: Option<Names>,
        identity: bool,
    ) -> PyResult<RecordIterator> {
        Ok(RecordIterator::new(&query(source, types)?, identity))
    }

    /// One name, or several.
    #[derive(FromPyObject)]
    enum Names {
        One(String),
        Several(Vec<String>),
    }

    fn query(source: &Bound<'_, PyAny>, types: Option<Names>) -> PyResult<Query> {
        let types = match types {
            None => Vec::new(),
            Some(Names::One(name)) => vec![name],
            Some(Names::Several(names)) => names,
        };
        let types = types.into_iter().map(TypePattern::new);
        Ok(Query {
            inputs: inputs(source)?.into(),
            types: Arc::from_iter(types),
        })
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
