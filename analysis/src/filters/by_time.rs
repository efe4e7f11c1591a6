//! Records of a span of time.

use std::ops::Range;
use std::time::Instant;

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// Passes records whose timestamp lies in a span, and by choice those without one.
#[derive(Debug)]
pub struct ByTime<S> {
    unix_ns: Range<i64>,
    keep_timeless: bool,
    next: S,
}

impl<S: Stage> ByTime<S> {
    /// Passes records of `unix_ns` (nanoseconds since the Unix epoch; the end is excluded) on to
    /// `next`, and none without a timestamp.
    pub fn new(unix_ns: Range<i64>, next: S) -> Self {
        Self {
            unix_ns,
            keep_timeless: false,
            next,
        }
    }

    /// Passes records without a timestamp too.
    #[must_use]
    pub fn keep_timeless(mut self) -> Self {
        self.keep_timeless = true;
        self
    }
}

impl<S: Stage> Stage for ByTime<S> {
    fn name(&self) -> &'static str {
        "by time"
    }

    fn ready(&mut self, by: Instant) -> Result<bool, AnalysisError> {
        self.next.ready(by)
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let selected = parcel.select(|record| match record.timestamp() {
            Some(timestamp) => self.unix_ns.contains(&timestamp),
            None => self.keep_timeless,
        });
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
