//! The result of one run of one case.

use serde::{Deserialize, Serialize};

use super::reading::Latency;
use crate::statistics::to_f64;

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
    /// Adds `later - earlier`.
    pub(super) const fn add(&mut self, later: Self, earlier: Self) {
        self.records += later.records.saturating_sub(earlier.records);
        self.age += later.age.saturating_sub(earlier.age);
        self.bytes += later.bytes.saturating_sub(earlier.bytes);
        self.flush += later.flush.saturating_sub(earlier.flush);
    }
}

/// The result of one run of one case. Rates are per second of the measured time.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Sample {
    /// How long it was measured.
    pub(super) seconds: f64,
    /// Seconds of CPU time a second.
    pub(super) writer_cpu: f64,
    pub(super) reader_cpu: Option<f64>,
    pub(super) broker_cpu: Option<f64>,
    /// Confirmed records and messages.
    pub(super) confirmed: f64,
    pub(super) messages: f64,
    /// Bytes on the wire while it was measured, ...
    pub(super) wire_bytes: f64,
    /// ... and from before the load began until everything was confirmed, not per second.
    pub(super) wire_bytes_of_run: u64,
    /// Records that were emitted and had not arrived at the end.
    pub(super) lag_records: Option<f64>,
    /// The writing process's resident memory at the end.
    pub(super) writer_memory_bytes: u64,
    pub(super) closed_by: ClosedBy,
    pub(super) latency: Option<Latency>,
    /// Records of the whole run: emitted, and arrived.
    pub(super) emitted: u64,
    pub(super) arrived: u64,
    /// Whether the records that arrived are those that were emitted, by their hash.
    pub(super) unaltered: bool,
}

impl Sample {
    /// Bytes on the wire a second. Where a case kept up with a rate that `due` names, they are the bytes
    /// of one record of the whole run times that rate: the measured time begins and ends in the middle of
    /// a chunk, and sent chunks are not yet confirmed.
    pub(super) fn wire_bytes(&self, due: Option<f64>) -> f64 {
        // The first record left before the load.
        let records = to_f64(self.emitted.saturating_sub(1));
        match due {
            Some(rate) if self.wire_bytes_of_run > 0 => {
                to_f64(self.wire_bytes_of_run) / records.max(1.0) * rate
            }
            _ => self.wire_bytes,
        }
    }

    /// Messages a second; where a case kept up with the rate `due`, the messages for one confirmed
    /// record times that rate.
    pub(super) fn messages(&self, due: Option<f64>) -> f64 {
        match due {
            Some(rate) if self.confirmed > 0.0 => self.messages * rate / self.confirmed,
            _ => self.messages,
        }
    }

    /// How many records did not arrive; 1 at least if the hash is wrong.
    pub(super) fn lost(&self) -> u64 {
        let missing = self.emitted.saturating_sub(self.arrived);
        match (missing, self.unaltered) {
            (0, false) => self.arrived.saturating_sub(self.emitted).max(1),
            (missing, _) => missing,
        }
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
    fn bytes_and_messages_of_a_rate_that_was_kept_are_those_of_a_record_times_the_rate() {
        // 21 chunks of 100 records in two seconds, of 24 at 980 records a second.
        let mut sample = Sample {
            seconds: 2.0,
            confirmed: 1_050.0,
            messages: 10.5,
            wire_bytes: 21_000.0,
            wire_bytes_of_run: 48_000,
            emitted: 2_401,
            ..Sample::default()
        };
        assert!((sample.wire_bytes(Some(980.0)) - 19_600.0).abs() < 1e-6);
        assert!((sample.messages(Some(980.0)) - 9.8).abs() < 1e-9);
        assert_eq!(
            (sample.wire_bytes(None), sample.messages(None)),
            (21_000.0, 10.5)
        );
        // Without a count nothing is known.
        sample.wire_bytes_of_run = 0;
        assert_eq!(sample.wire_bytes(Some(980.0)), 21_000.0);
        assert_eq!(Sample::default().messages(Some(980.0)), 0.0);
    }
}
