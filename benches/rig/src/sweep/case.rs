//! The measured cases, one a row.

use baler_common::transport::ContainerKind;
use serde::{Deserialize, Serialize};

/// The way of records to the broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Through Baler's controller, in chunks of a size that the collector chooses.
    Auto,
    /// Through Baler's controller, in chunks of a fixed size.
    Baler,
    /// As `Baler`, in Kieker's container.
    Kieker,
    /// One message a record with the client library at its best: many messages are in flight, and
    /// its own batching is on.
    Pipelined,
    /// One message a record, each confirmed before the next is sent: the simplest program.
    Awaiting,
    /// Records are made in time and discarded: the cost of the load itself.
    Pacing,
}

impl Way {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Baler => "baler",
            Self::Kieker => "kieker",
            Self::Pipelined => "pipelined",
            Self::Awaiting => "awaiting",
            Self::Pacing => "pacing",
        }
    }

    /// Whether it sends records as rows of plain bytes.
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::Pipelined | Self::Awaiting)
    }
}

/// The case of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The way of records to the broker.
    pub way: Way,
    /// The records that fill a chunk. `None`: there are no chunks, or the collector chooses.
    pub chunk_records: Option<u32>,
    /// Records a second. `None`: as fast as the medium takes them.
    pub rate: Option<f64>,
    /// The compression of chunks. `None`: there are no chunks.
    pub compression: Option<String>,
    /// The age of the oldest record at which a chunk closes; for [`Way::Auto`] the limit from
    /// emitting to confirmation. `None`: there are no chunks.
    pub wait_time_ms: Option<f64>,
    /// The number of reading processes. 0: only writing is measured.
    pub consumers: u16,
}

impl Case {
    /// The name of a row: the number of records a chunk, or the way.
    pub fn label(&self) -> String {
        match self.chunk_records {
            Some(records) => records.to_string(),
            None => self.way.name().to_owned(),
        }
    }

    /// Whether a reader checks and times the arrival of the records.
    pub(super) fn is_read(&self) -> bool {
        self.way != Way::Pacing && self.consumers > 0
    }

    /// Returns the number of records that fill the last chunk, if `emitted` were emitted and the
    /// first one was sent alone; `emitted` itself if chunks do not close by their number of
    /// records.
    pub(super) fn full_after(&self, emitted: u64) -> u64 {
        let (Some(size), Some(wait_ms), Some(rate)) =
            (self.chunk_records, self.wait_time_ms, self.rate)
        else {
            return emitted;
        };
        match records_of(size, wait_ms, rate) < f64::from(size) {
            true => emitted,
            false => 1 + (emitted - 1).next_multiple_of(u64::from(size)),
        }
    }

    /// The container of its chunks. `None`: there are no chunks.
    pub fn container(&self) -> Option<ContainerKind> {
        match self.way {
            Way::Auto | Way::Baler => Some(ContainerKind::Native),
            Way::Kieker => Some(ContainerKind::Kieker),
            Way::Pipelined | Way::Awaiting | Way::Pacing => None,
        }
    }

    /// Whether it has native chunks of a fixed size with this compression.
    pub(super) fn is_chunked_by(&self, compression: &str) -> bool {
        self.way == Way::Baler && self.compression.as_deref() == Some(compression)
    }

    /// Whether both are measured under the same load, so that only the way differs.
    pub fn is_beside(&self, other: &Self) -> bool {
        (self.rate, self.consumers) == (other.rate, other.consumers)
    }
}

/// The number of records of a chunk that closes by number or by age.
pub(super) fn records_of(chunk_records: u32, wait_time_ms: f64, rate: f64) -> f64 {
    f64::from(chunk_records).min((rate * wait_time_ms / 1e3).max(1.0))
}

/// Returns how often a second the collector wakes up for chunks with this number of records. The
/// rule is that of `monitoring` (`collector/closing.rs`): for at least 1,024 records, unless that
/// takes too long.
pub(super) fn looks_of(records: f64, wait_time_ms: f64, rate: f64) -> f64 {
    let time_ms = |records: f64| records / rate.max(f64::MIN_POSITIVE) * 1e3;
    let tick = (wait_time_ms / 8.0).clamp(1.0, 100.0);
    let longest = (wait_time_ms / 2.0).clamp(1.0, 500.0);
    let every = time_ms(records).max(time_ms(1_024.0).min(tick));
    1e3 / every.max(tick / 8.0).max(1.0).min(longest)
}

#[cfg(test)]
mod tests;
