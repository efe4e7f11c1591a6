//! What one run of one case told.

use serde::{Deserialize, Serialize};

use super::reading::Latency;
use crate::statistics::to_f64;
use crate::wire::Wire;

/// How often chunks were closed, by reason.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedBy {
    /// By the number of records.
    pub records: u64,
    /// By the age of the oldest record.
    pub age: u64,
    /// By encoded bytes.
    pub bytes: u64,
    /// By a flush or the end.
    pub flush: u64,
}

impl ClosedBy {
    /// What was added since an earlier count.
    pub(super) const fn since(self, earlier: Self) -> Self {
        Self {
            records: self.records.saturating_sub(earlier.records),
            age: self.age.saturating_sub(earlier.age),
            bytes: self.bytes.saturating_sub(earlier.bytes),
            flush: self.flush.saturating_sub(earlier.flush),
        }
    }

    /// What both count together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            records: self.records.saturating_add(other.records),
            age: self.age.saturating_add(other.age),
            bytes: self.bytes.saturating_add(other.bytes),
            flush: self.flush.saturating_add(other.flush),
        }
    }
}

/// One second of a run; CPU times are seconds of CPU time, and everything is for a second even where
/// it was a little longer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct SecondSample {
    /// How long it really was.
    pub(super) seconds: f64,
    pub(super) writer_cpu: f64,
    /// Of the thread that emits, which an application would spend itself.
    pub(super) emitting_cpu: f64,
    pub(super) reader_cpu: f64,
    pub(super) broker_cpu: Option<f64>,
    /// Records that were emitted and confirmed, and messages that were confirmed.
    pub(super) emitted: f64,
    pub(super) confirmed: f64,
    pub(super) messages: f64,
    pub(super) wire: Wire,
    /// Records that were emitted and had not arrived at its end.
    pub(super) lag_records: f64,
    pub(super) writer_bytes: u64,
    /// Of the writing process.
    pub(super) context_switches: f64,
    pub(super) page_faults: f64,
    /// For how long the load waited for the readers; nothing where it does not.
    pub(super) held_back: Option<f64>,
}

/// What one run of one case told.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    pub(super) seconds: Vec<SecondSample>,
    /// Of the writing process's CPU time while it was measured.
    pub(super) user_share: f64,
    pub(super) closed_by: ClosedBy,
    pub(super) latency: Latency,
    /// From before the load began until everything was confirmed.
    pub(super) wire: Wire,
    /// Records of the whole run: those emitted, and those that arrived.
    pub(super) emitted: u64,
    pub(super) arrived: u64,
    /// Whether those that arrived are those that were emitted, by their hash.
    pub(super) unaltered: bool,
    /// Messages that arrived and were of another run.
    pub(super) foreign: u64,
}

impl Sample {
    /// The mean over its seconds, each weighted by how long it was.
    pub(super) fn mean(&self, of: impl Fn(&SecondSample) -> f64) -> f64 {
        let time: f64 = self.seconds.iter().map(|second| second.seconds).sum();
        let sum: f64 = self
            .seconds
            .iter()
            .map(|second| of(second) * second.seconds)
            .sum();
        if time > 0.0 { sum / time } else { 0.0 }
    }

    /// What a count on the wire a second is multiplied by to be that of a record times this rate.
    ///
    /// It is of all records of the run but the first one, which left before: seconds cut chunks in two,
    /// and chunks that are sent are not yet confirmed.
    pub(super) fn wire_by_record(&self, rate: f64, of: impl Fn(Wire) -> u64) -> f64 {
        let measured = self.mean(|second| to_f64(of(second.wire)) / second.seconds.max(1e-9));
        let records = to_f64(self.emitted.saturating_sub(1));
        let due = to_f64(of(self.wire)) / records.max(1.0) * rate;
        match measured > 0.0 && due > 0.0 {
            true => due / measured,
            false => 1.0,
        }
    }

    /// What messages a second are multiplied by to be those of a confirmed record times this rate.
    pub(super) fn messages_by_record(&self, rate: f64) -> f64 {
        let confirmed = self.mean(|second| second.confirmed);
        match confirmed > 0.0 {
            true => rate / confirmed,
            false => 1.0,
        }
    }

    /// How many records did not arrive; a hash that is wrong is one, too.
    pub(super) fn lost(&self) -> u64 {
        let missing = self.emitted.saturating_sub(self.arrived);
        match (missing, self.unaltered) {
            (0, false) => self.arrived.saturating_sub(self.emitted).max(1),
            (missing, _) => missing,
        }
    }

    pub(super) fn duration(&self) -> f64 {
        self.seconds.iter().map(|second| second.seconds).sum()
    }

    pub(super) fn largest_footprint(&self) -> f64 {
        let bytes = self.seconds.iter().map(|second| second.writer_bytes);
        to_f64(bytes.max().unwrap_or(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_or_altered_is_lost() {
        let mut sample = Sample {
            emitted: 100,
            arrived: 100,
            unaltered: true,
            ..Sample::default()
        };
        assert_eq!(sample.lost(), 0);
        sample.unaltered = false;
        assert_eq!(sample.lost(), 1);
        sample.arrived = 90;
        assert_eq!(sample.lost(), 10);
    }

    #[test]
    fn what_a_record_takes_is_told_of_the_whole_run_whatever_its_seconds_hold() {
        let wire = |sent_bytes| Wire {
            sent_bytes,
            ..Wire::default()
        };
        // Ten and eleven chunks of 100 records in two seconds, of 24 at 980 records a second.
        let second = |chunks: u32| SecondSample {
            seconds: 1.0,
            confirmed: 100.0 * f64::from(chunks),
            messages: f64::from(chunks),
            wire: wire(u64::from(chunks) * 2_000),
            ..SecondSample::default()
        };
        let mut sample = Sample {
            seconds: vec![second(10), second(11)],
            wire: wire(48_000),
            emitted: 2_401,
            ..Sample::default()
        };
        let bytes = |wire: Wire| wire.sent_bytes;
        let told = 21_000.0 * sample.wire_by_record(980.0, bytes);
        assert!((told - 19_600.0).abs() < 1e-6, "{told}");
        let told = 10.5 * sample.messages_by_record(980.0);
        assert!((told - 9.8).abs() < 1e-9, "{told}");
        // Where nothing was counted nothing is known.
        sample.wire = Wire::default();
        assert!((sample.wire_by_record(980.0, bytes) - 1.0).abs() < 1e-9);
        assert!((Sample::default().messages_by_record(980.0) - 1.0).abs() < 1e-9);
    }

    #[test]
    fn a_longer_second_weighs_more() {
        let second = |seconds, writer_cpu| SecondSample {
            seconds,
            writer_cpu,
            ..SecondSample::default()
        };
        let sample = Sample {
            seconds: vec![second(1.0, 1.0), second(3.0, 2.0)],
            ..Sample::default()
        };
        assert!((sample.mean(|second| second.writer_cpu) - 1.75).abs() < 1e-12);
        assert!((sample.duration() - 4.0).abs() < 1e-12);
    }
}
