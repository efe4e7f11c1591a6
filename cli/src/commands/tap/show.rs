//! Stages that decide how many records are shown, and how soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use baler_analysis::{AnalysisError, Parcel, Stage};

/// Shows every chunk at once, because the user wants to see the records that pass now.
pub(super) struct Prompt<S>(pub(super) S);

impl<S: Stage> Stage for Prompt<S> {
    fn name(&self) -> &'static str {
        "prompt"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.0)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.0.accept(parcel)?;
        self.0.flush()
    }
}

/// Passes at most a number of records a second. The records of one second may pass at once.
pub(super) struct Limit<S> {
    per_second: f64,
    /// The number of records that may pass now.
    budget: f64,
    filled: Instant,
    /// The number of records that did not pass.
    limited: Arc<AtomicU64>,
    next: S,
}

impl<S: Stage> Limit<S> {
    /// Creates a limit that counts refused records in `limited`.
    pub(super) fn new(per_second: f64, limited: &Arc<AtomicU64>, next: S) -> Self {
        Self {
            per_second,
            budget: per_second.max(1.0),
            filled: Instant::now(),
            limited: Arc::clone(limited),
            next,
        }
    }
}

impl<S: Stage> Stage for Limit<S> {
    fn name(&self) -> &'static str {
        "rate"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let now = Instant::now();
        let elapsed = now.duration_since(self.filled).as_secs_f64();
        self.filled = now;
        let max = self.per_second.max(1.0);
        self.budget = (self.budget + elapsed * self.per_second).min(max);
        let selected = parcel.select(|_| {
            let passes = self.budget >= 1.0;
            if passes {
                self.budget -= 1.0;
            } else {
                self.limited.fetch_add(1, Ordering::Relaxed);
            }
            passes
        });
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }
}
