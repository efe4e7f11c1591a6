//! How much is shown, and how soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use baler_analysis::{AnalysisError, Parcel, Stage};

/// Shows every chunk at once: whoever looks wants to see what passes now.
pub(super) struct Prompt<S> {
    next: S,
}

impl<S: Stage> Prompt<S> {
    pub(super) fn new(next: S) -> Self {
        Self { next }
    }
}

impl<S: Stage> Stage for Prompt<S> {
    fn name(&self) -> &'static str {
        "prompt"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.next.accept(parcel)?;
        self.next.flush()
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.next.flush()
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        self.next.finish()
    }
}

/// Passes so many records a second at most, those of one second at once.
pub(super) struct Limit<S> {
    per_second: f64,
    /// How many records may pass now.
    budget: f64,
    filled: Instant,
    limited: Limited,
    next: S,
}

/// How many records did not pass. Cloning shares.
#[derive(Debug, Clone, Default)]
pub(super) struct Limited(Arc<AtomicU64>);

impl Limited {
    pub(super) fn records(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<S: Stage> Limit<S> {
    pub(super) fn new(per_second: f64, next: S) -> Self {
        Self {
            per_second,
            budget: per_second.max(1.0),
            filled: Instant::now(),
            limited: Limited::default(),
            next,
        }
    }

    /// A handle to how many did not pass.
    pub(super) fn limited(&self) -> Limited {
        self.limited.clone()
    }

    /// What became of the parcel at this time: the records that may pass.
    fn pass(&mut self, parcel: &Parcel, now: Instant) -> Parcel {
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        let most = self.per_second.max(1.0);
        self.budget = (self.budget + elapsed * self.per_second).min(most);
        parcel.select(|_| {
            let passes = self.budget >= 1.0;
            if passes {
                self.budget -= 1.0;
            } else {
                self.limited.0.fetch_add(1, Ordering::Relaxed);
            }
            passes
        })
    }
}

impl<S: Stage> Stage for Limit<S> {
    fn name(&self) -> &'static str {
        "rate"
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        self.next.ready(by)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let selected = self.pass(&parcel, Instant::now());
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.next.flush()
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        self.next.idle()
    }

    fn finish(&mut self) -> Result<(), AnalysisError> {
        self.next.finish()
    }
}
