//! One stage behind several workers.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// Several workers' way to one stage, one parcel at a time. Cloning shares.
///
/// For stages that cannot be made once a worker, such as one that owns files.
/// After the first error everything is refused: what the stage holds then goes back to the medium
/// when the last clone is dropped.
/// The stage is finished by the last clone that is; the earlier ones flush it, so that their chunks
/// are settled before they go.
pub struct Shared<S> {
    inner: Arc<Mutex<Inner<S>>>,
    name: &'static str,
    finished: bool,
}

struct Inner<S> {
    /// None after an error.
    stage: Option<S>,
    clones: usize,
}

impl<S: Stage> Shared<S> {
    /// Shares a stage.
    pub fn new(stage: S) -> Self {
        let name = stage.name();
        let inner = Inner {
            stage: Some(stage),
            clones: 1,
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            name,
            finished: false,
        }
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut S, usize) -> Result<T, AnalysisError>,
    ) -> Result<T, AnalysisError> {
        let mut inner = self.lock();
        let clones = inner.clones;
        let Some(stage) = inner.stage.as_mut() else {
            return Err(AnalysisError::stage(self.name, "it has failed before"));
        };
        let worked = work(stage, clones);
        if worked.is_err() {
            inner.stage = None;
        }
        worked
    }

    fn lock(&self) -> MutexGuard<'_, Inner<S>> {
        // A stage that panicked in the middle of its work is not asked again.
        self.inner.lock().unwrap_or_else(|poison: PoisonError<_>| {
            let mut inner = poison.into_inner();
            inner.stage = None;
            inner
        })
    }
}

impl<S: Stage> Clone for Shared<S> {
    fn clone(&self) -> Self {
        let mut inner = self.lock();
        inner.clones = inner.clones.saturating_add(1);
        Self {
            inner: Arc::clone(&self.inner),
            name: self.name,
            finished: false,
        }
    }
}

impl<S: Stage> Stage for Shared<S> {
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
        let mut inner = self.lock();
        inner.clones = inner.clones.saturating_sub(1);
        finished
    }
}

impl<S> Drop for Shared<S> {
    fn drop(&mut self) {
        if !self.finished {
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.clones = inner.clones.saturating_sub(1);
        }
    }
}

impl<S> fmt::Debug for Shared<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("stage", &self.name)
            .finish_non_exhaustive()
    }
}
