//! Inputs -> sources -> filters -> chunks with the wanted records.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baler::analysis::filters::{ByTime, ByType, Condition, Fields, TypePattern, Where};
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
    pub(crate) condition: Option<Arc<str>>,
    pub(crate) fields: Option<Arc<[String]>>,
    /// The logging times, in nanoseconds since the Unix epoch.
    pub(crate) span: Option<Range<i64>>,
}

impl Query {
    /// Checks the condition and the names of fields.
    ///
    /// # Errors
    ///
    /// One of them is wrong.
    pub(crate) fn check(&self) -> Result<(), ReadError> {
        self.condition()?;
        self.chosen_fields()?;
        Ok(())
    }

    fn condition(&self) -> Result<Option<Condition>, ReadError> {
        let parsed = self.condition.as_deref();
        Ok(parsed
            .map(|text| Condition::new("where", text))
            .transpose()?)
    }

    fn chosen_fields(&self) -> Result<Option<Fields>, ReadError> {
        let names = self.fields.as_deref();
        Ok(names
            .map(|names| Fields::new("fields", names))
            .transpose()?)
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
    condition: Option<Condition>,
    fields: Option<Fields>,
}

/// The result of one step of a scan.
pub(crate) enum Step {
    Chunk(Parcel),
    End,
    /// Nothing yet.
    Idle,
}

impl Scan {
    /// Begins a pass. Nothing is opened yet.
    ///
    /// # Errors
    ///
    /// The condition or the names of fields are wrong.
    pub(crate) fn new(query: &Query) -> Result<Self, ReadError> {
        let (condition, fields) = (query.condition()?, query.chosen_fields()?);
        let passed = Passed::default();
        let mut filters: Box<dyn Stage> = Box::new(passed.clone());
        if let Some(fields) = &fields {
            filters = Box::new(fields.narrow(filters));
        }
        if let Some(span) = query.span.clone() {
            filters = Box::new(ByTime::new(span, filters));
        }
        if let Some(condition) = condition.clone() {
            filters = Box::new(Where::new(condition, filters));
        }
        if !query.types.is_empty() {
            filters = Box::new(ByType::new(query.types.iter().cloned(), filters));
        }
        if let Some(fields) = &fields {
            filters = Box::new(fields.note(filters));
        }
        Ok(Self {
            query: query.clone(),
            opened: 0,
            source: None,
            filters,
            passed,
            condition,
            fields,
        })
    }

    /// Waits for the next chunk, for a short time.
    ///
    /// # Errors
    ///
    /// A source cannot be opened or read, or a chunk does not decode.
    pub(crate) fn step(&mut self) -> Result<Step, ReadError> {
        let Some(source) = &mut self.source else {
            let Some(input) = self.query.inputs.get(self.opened) else {
                self.fields.as_ref().map_or(Ok(()), Fields::check)?;
                return Ok(Step::End);
            };
            let span = self.query.span.clone();
            self.source = Some(input.source()?.with_time_span(span));
            self.opened += 1;
            return Ok(Step::Idle);
        };
        match source.step(Instant::now() + TICK)? {
            SourceStep::Chunk(parcel) => {
                self.filters.accept(parcel)?;
                self.refuse_undecided()?;
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

    /// Fails if the condition has no answer for a record: such records would be missing.
    fn refuse_undecided(&self) -> Result<(), ReadError> {
        let Some(undecided) = self.condition.as_ref().map(Condition::undecided) else {
            return Ok(());
        };
        match undecided.kinds.iter().next() {
            None => Ok(()),
            Some(((field, type_name), kind)) => {
                let (reason, example) = (&kind.reason, &kind.example);
                let of_field = match field.is_empty() {
                    true => String::new(),
                    false => format!("; {field} ({type_name}) is {example}"),
                };
                let text = format!("where cannot judge a record: {reason}{of_field}");
                Err(ReadError::Undecided(text))
            }
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
