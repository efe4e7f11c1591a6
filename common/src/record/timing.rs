//! The times of operations, with fewer or more details than Kieker's record of an execution.
//!
//! Kieker itself has no such types. The first one is KoPeMe's
//! (`de.dagere.kopeme.kieker.record.DurationRecord`), field by field.

use std::collections::BTreeMap;

use super::Record;

/// One execution of an operation, without its place in a trace.
///
/// KoPeMe's record of the same name, with the same fields in the same order.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "de.dagere.kopeme.kieker.record.DurationRecord",
    rename_all = "camelCase"
)]
pub struct DurationRecord {
    /// The operation with its parameters.
    #[record(default = "noOperation".into())]
    pub operation_signature: String,
    /// Entered at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tout: i64,
}

/// One execution of an asynchronous operation, with its place in a trace.
///
/// It has the fields of Kieker's `OperationExecutionRecord`, and additional ones. It is Baler's own
/// type.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "baler.AsyncOperationExecutionRecord", rename_all = "camelCase")]
pub struct AsyncOperationExecutionRecord {
    /// The operation with its parameters.
    pub operation_signature: String,
    /// The session.
    #[record(default = "<no-session-id>".into())]
    pub session_id: String,
    /// The trace.
    #[record(default = -1)]
    pub trace_id: i64,
    /// First polled at, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default = -1)]
    pub tin: i64,
    /// Ended at, in nanoseconds since the Unix epoch; the time since `tin` is the total time.
    #[record(unix_nanos, default = -1)]
    pub tout: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// Execution order index: how many calls of the trace began earlier.
    #[record(default = -1)]
    pub eoi: i32,
    /// Execution stack size: how many calls of the trace were open when it began.
    #[record(default = -1)]
    pub ess: i32,
    /// The time inside its polls, in nanoseconds. For the rest of the total time it waited.
    pub busy: u64,
    /// The number of its polls.
    pub polls: u32,
    /// Whether its future was dropped before it was done.
    pub cancelled: bool,
    /// Whether a panic ended it.
    pub panicked: bool,
}

/// The totals of an operation's executions by one thread in a period of time.
///
/// [`merge`](Self::merge) adds records of one operation. It loses only the division into threads
/// and periods. The type has no fields `tin` and `tout`, by which consumers recognise the record of
/// a single execution. It is Baler's own type. The writers of Knoche's paper and of KoPeMe emit a
/// sum in the record of one execution, without the number of executions.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "baler.AggregatedDurationRecord", rename_all = "camelCase")]
pub struct AggregatedDurationRecord {
    /// The operation with its parameters.
    pub operation_signature: String,
    /// The host.
    pub hostname: String,
    /// The start of the first execution, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub since: i64,
    /// The end of the last execution, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub until: i64,
    /// The number of finished executions.
    pub count: u64,
    /// The total time of all executions, in nanoseconds.
    pub sum: u64,
    /// The shortest time, in nanoseconds.
    pub min: u64,
    /// The longest time, in nanoseconds.
    pub max: u64,
    /// Non-empty buckets of [`LogLinear`], ascending; empty without a histogram.
    #[record(default)]
    pub buckets: Vec<u32>,
    /// The number of executions in each of these buckets.
    #[record(default)]
    pub bucket_counts: Vec<u64>,
}

/// Two records cannot be merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AggregateError {
    /// They belong to two operations.
    #[error("the records are of two operations")]
    OtherOperation,
    /// The numbers of buckets and counts differ, or the buckets are not in order.
    #[error("the buckets of a record are out of order or without their counts")]
    Buckets,
}

