//! What a spool did and holds, at the end of a run.

use baler_spool::SpoolStatus;
use serde::Serialize;

use crate::output;

/// What a spool did and holds. `found` and `spooled` together are `replayed`, `refused`, `lost` and
/// `waiting`, in records and in chunks. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(crate) struct SpoolFigures {
    /// Records that an earlier run left.
    found: u64,
    /// Chunks that an earlier run left.
    found_chunks: u64,
    /// Records put on disk in this run.
    spooled: u64,
    /// Chunks put on disk in this run.
    spooled_chunks: u64,
    /// Records sent on from disk and confirmed in this run.
    replayed: u64,
    /// Chunks sent on from disk and confirmed in this run.
    replayed_chunks: u64,
    /// Records that the medium refused for good after they were on disk; they are in `refused`.
    refused: u64,
    /// Chunks with them.
    refused_chunks: u64,
    /// Records that are on disk now.
    waiting: u64,
    /// Chunks that are on disk now.
    waiting_chunks: u64,
    /// Their bytes.
    waiting_bytes: u64,
    /// Records that were on disk and cannot be read back: the disk has damaged them.
    lost: u64,
    /// Chunks with them.
    lost_chunks: u64,
    /// How often the disk did not take a chunk.
    disk_failures: u64,
    /// What the medium said last, if it is away.
    #[serde(skip_serializing_if = "Option::is_none")]
    medium_error: Option<String>,
    /// What the disk said last, if it fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    disk_error: Option<String>,
}

impl SpoolFigures {
    /// The figures of now.
    pub(crate) fn new(status: &SpoolStatus) -> Self {
        Self {
            found: status.found_records,
            found_chunks: status.found_chunks,
            spooled: status.stats.spooled_records,
            spooled_chunks: status.stats.spooled_chunks,
            replayed: status.stats.replayed_records,
            replayed_chunks: status.stats.replayed_chunks,
            refused: status.refused_records,
            refused_chunks: status.refused_chunks,
            waiting: status.waiting_records,
            waiting_chunks: status.stats.waiting_chunks,
            waiting_bytes: status.stats.waiting_bytes,
            lost: status.lost_records,
            lost_chunks: status.lost_chunks,
            disk_failures: status.disk_failures,
            medium_error: status.medium_error.as_ref().map(ToString::to_string),
            disk_error: status.disk_error.as_ref().map(ToString::to_string),
        }
    }

    /// Whether something on disk could never be delivered, or not be read.
    pub(crate) fn has_refused(&self) -> bool {
        self.refused > 0 || self.lost_chunks > 0
    }

    /// The figures for people; nothing when the spool was not needed.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let number = output::number;
        let mut rows = Vec::new();
        if self.found_chunks > 0 || self.spooled_chunks > 0 {
            let line = |[found, spooled, replayed, refused, lost, waiting]: [u64; 6]| {
                format!(
                    "{} found + {} spooled = {} replayed + {} refused + {} lost + {} waiting",
                    number(found),
                    number(spooled),
                    number(replayed),
                    number(refused),
                    number(lost),
                    number(waiting),
                )
            };
            let chunks = [
                self.found_chunks,
                self.spooled_chunks,
                self.replayed_chunks,
                self.refused_chunks,
                self.lost_chunks,
                self.waiting_chunks,
            ];
            let records = [
                self.found,
                self.spooled,
                self.replayed,
                self.refused,
                self.lost,
                self.waiting,
            ];
            rows.push(("spool's chunks", line(chunks)));
            rows.push(("and records", line(records)));
        }
        if self.waiting_bytes > 0 {
            rows.push(("on disk", output::bytes(self.waiting_bytes)));
        }
        for (name, error) in [
            ("medium", &self.medium_error),
            ("spool's disk", &self.disk_error),
        ] {
            if let Some(error) = error {
                rows.push((name, error.clone()));
            }
        }
        if self.disk_failures > 0 {
            let text = format!("failed {} times", number(self.disk_failures));
            rows.push(("spool's disk", text));
        }
        rows
    }
}
