//! The operation that a thread was seen in at points in time, and estimates of times from it.
//!
//! Kieker has no such record. [`BackToBack`] is the rule of F. Lange, "Measure Java Performance –
//! Sampling or Instrumentation?" (2011). [`Midpoint`] is an estimator without its bias.

use std::collections::BTreeMap;

use super::Record;

/// Separates operations in [`ThreadSampleRecord::callers`]. No signature contains it.
pub const SEPARATOR: char = ';';

/// The operations in which a thread was when a sampler looked at it. A thread outside of all
/// sampled operations has no record. It is Baler's own type.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "baler.ThreadSampleRecord", rename_all = "camelCase")]
pub struct ThreadSampleRecord {
    /// The time of the sample, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    pub hostname: String,
    /// The number of the thread among the sampled threads of its process, from 1. It is never
    /// used again.
    pub thread: u32,
    /// The number of the sample among all samples of the sampler, from 1. A thread that is in an
    /// operation at each of them has consecutive numbers.
    pub round: u64,
    /// The time since the sample before, by a clock that never jumps, in nanoseconds.
    pub interval: u64,
    /// The innermost operation.
    pub operation_signature: String,
    /// The operations around it, the outermost first, separated by [`SEPARATOR`] (the form of
    /// "folded" stacks).
    pub callers: String,
    /// The number of open operations. It is higher than the number of names if the stack was
    /// deeper than a sampler can see.
    pub depth: u32,
}

impl ThreadSampleRecord {
    /// Returns the operation that called the innermost one; `None` if no sampled operation did.
    pub fn caller(&self) -> Option<&str> {
        let caller = self.callers.rsplit(SEPARATOR).next();
        caller.filter(|caller| !caller.is_empty())
    }

    /// Whether this sample of a thread came directly after that one.
    fn follows(&self, before: &Self) -> bool {
        before.round.checked_add(1) == Some(self.round)
    }
}

/// The article's estimate of the times of one thread.
///
/// The time since the last sample counts only if the same operation is seen twice in a row. So each
/// change of operation loses one interval, and operations shorter than an interval have no time.
/// Calls of one operation between which no sample sees another one are a single entry of the path.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackToBack<'a> {
    /// Nanoseconds by operation.
    pub times: BTreeMap<&'a str, u64>,
    /// Each operation that was seen after another one, and its caller.
    pub path: Vec<(Option<&'a str>, &'a str)>,
}

impl<'a> BackToBack<'a> {
    /// Estimates from the samples of one thread, in their order.
    pub fn of(samples: impl IntoIterator<Item = &'a ThreadSampleRecord>) -> Self {
        let mut estimate = Self::default();
        let mut last: Option<&ThreadSampleRecord> = None;
        for sample in samples {
            let operation = sample.operation_signature.as_str();
            let is_same = last
                .is_some_and(|last| sample.follows(last) && last.operation_signature == operation);
            if is_same {
                let time = estimate.times.entry(operation).or_default();
                add(time, sample.interval);
            } else {
                estimate.path.push((sample.caller(), operation));
            }
            last = Some(sample);
        }
        estimate
    }
}

/// An unbiased estimate of the times of one thread.
///
/// Each sample stands for half of the interval before it and half of the interval after it. If
/// calls do not keep in step with the sampler (jittered intervals make sure of that), the expected
/// time is the true time, also of operations that are shorter than an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Midpoint<'a> {
    /// By operation.
    pub times: BTreeMap<&'a str, EstimatedTime>,
}

/// The time of an operation, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EstimatedTime {
    /// The samples that saw the operation.
    pub samples: u64,
    /// The estimate.
    pub nanoseconds: u64,
    /// The bounds of a 95 % confidence interval (Wilson's, which also holds for few samples), if
    /// the samples are independent of each other.
    pub interval: (u64, u64),
}

impl<'a> Midpoint<'a> {
    /// Estimates from the samples of one thread, in their order.
    pub fn of(samples: impl IntoIterator<Item = &'a ThreadSampleRecord>) -> Self {
        let mut times: BTreeMap<&str, EstimatedTime> = BTreeMap::new();
        let mut last: Option<&ThreadSampleRecord> = None;
        let mut first_round = 0;
        for sample in samples {
            match last {
                Some(last) if sample.follows(last) => {
                    add_half_after(&mut times, last, sample.interval);
                }
                // Nobody knows the length of the interval after the last sample in an operation.
                // Intervals are alike, so the one before stands for it.
                Some(last) => add_half_after(&mut times, last, last.interval),
                None => first_round = sample.round,
            }
            let time = times.entry(&sample.operation_signature).or_default();
            time.samples += 1;
            add(&mut time.nanoseconds, sample.interval / 2);
            last = Some(sample);
        }
        let Some(last) = last else {
            return Self::default();
        };
        add_half_after(&mut times, last, last.interval);
        let total = last.round.saturating_sub(first_round).saturating_add(1);
        let sum: u64 = times.values().map(|time| time.samples).sum();
        let busy: f64 = times.values().map(|time| as_f64(time.nanoseconds)).sum();
        let weight = busy / as_f64(sum);
        for time in times.values_mut() {
            time.interval = wilson(time.samples, total, weight);
        }
        Self { times }
    }
}

