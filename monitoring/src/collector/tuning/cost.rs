//! What chunks cost, by their number, their records and their bytes.

use std::time::Duration;

use super::super::closing::looks_per_second;

/// What a message, a record and a byte cost the process that sends them, in seconds of CPU time: the
/// model that `baler sweep` fits to what it measures and by which the collector chooses.
///
/// What a record costs falls with the size of its chunk ("Improving the I/O performance of
/// monitoring by batching": Knoche, section 4) towards what it costs by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkCost {
    /// A message: waking the collector, a header, schemas, system calls, a confirmation.
    pub seconds_per_message: f64,
    /// A record: queue, batch, encoding.
    pub seconds_per_record: f64,
    /// A byte of a message.
    pub seconds_per_byte: f64,
}

/// As measured over TCP without compression on two busy cores of a server's processor, where a message
/// has four threads woken and finds their caches cold.
///
/// What counts is only how many records a message costs as much as; a machine that is twice as fast
/// has the same best size.
impl Default for ChunkCost {
    fn default() -> Self {
        Self {
            seconds_per_message: 100e-6,
            seconds_per_record: 150e-9,
            seconds_per_byte: 1e-9,
        }
    }
}

impl ChunkCost {
    /// Seconds of CPU time for these numbers of messages, records and bytes.
    pub fn seconds(&self, messages: f64, records: f64, bytes: f64) -> f64 {
        messages * self.seconds_per_message
            + records * self.seconds_per_record
            + bytes * self.seconds_per_byte
    }

    /// The size of a chunk beyond which growing saves less than this share of a record's cost;
    /// infinite where records cost nothing.
    pub fn largest_useful(&self, bytes_per_record: f64, share: f64) -> f64 {
        let alone = self.seconds(0.0, 1.0, bytes_per_record) * share;
        if self.seconds_per_message <= 0.0 {
            1.0
        } else if alone > 0.0 {
            (self.seconds_per_message / alone).max(1.0)
        } else {
            f64::INFINITY
        }
    }

    /// How many records a chunk has that closes at `chunk_records`, or when its first one has waited for
    /// `wait`, at `rate` records a second; at least one.
    pub fn records_per_chunk(chunk_records: f64, wait: Duration, rate: f64) -> f64 {
        chunk_records.min((rate * wait.as_secs_f64()).max(1.0))
    }

    /// How often a collector with fixed settings wakes up to look for records, at `rate` records a
    /// second: small chunks are made several at a time.
    pub fn looks_per_second(records_per_chunk: f64, wait: Duration, rate: f64) -> f64 {
        looks_per_second(records_per_chunk, wait, rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COST: ChunkCost = ChunkCost {
        seconds_per_message: 100e-6,
        seconds_per_record: 80e-9,
        seconds_per_byte: 1e-9,
    };

    #[test]
    fn largest_useful_size_leaves_a_message_the_share_that_was_asked_for() {
        let size = COST.largest_useful(20.0, 0.01);
        assert!((size - 100_000.0).abs() < 1e-3, "{size}");
        let of_records = COST.seconds(0.0, size, size * 20.0);
        let whole = COST.seconds(1.0, size, size * 20.0);
        assert!((whole / of_records - 1.01).abs() < 1e-9);
    }

    #[test]
    fn a_model_with_nothing_in_it_has_a_size_all_the_same() {
        let free = ChunkCost {
            seconds_per_message: 0.0,
            seconds_per_record: 0.0,
            seconds_per_byte: 0.0,
        };
        assert!((free.largest_useful(20.0, 0.01) - 1.0).abs() < 1e-9);
        let only_messages = ChunkCost {
            seconds_per_message: 1.0,
            ..free
        };
        assert!(only_messages.largest_useful(20.0, 0.01).is_infinite());
    }

    #[test]
    fn the_wait_time_bounds_a_chunk() {
        let records = |size, ms, rate| {
            ChunkCost::records_per_chunk(size, Duration::from_millis(ms), rate).round()
        };
        assert!((records(1_024.0, 500, 10_000.0) - 1_024.0).abs() < 1e-9);
        assert!((records(1_024.0, 10, 10_000.0) - 100.0).abs() < 1e-9);
        assert!((records(1_024.0, 1, 10.0) - 1.0).abs() < 1e-9);
    }
}
