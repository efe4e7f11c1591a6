//! Inputs -> sources -> filters -> chunks with the wanted records.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler::analysis::filters::{ByType, TypePattern};
use baler::analysis::{AnalysisError, Parcel, Source, Stage, Step as SourceStep};
use pyo3::Python;

use crate::error::ReadError;
use crate::input::Input;

/// How long a scan waits for its medium before the caller looks for signals.
const TICK: Duration = Duration::from_millis(50);

/// The time limit for closing a source.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is read, and which of its records.
#[derive(Debug, Clone)]
pub(crate) struct Query {
    pub(crate) inputs: Arc<[Input]>,
    /// No pattern means all types.
    pub(crate) types: Arc<[TypePattern]>,
}

impl Query {
    /// Puts the filters before a stage.
    fn filters(&self, mut stage: Box<dyn Stage>) -> Box<dyn Stage> {
        if !self.types.is_empty() {
            stage = Box::new(ByType::new(self.types.iter().cloned(), stage));
        }
        stage
    }
}

/// One pass over all inputs. It holds at most two chunks in memory.
pub(crate) struct Scan {
    query: Query,
    /// The number of inputs that were opened.
    opened: usize,
    source: Option<Source>,
    filters: Box<dyn Stage>,
    passed: Passed,
}

/// The result of one step of a scan.
pub(crate) enum Step {
    Chunk(Parcel),
    End,
    /// Nothing yet.
    Idle,
}

impl Scan {
    pub(crate) fn new(query: &Query) -> Self {
        let passed = Passed::default();
        Self {
            query: query.clone(),
            opened: 0,
            source: None,
            filters: query.filters(Box::new(passed.clone())),
            passed,
        }
    }

    /// Waits for the next chunk, for a short time.
    ///
    /// # Errors
    ///
    /// A source cannot be opened or read, or a chunk does not decode.
    pub(crate) fn step(&mut self) -> Result<Step, ReadError> {
        let Some(source) = &mut self.source else {
            let Some(input) = self.query.inputs.get(self.opened) else {
                return Ok(Step::End);
            };
            self.source = Some(input.source()?);
            self.opened += 1;
            return Ok(Step::Idle);
        };
        match source.step(Instant::now() + TICK)? {
            SourceStep::Chunk(parcel) => {
                self.filters.accept(parcel)?;
                Ok(match self.passed.take() {
                    // Values that are kept as JSON text have the columns of the fields in the text.
                    Some(parcel) => Step::Chunk(parcel.opened()),
                    None => Step::Idle,
                })
            }
            SourceStep::End => {
                if let Some(source) = self.source.take() {
                    source.close(Instant::now() + CLOSE_TIMEOUT)?;
                }
                Ok(Step::Idle)
            }
            SourceStep::Idle => Ok(Step::Idle),
        }
    }

    /// Waits for the next chunk without Python's lock, and handles signals meanwhile.
    ///
    /// # Errors
    ///
    /// As [`step`](Self::step), or a signal handler raised an exception.
    pub(crate) fn next(&mut self, py: Python<'_>) -> Result<Option<Parcel>, ReadError> {
        loop {
            let step = py.detach(|| self.step())?;
            py.check_signals().map_err(ReadError::Interrupted)?;
            match step {
                Step::Chunk(parcel) => return Ok(Some(parcel)),
                Step::End => return Ok(None),
                Step::Idle => {}
            }
        }
    }
}

/// The chunk that passed the filters.
#[derive(Debug, Clone, Default)]
struct Passed(Arc<Mutex<Option<Parcel>>>);

impl Passed {
    fn take(&self) -> Option<Parcel> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Stage for Passed {
    fn name(&self) -> &'static str {
        "passed"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(parcel);
        Ok(())
    }
}
