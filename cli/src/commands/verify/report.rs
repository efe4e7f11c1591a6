//! The report of the command.

use std::collections::BTreeMap;

use serde::Serialize;

/// The findings of the oracle. The names are part of the program's interface.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Findings {
    /// Records that the producers emitted, as far as is known.
    pub(super) offered: u64,
    /// Records that the medium, or a spool, confirmed.
    pub(super) acknowledged: u64,
    /// Records that arrived, each counted once.
    pub(super) delivered: u64,
    /// Records acknowledged and never delivered.
    pub(super) missing: u64,
    /// Records delivered or acknowledged, and never issued.
    pub(super) spurious: u64,
    /// Records delivered with another content.
    pub(super) altered: u64,
    /// Records delivered twice in one life of a reader.
    pub(super) duplicates_within_reader: u64,
    /// Records delivered by several lives of readers.
    pub(super) duplicates_across_readers: u64,
    /// First deliveries after a later record of their thread, in one life of a reader.
    pub(super) out_of_order: u64,
    /// Whether the endpoint promises order to these consumers.
    pub(super) order_promised: bool,
    /// Records that producers dropped, by reason.
    pub(super) dropped: BTreeMap<String, u64>,
    /// Records of `acknowledged` that a spool took.
    pub(super) spooled: u64,
    /// Records of killed producers whose arrival is unknown.
    pub(super) in_doubt: u64,
    /// Whether every producer's final report adds up, and agrees with the oracle's counts.
    pub(super) conserved: bool,
    /// Foreign chunks that the medium took.
    pub(super) poisoned: u64,
    /// Different foreign chunks that consumers put aside.
    pub(super) quarantined: u64,
    /// Foreign chunks that were not put aside byte for byte, and chunks that were put aside without
    /// reason.
    pub(super) quarantine_errors: u64,
    pub(super) transport: Transport,
    /// Descriptions of the violations.
    pub(super) violations: Vec<String>,
}

/// Repetitions that the oracle does not see. Processes that ended well counted them.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Transport {
    /// Copies of chunks that readers recognised and did not let through.
    pub(super) duplicates: u64,
    /// Chunks that the medium marked as delivered before.
    pub(super) redelivered: u64,
    /// Chunks that producers sent again.
    pub(super) resent: u64,
}

/// One fault, as it was injected.
#[derive(Debug, Serialize)]
pub(super) struct Injected {
    pub(super) fault: String,
    /// The target and details of the fault.
    pub(super) detail: String,
    /// When it was injected, in seconds from the start.
    pub(super) at_seconds: f64,
    /// How long it lasted, in seconds.
    pub(super) seconds: f64,
}

impl Findings {
    /// Whether the promise held.
    pub(super) const fn held(&self) -> bool {
        self.missing == 0
            && self.spurious == 0
            && self.altered == 0
            && self.duplicates_within_reader == 0
            && (self.out_of_order == 0 || !self.order_promised)
            && self.quarantine_errors == 0
            && self.conserved
    }
}