/// Adds the larger half of the interval after a sample.
fn add_half_after<'a>(
    times: &mut BTreeMap<&'a str, EstimatedTime>,
    sample: &'a ThreadSampleRecord,
    interval: u64,
) {
    let time = times.entry(&sample.operation_signature).or_default();
    add(&mut time.nanoseconds, interval.div_ceil(2));
}

/// Adds times of records, which may contain any number.
fn add(time: &mut u64, more: u64) {
    *time = time.saturating_add(more);
}

/// What hybrid monitoring saw of an operation during a time: a part of its calls, and the times at
/// which threads were in it. It is Baler's own type.
///
/// The operation is on all the time, or in bursts at random times.
#[derive(Debug, Clone, PartialEq, Default, Record)]
#[record(name = "baler.PartTimeRecord", rename_all = "camelCase")]
pub struct PartTimeRecord {
    /// The end of the time, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    pub hostname: String,
    /// The operation.
    pub operation_signature: String,
    /// The time that the record stands for, in nanoseconds.
    pub interval: u64,
    /// The part of it in which all operations were off, because the budget was spent.
    pub off: u64,
    /// The part of the rest in which the operation was on: the calls that begin then are counted.
    pub share: f64,
    /// Whether these calls are also recorded by their probe: the operation is a hot spot, and may be
    /// recorded. A consumer divides the number of its records by the share.
    pub is_recorded: bool,
    /// The counted calls; of an asynchronous operation its polls.
    pub calls: u64,
    /// The sum over all slices of time of the square of their counted calls.
    pub call_squares: f64,
    /// How often a sampler looked at the threads.
    pub looks: u64,
    /// The number of threads with this innermost operation, summed over all looks.
    pub seen: f64,
    /// The sum over all looks of the square of that number.
    pub seen_squares: f64,
}

/// An unbiased estimate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The bounds of its 95 % confidence interval.
    pub interval: (f64, f64),
}

impl Estimate {
    fn new(value: f64, variance: f64, least: f64) -> Self {
        let reach = Z * variance.max(0.0).sqrt();
        Self {
            value,
            interval: ((value - reach).max(least), value + reach),
        }
    }
}

impl PartTimeRecord {
    /// Estimates the calls that began during the time (Horvitz and Thompson's estimator). While the
    /// budget was spent, they are taken to be as frequent as otherwise. `None` if nothing was on.
    pub fn all_calls(&self) -> Option<Estimate> {
        let was_on = self.interval.checked_sub(self.off)?;
        if was_on == 0 || self.share <= 0.0 {
            return None;
        }
        let scale = as_f64(self.interval) / as_f64(was_on) / self.share;
        let value = as_f64(self.calls) * scale;
        let variance = self.call_squares * (1.0 - self.share) * scale * scale;
        Some(Estimate::new(value, variance, as_f64(self.calls)))
    }

    /// Estimates the time of the operation itself, without the operations that it calls, over all
    /// threads in nanoseconds. `None` if nobody looked.
    pub fn self_time(&self) -> Option<Estimate> {
        let looks = as_f64(self.looks);
        let interval = as_f64(self.interval);
        let mean = self.seen / looks;
        let variance = (self.seen_squares / looks - mean * mean) / looks;
        let variance = variance * interval * interval;
        (self.looks > 0).then(|| Estimate::new(mean * interval, variance, 0.0))
    }
}

/// The 97.5 % quantile of the normal distribution.
const Z: f64 = 1.959_964;

/// Returns the bounds of the number of samples out of `all`, each of which stands for `weight`.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a time below 2^63 that is not negative"
)]
fn wilson(samples: u64, all: u64, weight: f64) -> (u64, u64) {
    let n = as_f64(all);
    let p = as_f64(samples) / n;
    let scale = 1.0 + Z * Z / n;
    let centre = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).max(0.0).sqrt();
    let time = |part: f64| (part / scale * n * weight).max(0.0) as u64;
    (time(centre - reach), time(centre + reach))
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an estimate of more than 2^52 nanoseconds need not be exact"
)]
const fn as_f64(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests;
