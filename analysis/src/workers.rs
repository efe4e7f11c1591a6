//! Several readers of one endpoint in one process, each with its own source, stages and thread.
//!
//! ```text
//! reader -> Source -> stages        reader -> fan_out -> reader -> Source -> stages
//! reader -> Source -> stages   or                     -> reader -> Source -> stages
//!    (a consumer group,                (one reader of a medium that has only one)
//!     competing consumers)
//!            \______ Group: copies and gaps over all of them ______/
//! ```

mod fan_out;

use std::fmt;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::mutex::lock;

pub use crate::group::{Group, GroupReport};
pub use fan_out::fan_out;

use crate::error::AnalysisError;
use crate::pipe::panicked;
use crate::source::{Source, Stop};
use crate::stage::Stage;

/// How often the thread that waits for the workers checks them.
const TICK: Duration = Duration::from_millis(50);

/// One reader and its stages.
pub struct Worker {
    /// Drives the reader.
    pub source: Source,
    /// The first of the stages.
    pub stage: Box<dyn Stage>,
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Worker")
            .field("source", &self.source)
            .field("stage", &self.stage.name())
            .finish()
    }
}

/// The result of the workers.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// Their figures, even if one failed.
    pub report: GroupReport,
    /// The first failure of a worker; the others then finished their chunks and settled them.
    pub error: Option<AnalysisError>,
}

/// Runs several workers until all have ended.
#[derive(Debug)]
pub struct Workers {
    count: NonZeroUsize,
    group: Group,
    stop: Stop,
}

impl Workers {
    /// Creates `count` workers, as one group.
    pub fn new(count: NonZeroUsize) -> Self {
        Self {
            count,
            group: Group::new(),
            stop: Stop::default(),
        }
    }

    /// Sets when the workers stop by themselves. An idle timeout counts the silence of all of them.
    #[must_use]
    pub fn with_stop(mut self, stop: Stop) -> Self {
        self.stop = stop;
        self
    }

    /// Returns the group. It has the figures of the running workers, and stops them.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Makes the workers by `make`, which gets their numbers from 0, and runs each on a thread of
    /// its own. Each worker calls `keep_going` before every chunk, and ends when it returns
    /// `false`. `tick` is called about twenty times a second on the caller's thread.
    ///
    /// Stages of different workers run at the same time. Data that they share must be safe for
    /// that, such as [`SharedOutput`](crate::sinks::SharedOutput) and
    /// [`SharedStage`](crate::filters::SharedStage). Records of different lanes interleave; records
    /// of one lane stay in order.
    ///
    /// When one worker fails or panics, the others finish their chunks, settle them and end. Each
    /// closes its reader by the time that `close_by` returns.
    pub fn run(
        &self,
        mut make: impl FnMut(usize) -> Result<Worker, AnalysisError>,
        keep_going: impl Fn() -> bool + Sync,
        close_by: impl Fn() -> Instant + Sync,
        mut tick: impl FnMut(&Group),
    ) -> Ended {
        let first_error = FirstError::default();
        let mut workers = Vec::with_capacity(self.count.get());
        for number in 0..self.count.get() {
            match make(number) {
                Ok(worker) => workers.push(worker),
                Err(error) => {
                    first_error.note(error);
                    self.group.stop();
                    break;
                }
            }
        }
        thread::scope(|scope| {
            let mut threads = Vec::with_capacity(workers.len());
            for (number, worker) in workers.into_iter().enumerate() {
                let (first_error, keep_going, close_by) = (&first_error, &keep_going, &close_by);
                let Worker { source, stage } = worker;
                let source = source.in_group(&self.group);
                let work = move || {
                    if let Err(error) = self.work(source, stage, keep_going, close_by) {
                        first_error.note(error);
                        self.group.stop();
                    }
                };
                let name = format!("baler-worker-{number}");
                match thread::Builder::new().name(name).spawn_scoped(scope, work) {
                    Ok(thread) => threads.push(thread),
                    Err(error) => {
                        first_error.note(AnalysisError::output("a worker's thread", error));
                        self.group.stop();
                    }
                }
            }
            while threads.iter().any(|thread| !thread.is_finished()) {
                tick(&self.group);
                thread::park_timeout(TICK);
            }
        });
        Ended {
            report: self.group.report(),
            error: first_error.into_first(),
        }
    }

    /// The main function of one worker.
    fn work(
        &self,
        mut source: Source,
        mut stage: Box<dyn Stage>,
        keep_going: &(impl Fn() -> bool + Sync),
        close_by: &(impl Fn() -> Instant + Sync),
    ) -> Result<(), AnalysisError> {
        let name = stage.name();
        let ran = catch_unwind(AssertUnwindSafe(|| {
            source.run(&mut stage, self.stop, |_| keep_going())
        }));
        if !matches!(ran, Ok(Ok(()))) {
            // The others need not wait until this one has closed.
            self.group.stop();
        }
        // Parcels that the stages hold after a failure go back to the medium before the reader
        // closes.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(stage)));
        let closed = source.close(close_by());
        match ran {
            Ok(ran) => ran?,
            Err(panic) => return Err(panicked(name, panic.as_ref())),
        }
        if let Err(panic) = dropped {
            return Err(panicked(name, panic.as_ref()));
        }
        closed.map(drop)
    }
}

/// The first of several errors.
#[derive(Debug, Default)]
struct FirstError(Mutex<Option<AnalysisError>>);

impl FirstError {
    fn note(&self, error: AnalysisError) {
        lock(&self.0).get_or_insert(error);
    }

    fn into_first(self) -> Option<AnalysisError> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}
