//! How many records pass a second.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// How many intervals are kept: an hour of seconds.
const MAX_INTERVALS: usize = 3_600;

/// Counts records and bytes of whole chunks by interval of arrival; Kieker's
/// `AnalysisThroughputFilter`.
#[derive(Debug)]
pub struct Throughput {
    rates: Rates,
}

/// A handle to the figures of a [`Throughput`].
#[derive(Debug, Clone)]
pub struct Rates(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    interval: Duration,
    start: Option<Instant>,
    /// The newest last; older ones than [`MAX_INTERVALS`] are gone.
    intervals: VecDeque<Interval>,
}

/// What passed in one interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Interval {
    /// When it began, counted from the first record's arrival.
    pub start: Duration,
    /// Records.
    pub records: u64,
    /// Bytes of the chunks they came in.
    pub bytes: u64,
}

impl Throughput {
    /// Counts by this interval (at least a millisecond).
    pub fn new(interval: Duration) -> (Self, Rates) {
        let interval = interval.max(Duration::from_millis(1));
        let state = State {
            interval,
            start: None,
            intervals: VecDeque::new(),
        };
        let rates = Rates(Arc::new(Mutex::new(state)));
        (
            Self {
                rates: rates.clone(),
            },
            rates,
        )
    }
}

impl Rates {
    /// The intervals in which something passed, oldest first; at most 3,600.
    pub fn intervals(&self) -> Vec<Interval> {
        self.lock().intervals.iter().copied().collect()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stage for Throughput {
    fn name(&self) -> &'static str {
        "throughput"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        self.rates.lock().add(&parcel, Instant::now());
        Ok(())
    }
}

impl State {
    fn add(&mut self, parcel: &Parcel, now: Instant) {
        let elapsed = now.saturating_duration_since(*self.start.get_or_insert(now));
        let ordinal = elapsed
            .as_nanos()
            .checked_div(self.interval.as_nanos())
            .unwrap_or(0);
        let start = self
            .interval
            .saturating_mul(u32::try_from(ordinal).unwrap_or(u32::MAX));
        if self
            .intervals
            .back()
            .is_none_or(|newest| newest.start < start)
        {
            if self.intervals.len() >= MAX_INTERVALS {
                self.intervals.pop_front();
            }
            self.intervals.push_back(Interval {
                start,
                ..Interval::default()
            });
        }
        if let Some(newest) = self.intervals.back_mut() {
            let count = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
            newest.records = newest.records.saturating_add(count(parcel.len()));
            newest.bytes = newest
                .bytes
                .saturating_add(count(parcel.chunk().summary.bytes));
        }
    }
}
