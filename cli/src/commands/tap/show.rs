//! Which records are shown, and how soon.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use baler_analysis::{AnalysisError, Parcel, Stage};
use baler_common::record::RecordRef;
use baler_common::transport::ChunkIdentity;

/// Shows every chunk at once: whoever looks wants to see what passes now.
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

/// Passes the records that `selects` wants.
pub(super) struct Select<F, S> {
    pub(super) selects: F,
    pub(super) next: S,
}

impl<F, S: Stage> Stage for Select<F, S>
where
    F: FnMut(RecordRef<'_>, Option<ChunkIdentity>) -> bool + Send,
{
    fn name(&self) -> &'static str {
        "select"
    }

    fn next(&mut self) -> Option<&mut dyn Stage> {
        Some(&mut self.next)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let chunk = parcel.identity();
        let selected = parcel.select(|record| (self.selects)(record, chunk));
        if selected.is_empty() {
            return Ok(());
        }
        self.next.accept(selected)
    }
}

/// A budget of records: a number a second, that of one second at once.
pub(super) struct RateLimit {
    per_second: f64,
    /// How many records may pass now.
    budget: f64,
    filled: Instant,
    /// How many records did not pass.
    limited: Arc<AtomicU64>,
}

impl RateLimit {
    /// A full budget. Records that it has no room for are counted in `limited`.
    pub(super) fn new(per_second: f64, limited: &Arc<AtomicU64>) -> Self {
        Self {
            per_second,
            budget: per_second.max(1.0),
            filled: Instant::now(),
            limited: Arc::clone(limited),
        }
    }

    /// Takes one record from the budget; returns whether there was room.
    pub(super) fn take(&mut self) -> bool {
        let now = Instant::now();
        let elapsed = now.saturating_duration_since(self.filled).as_secs_f64();
        self.filled = now;
        let most = self.per_second.max(1.0);
        self.budget = (self.budget + elapsed * self.per_second).min(most);
        if self.budget < 1.0 {
            self.limited.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.budget -= 1.0;
        true
    }
}
