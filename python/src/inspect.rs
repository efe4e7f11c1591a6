//! Chunks and their layout as dicts.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::vec;

use baler::analysis::sinks::{broken_document, chunk_document};
use baler::container::{ChunkDecoder, Limits};
use baler::transport::{ChunkReader, Received, Verdict};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;

use crate::error::ReadError;
use crate::input::Input;

/// How long a reader waits before the caller looks for signals.
const TICK: Duration = Duration::from_millis(50);

/// Iterates over the chunks of inputs.
#[pyclass(frozen, module = "baler")]
pub(crate) struct ChunkIterator(Mutex<Chunks>);

struct Chunks {
    inputs: vec::IntoIter<Input>,
    reader: Option<Box<dyn ChunkReader>>,
    decoder: ChunkDecoder,
    first_strings: usize,
    first_records: usize,
}

/// The result of one step.
enum Step {
    /// A chunk as JSON.
    Chunk(String),
    End,
    Idle,
}

impl ChunkIterator {
    pub(crate) fn new(inputs: Vec<Input>, first_strings: usize, first_records: usize) -> Self {
        Self(Mutex::new(Chunks {
            inputs: inputs.into_iter(),
            reader: None,
            decoder: baler::decoder(Limits::default()),
            first_strings,
            first_records,
        }))
    }
}

#[pymethods]
impl ChunkIterator {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let locked = self.0.lock_py_attached(py);
        let chunks = &mut *locked.unwrap_or_else(PoisonError::into_inner);
        loop {
            let step = py.detach(|| chunks.step())?;
            py.check_signals()?;
            match step {
                Step::Chunk(json) => {
                    let loads = py.import("json")?.getattr("loads")?;
                    return loads.call1((json,)).map(Some);
                }
                Step::End => return Ok(None),
                Step::Idle => {}
            }
        }
    }
}

impl Chunks {
    fn step(&mut self) -> Result<Step, ReadError> {
        let Some(reader) = &mut self.reader else {
            let Some(input) = self.inputs.next() else {
                return Ok(Step::End);
            };
            self.reader = Some(input.reader()?);
            return Ok(Step::Idle);
        };
        let document = match reader.receive(Instant::now() + TICK) {
            Ok(Received::Chunk(it)) => {
                let document = match self.decoder.decode_with_layout(&it.bytes) {
                    Ok((chunk, layout)) => {
                        let (strings, records) = (self.first_strings, self.first_records);
                        let document = chunk_document(&it, &chunk, &layout, strings, records);
                        document.map_err(|error| ReadError::Panic(error.to_string()))?
                    }
                    Err(error) => broken_document(&it.origin, &it.bytes, &error.to_string()),
                };
                reader.settle(it.token, Verdict::Ack)?;
                document
            }
            Ok(Received::Damaged(it)) => {
                if let Some(token) = it.token {
                    reader.settle(token, Verdict::Ack)?;
                }
                broken_document(&it.origin, &it.bytes, &it.reason)
            }
            Ok(Received::End) => {
                self.reader = None;
                return Ok(Step::Idle);
            }
            Ok(_) => return Ok(Step::Idle),
            Err(error) if error.is_retryable() => return Ok(Step::Idle),
            Err(error) => return Err(error.into()),
        };
        Ok(Step::Chunk(document.to_string()))
    }
}
