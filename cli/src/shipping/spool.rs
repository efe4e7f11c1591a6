//! What a spool did and holds, at the end of a run.

use baler_spool::SpoolStatus;
use serde::Serialize;

use crate::output;

/// What a spool did and holds. What was `found` and `spooled` is `replayed`, `refused`, `lost` and
/// `waiting`. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(crate) struct SpoolFigures {
    /// Records that an earlier run left.
    found: u64,
    /// Records put on disk in this run.
    spooled: u64,
    /// Records sent on from disk and confirmed in this run.
    replayed: u64,
    /// Records that the medium refused for good after they were on disk; they are in `refused`.
    refused: u64,
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
            spooled: status.stats.spooled_records,
            replayed: status.stats.replayed_records,
            refused: status.refused_records,
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
    pub(super) fn has_refused(&self) -> bool {
        self.refused > 0 || self.lost_chunks > 0
    }

    /// The figures for people; nothing when the spool was not needed.
    pub(crate) fn rows(&self) -> Vec<(&'static str, String)> {
        let number = output::number;
        let mut rows = Vec::new();
        if self.found > 0 || self.spooled > 0 {
            rows.push((
                "spool",
                format!(
                    "{} found + {} spooled = {} replayed + {} refused + {} waiting",
                    number(self.found),
                    number(self.spooled),
                    number(self.replayed),
                    number(self.refused),
                    number(self.waiting),
                ),
            ));
        }
        for (name, error) in [
            ("medium", &self.medium_error),
            ("spool's disk", &self.disk_error),
        ] {
            if let Some(error) = error {
                rows.push((name, error.clone()));
            }
        }
        if self.lost_chunks > 0 {
            let text = format!("{} chunks cannot be read back", number(self.lost_chunks));
            rows.push(("spool's disk", text));
        }
        rows
    }
}
