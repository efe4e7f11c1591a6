//! Measures the response times of operations.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use baler_common::mutex::lock;
use baler_common::record::{Column, StringTable, Table};
use hdrhistogram::Histogram;

use crate::error::AnalysisError;
use crate::parcel::Parcel;
use crate::stage::Stage;

/// The most operations with figures of their own; calls of further ones are counted together.
const MAX_OPERATIONS: usize = 10_000;

/// Two significant digits: percentiles are exact to 1 %, a histogram takes about 20 KiB.
const SIGNIFICANT_DIGITS: u8 = 2;

/// The most durations that wait for their histogram.
const MAX_RECENT: usize = 64;

/// Measures the response times of operations: of every record with a string `operationSignature`
/// and integers `tin` and `tout`, whatever its type.
#[derive(Debug)]
pub struct ResponseTimes {
    times: Times,
}

/// A handle to the figures of a [`ResponseTimes`].
#[derive(Debug, Clone, Default)]
pub struct Times(Arc<Mutex<OperationTable>>);

#[derive(Debug, Default)]
struct OperationTable {
    operations: HashMap<Box<str>, Durations>,
    other: Option<Durations>,
    ended_before_start: u64,
}

/// The durations of an operation's calls.
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// `None` until it gets the first durations. Many operations have few calls.
    histogram: Option<Box<Histogram<u64>>>,
    /// Durations that the histogram does not have yet. The histograms of many operations do not fit
    /// the processor's caches, so each gets many durations at a time.
    recent: Vec<u64>,
    total_ns: u128,
}

/// The response times of one operation, in nanoseconds.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct OperationTimes {
    /// The operation's signature; `(other)` for the operations beyond the limit.
    pub operation: Box<str>,
    /// The number of calls.
    #[serde(rename = "count")]
    pub calls: u64,
    /// The exact mean.
    pub mean_ns: f64,
    /// The smallest, exact to 1 %.
    pub min_ns: u64,
    /// The median, exact to 1 %.
    pub p50_ns: u64,
    /// The 95th percentile, exact to 1 %.
    pub p95_ns: u64,
    /// The 99th percentile, exact to 1 %.
    pub p99_ns: u64,
    /// The largest, exact to 1 %.
    pub max_ns: u64,
}

impl ResponseTimes {
    /// Creates a stage without figures, and the handle to read them.
    pub fn new() -> (Self, Times) {
        let times = Times::default();
        (times.stage(), times)
    }
}

impl Times {
    /// Returns a stage that measures into the same figures: one for each of several workers.
    pub fn stage(&self) -> ResponseTimes {
        ResponseTimes {
            times: self.clone(),
        }
    }

    /// Returns the figures; operations with the most calls come first.
    pub fn operations(&self) -> Vec<OperationTimes> {
        let table = lock(&self.0);
        let mut all: Vec<OperationTimes> = table
            .operations
            .iter()
            .map(|(name, operation)| operation.times(name))
            .collect();
        all.sort_by(|a, b| {
            b.calls
                .cmp(&a.calls)
                .then_with(|| a.operation.cmp(&b.operation))
        });
        all.extend(
            table
                .other
                .iter()
                .map(|operation| operation.times("(other)")),
        );
        all
    }

    /// Returns the number of calls that ended before they started. Their clock stepped back, and
    /// they are left out.
    pub fn ended_before_start(&self) -> u64 {
        lock(&self.0).ended_before_start
    }
}

impl Stage for ResponseTimes {
    fn name(&self) -> &'static str {
        "response times"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let mut operations = lock(&self.times.0);
        let batch = &parcel.chunk().batch;
        if parcel.len() == batch.len() {
            for table in batch.tables() {
                operations.add_table(table, batch.strings());
            }
            return Ok(());
        }
        for (_, record) in parcel.records() {
            use baler_common::record::ValueRef as V;
            let field = |name| record.field(name);
            if let (Some(V::String(name)), Some(V::Signed(tin)), Some(V::Signed(tout))) =
                (field("operationSignature"), field("tin"), field("tout"))
            {
                operations.add(name, tin, tout);
            }
        }
        Ok(())
    }
}

impl OperationTable {
    /// Reads straight from the columns.
    fn add_table(&mut self, table: &Table, strings: &StringTable) {
        if let (
            Some(Column::String(names)),
            Some(Column::Signed(tins)),
            Some(Column::Signed(touts)),
        ) = (
            table.column("operationSignature"),
            table.column("tin"),
            table.column("tout"),
        ) {
            for ((name, tin), tout) in names.iter().zip(tins).zip(touts) {
                let name = strings
                    .get(*name)
                    .expect("a decoder checked the string's number");
                self.add(name, *tin, *tout);
            }
        }
    }

