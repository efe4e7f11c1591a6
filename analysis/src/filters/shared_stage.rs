//! One stage for several workers, and one stream for several stages.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::mutex::lock;

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// A stage that several workers feed, one parcel at a time. Each worker has a clone.
///
/// It is for stages that cannot be made once a worker, such as a stage that owns files. After the
/// first error it refuses everything, and the parcels that the stage holds go back to the medium.
/// The last clone to finish finishes the stage. The others only flush it, so that their chunks are
/// settled before they end.
pub struct SharedStage<S> {
    state: Arc<Mutex<StageState<S>>>,
    name: &'static str,
    finished: bool,
}

struct StageState<S> {
    /// `None` after an error.
    stage: Option<S>,
    clones: usize,
}

impl<S: Stage> SharedStage<S> {
    /// Shares a stage.
    pub fn new(stage: S) -> Self {
        let name = stage.name();
        let state = StageState {
            stage: Some(stage),
            clones: 1,
        };
        Self {
            state: Arc::new(Mutex::new(state)),
            name,
            finished: false,
        }
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut S, usize) -> Result<T, AnalysisError>,
    ) -> Result<T, AnalysisError> {
        let mut state = self.lock();
        let clones = state.clones;
        let Some(stage) = state.stage.as_mut() else {
            return Err(AnalysisError::stage(self.name, "it has failed before"));
        };
        let worked = work(stage, clones);
        if worked.is_err() {
            state.stage = None;
        }
        worked
    }

    fn lock(&self) -> MutexGuard<'_, StageState<S>> {
        // A stage that panicked during its work is not called again.
        self.state.lock().unwrap_or_else(|poison: PoisonError<_>| {
            let mut state = poison.into_inner();
            state.stage = None;
            state
        })
    }
}

impl<S: Stage> Clone for SharedStage<S> {
    fn clone(&self) -> Self {
        self.lock().clones += 1;
        Self {
            state: Arc::clone(&self.state),
            name: self.name,
            finished: false,
        }
    }
}

impl<S: Stage> Stage for SharedStage<S> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.with(|stage, _| stage.accept(parcel))
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.with(|stage, _| stage.flush())
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        self.with(|stage, _| stage.idle())
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        if self.finished {
            return Ok(());
        }
        self.finished = true;
        let finished = self.with(|stage, clones| match clones {
            1 => stage.finish(),
            _ => stage.flush(),
        });
        self.lock().clones -= 1;
        finished
    }
}

impl<S> Drop for SharedStage<S> {
    fn drop(&mut self) {
        if !self.finished {
            lock(&self.state).clones -= 1;
        }
    }
}

impl<S> fmt::Debug for SharedStage<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedStage")
            .field("stage", &self.name)
            .finish_non_exhaustive()
    }
}

/// Passes every parcel to each of several stages, in order.
#[derive(Default)]
pub struct Tee {
    branches: Vec<Box<dyn Stage>>,
}

impl fmt::Debug for Tee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.branches.iter().map(|branch| branch.name()))
            .finish()
    }
}

impl Tee {
    /// Creates a tee without branches: it discards.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a branch.
    #[must_use]
    pub fn branch(mut self, stage: impl Stage + 'static) -> Self {
        self.branches.push(Box::new(stage));
        self
    }
}

impl Stage for Tee {
    fn name(&self) -> &'static str {
        "tee"
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        for branch in &mut self.branches {
            if !branch.ready(by)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.branches
            .iter_mut()
            .try_for_each(|branch| branch.accept(parcel.clone()))
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        first_error(self.branches.iter_mut().map(|branch| branch.flush()))
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        let mut held = false;
        let idle = |branch: &mut Box<dyn Stage>| branch.idle().map(|more| held |= more);
        first_error(self.branches.iter_mut().map(idle))?;
        Ok(held)
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        first_error(self.branches.iter_mut().map(|branch| branch.finish()))
    }
}

/// Every branch is called, even after an earlier one failed.
fn first_error(
    results: impl Iterator<Item = Result<(), AnalysisError>>,
) -> Result<(), AnalysisError> {
    let mut first = Ok(());
    for result in results {
        first = first.and(result);
    }
    first
}
