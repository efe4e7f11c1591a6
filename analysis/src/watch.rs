//! The figures of a source, for other threads than its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::report::SourceReport;

/// How old a view may become while its source is being stepped. Making a report costs some
/// microseconds a lane, so it is not made for every chunk.
const INTERVAL: Duration = Duration::from_millis(250);

/// A view of a source's figures; see [`Source::watch`](crate::Source::watch).
///
/// Cloning shares; it can be looked at from any thread, also when the source is gone.
#[derive(Debug, Clone)]
pub struct SourceWatch {
    report: Arc<Mutex<SourceReport>>,
}

impl SourceWatch {
    /// The figures as the source last showed them: a quarter of a second old at most, unless a
    /// stage holds the source up.
    pub fn report(&self) -> SourceReport {
        self.report
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

/// The source's end of a view.
#[derive(Debug)]
pub(crate) struct Watched {
    view: SourceWatch,
    due: Instant,
}

impl Watched {
    pub(crate) fn new(report: SourceReport) -> Self {
        Self {
            view: SourceWatch {
                report: Arc::new(Mutex::new(report)),
            },
            due: Instant::now() + INTERVAL,
        }
    }

    pub(crate) fn view(&self) -> SourceWatch {
        self.view.clone()
    }

    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.due
    }

    pub(crate) fn show(&mut self, report: SourceReport, now: Instant) {
        *self
            .view
            .report
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = report;
        self.due = now + INTERVAL;
    }
}