    fn add(&mut self, name: &str, tin: i64, tout: i64) {
        let Some(nanos) = tout
            .checked_sub(tin)
            .and_then(|nanos| u64::try_from(nanos).ok())
        else {
            self.ended_before_start += 1;
            return;
        };
        if let Some(operation) = self.operations.get_mut(name) {
            operation.add(nanos);
            return;
        }
        let operation = match self.operations.len() < MAX_OPERATIONS {
            true => self.operations.entry(name.into()).or_default(),
            false => self.other.get_or_insert_default(),
        };
        operation.add(nanos);
    }
}

impl Durations {
    /// Adds a call.
    pub(crate) fn add(&mut self, nanos: u64) {
        self.total_ns = self.total_ns.saturating_add(nanos.into());
        self.add_recent(nanos);
    }

    fn add_recent(&mut self, nanos: u64) {
        self.recent.push(nanos);
        if self.recent.len() >= MAX_RECENT {
            let histogram = self.histogram.get_or_insert_with(empty_histogram);
            self.recent
                .drain(..)
                .for_each(|nanos| record(histogram, nanos, 1));
        }
    }

    /// Returns the histogram of all calls.
    fn histogram(&self) -> Cow<'_, Histogram<u64>> {
        let mut all = match &self.histogram {
            Some(all) if self.recent.is_empty() => return Cow::Borrowed(all),
            Some(all) => all.clone(),
            None => empty_histogram(),
        };
        self.recent
            .iter()
            .for_each(|nanos| record(&mut all, *nanos, 1));
        Cow::Owned(*all)
    }

    /// Returns the times in nanoseconds, exact to 1 %, with the number of calls for each.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        let histogram = self.histogram();
        let counts = histogram.iter_recorded();
        counts
            .map(|it| (it.value_iterated_to(), it.count_since_last_iteration()))
            .collect()
    }

    /// Returns the total time of all calls, in nanoseconds.
    pub(crate) fn total_ns(&self) -> u128 {
        self.total_ns
    }

    /// Adds figures of another one: its [`counts`](Self::counts) and [`total_ns`](Self::total_ns).
    pub(crate) fn add_all(&mut self, counts: &[(u64, u64)], total_ns: u128) {
        for (nanos, calls) in counts {
            match calls {
                1 => self.add_recent(*nanos),
                _ => {
                    let histogram = self.histogram.get_or_insert_with(empty_histogram);
                    record(histogram, *nanos, *calls);
                }
            }
        }
        // A saved file may have any total.
        self.total_ns = self.total_ns.saturating_add(total_ns);
    }

    /// Returns the number of calls.
    pub(crate) fn calls(&self) -> u64 {
        let counted = self.histogram.as_ref().map_or(0, |it| it.len());
        counted.saturating_add(self.recent.len() as u64)
    }

    /// Returns buckets: their upper bounds in nanoseconds, which are excluded, and their numbers of
    /// calls. Bounds are powers of two.
    pub(crate) fn buckets(&self) -> Vec<(u64, u64)> {
        let histogram = self.histogram();
        // 0 is in the first bucket, with 1.
        let [first, last] = [histogram.min(), histogram.max()].map(|ns| ns.max(1).ilog2());
        let buckets = (first..=last).map(|power| {
            let from = if power == 0 { 0 } else { 1_u64 << power };
            let last = u64::MAX >> (63 - power);
            (last.saturating_add(1), histogram.count_between(from, last))
        });
        buckets.collect()
    }

    /// Returns the figures, with this name.
    pub(crate) fn times(&self, name: &str) -> OperationTimes {
        let histogram = self.histogram();
        let calls = histogram.len();
        #[expect(
            clippy::cast_precision_loss,
            reason = "a mean need not be exact to the last bit"
        )]
        let mean_ns = if calls == 0 {
            0.0
        } else {
            self.total_ns as f64 / calls as f64
        };
        OperationTimes {
            operation: name.into(),
            calls,
            mean_ns,
            min_ns: histogram.min(),
            p50_ns: histogram.value_at_quantile(0.50),
            p95_ns: histogram.value_at_quantile(0.95),
            p99_ns: histogram.value_at_quantile(0.99),
            max_ns: histogram.max(),
        }
    }
}

fn empty_histogram() -> Box<Histogram<u64>> {
    let histogram = Histogram::new(SIGNIFICANT_DIGITS);
    Box::new(histogram.expect("at most 5 digits are allowed"))
}

/// Adds calls with this duration.
fn record(histogram: &mut Histogram<u64>, nanos: u64, calls: u64) {
    // The histogram grows as needed; only a value of 2^63 or more does not fit.
    if histogram.record_n(nanos, calls).is_err() {
        histogram.saturating_record_n(nanos, calls);
    }
}