impl AggregatedDurationRecord {
    /// Adds another record of the same operation. The hostname of this record stays.
    ///
    /// The order of merging does not matter for the totals. The histogram is complete only if all
    /// records have one. Executions of a record without one are missing in it;
    /// [`bucketed`](Self::bucketed) is then below [`count`](Self::count).
    ///
    /// # Errors
    ///
    /// [`AggregateError`]; this record then stays as it was.
    pub fn merge(&mut self, other: &Self) -> Result<(), AggregateError> {
        if self.operation_signature != other.operation_signature {
            return Err(AggregateError::OtherOperation);
        }
        let mut histogram: BTreeMap<u32, u64> = self.histogram()?.collect();
        for (bucket, more) in other.histogram()? {
            let count = histogram.entry(bucket).or_default();
            *count = count.saturating_add(more);
        }
        (self.buckets, self.bucket_counts) = histogram.into_iter().unzip();
        if other.count > 0 {
            if self.count == 0 {
                (self.since, self.until) = (other.since, other.until);
                (self.min, self.max) = (other.min, other.max);
            }
            self.since = self.since.min(other.since);
            self.until = self.until.max(other.until);
            self.min = self.min.min(other.min);
            self.max = self.max.max(other.max);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        Ok(())
    }

    /// Returns the number of executions in the histogram.
    pub fn bucketed(&self) -> u64 {
        let counts = self.bucket_counts.iter();
        counts.fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Returns a time that this part of the executions did not exceed, in nanoseconds, exact to a
    /// bucket. `None` without a histogram.
    ///
    /// `part` is from 0 to 1, such as 0.99 for the 99th percentile.
    pub fn quantile(&self, part: f64) -> Option<u64> {
        let total = self.bucketed();
        let mut below = 0_u64;
        for (bucket, count) in self.histogram().ok()? {
            below = below.saturating_add(count);
            if count > 0 && as_f64(below) >= as_f64(total) * part {
                return Some(LogLinear::highest(bucket).min(self.max));
            }
        }
        None
    }

    /// The buckets with their counts.
    fn histogram(&self) -> Result<impl Iterator<Item = (u32, u64)>, AggregateError> {
        let is_sorted = self.buckets.is_sorted_by(|left, right| left < right);
        if self.buckets.len() != self.bucket_counts.len() || !is_sorted {
            return Err(AggregateError::Buckets);
        }
        let counts = self.bucket_counts.iter();
        Ok(self
            .buckets
            .iter()
            .zip(counts)
            .map(|(bucket, count)| (*bucket, *count)))
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a part of more than 2^52 executions need not be exact"
)]
const fn as_f64(count: u64) -> f64 {
    count as f64
}

/// Buckets of a histogram for values from 0 to 2^64 - 1. Below 32 each value has a bucket. Above,
/// each power of two has 16 buckets of equal width. So the width of a bucket is at most 1/16 of its
/// values.
///
/// The numbers are part of the meaning of [`AggregatedDurationRecord`] and do not change. Bucket
/// `b` below 32 holds the value `b`. With `e = b / 16 - 1` and `m = b % 16 + 16`, every other
/// bucket holds `m << e` up to `((m + 1) << e) - 1`. It is the layout of HdrHistogram with a fixed
/// precision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLinear;

/// The number of buckets of a power of two, in bits.
const BITS: u32 = 4;

impl LogLinear {
    /// The number of buckets.
    pub const BUCKETS: usize = 976;

    /// Returns the number of the bucket for a value, below [`BUCKETS`](Self::BUCKETS).
    #[inline]
    pub const fn bucket_of(value: u64) -> u32 {
        let magnitude = (value | (1 << BITS)).ilog2().wrapping_sub(BITS);
        let mantissa = (value >> magnitude).to_le_bytes();
        // From 16 to 31, or less for the smallest values.
        (magnitude << BITS).wrapping_add(u32::from_le_bytes([mantissa[0], 0, 0, 0]))
    }

    /// The smallest value of a bucket.
    pub fn lowest(bucket: u32) -> u64 {
        let Some(exponent) = (bucket >> BITS).checked_sub(1) else {
            return u64::from(bucket);
        };
        let mantissa = u64::from((bucket & ((1 << BITS) - 1)) | (1 << BITS));
        match exponent {
            ..60 => mantissa << exponent,
            // Beyond the last bucket there is nothing.
            60.. => u64::MAX,
        }
    }

    /// The largest value of a bucket.
    pub fn highest(bucket: u32) -> u64 {
        match bucket.checked_add(1).map(Self::lowest) {
            None | Some(u64::MAX) => u64::MAX,
            Some(next) => next - 1,
        }
    }
}

#[cfg(test)]
mod tests;
