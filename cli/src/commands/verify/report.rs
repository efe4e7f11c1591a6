//! What the command says at its end.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::output::{self, number};

/// What the oracle found. The names are part of the program's interface.
#[derive(Debug, Clone, Default, Serialize)]
pub(super) struct Findings {
    /// Records that the producers emitted, as far as anybody knows.
    pub(super) offered: u64,
    /// Records that the medium, or a spool, confirmed.
    pub(super) acknowledged: u64,
    /// Records that arrived, each counted once.
    pub(super) delivered: u64,
    /// Acknowledged and never delivered.
    pub(super) missing: u64,
    /// Delivered or acknowledged and never issued.
    pub(super) spurious: u64,
    /// Delivered with another content.
    pub(super) altered: u64,
    /// Delivered twice in one life of a reader.
    pub(super) duplicates_within_reader: u64,
    /// Delivered by several lives of readers.
    pub(super) duplicates_across_readers: u64,
    /// First deliveries after a later record of their thread, in one life of a reader.
    pub(super) out_of_order: u64,
    /// Whether the endpoint promises order to these consumers.
    pub(super) order_promised: bool,
    /// Records that producers dropped, by reason.
    pub(super) dropped: BTreeMap<String, u64>,
    /// Records of `acknowledged` that a spool took.
    pub(super) spooled: u64,
    /// Records of producers that were killed, of which nobody knows whether they arrived.
    pub(super) in_doubt: u64,
    /// Whether every producer's last line adds up, and agrees with what the oracle saw.
    pub(super) conserved: bool,
    /// Foreign chunks that the medium took.
    pub(super) poisoned: u64,
    /// Different foreign chunks that consumers put aside.
    pub(super) quarantined: u64,
    /// Foreign chunks that were not put aside byte for byte, and what was put aside without reason.
    pub(super) quarantine_errors: u64,
    pub(super) transport: Transport,
    /// What is wrong, in words.
    pub(super) violations: Vec<String>,
}

/// Repetition that the oracle does not see: what processes counted that lived to tell.
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
    pub(super) fault: &'static str,
    /// What it was done to, and how.
    pub(super) detail: String,
    /// When, in seconds from the start.
    pub(super) at_seconds: f64,
    /// How long it lasted, in seconds.
    pub(super) seconds: f64,
}

/// What `verify` found. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct Document {
    pub(super) endpoint: String,
    pub(super) seed: u64,
    pub(super) held: bool,
    pub(super) records: u64,
    pub(super) producers: u16,
    pub(super) threads: u16,
    pub(super) consumers: u16,
    #[serde(flatten)]
    pub(super) findings: Findings,
    pub(super) faults: BTreeMap<&'static str, u64>,
    pub(super) schedule: Vec<Injected>,
    pub(super) fresh_record_passed: bool,
    pub(super) seconds: f64,
    pub(super) records_per_second: f64,
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

impl Document {
    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let found = &self.findings;
        let run = format!(
            "seed {}, {} producers of {} threads, {} consumers, {:.1} s",
            self.seed, self.producers, self.threads, self.consumers, self.seconds
        );
        let records = format!(
            "{} offered = {} acknowledged + {} dropped + {} in doubt",
            number(found.offered),
            number(found.acknowledged),
            number(found.dropped.values().sum()),
            number(found.in_doubt),
        );
        let promised = match found.order_promised {
            true => "",
            false => ", but no order is promised to these consumers",
        };
        let duplicates = format!(
            "{} within a reader, {} across readers; in the medium {} copies, {} redelivered, {} \
             sent again",
            number(found.duplicates_within_reader),
            number(found.duplicates_across_readers),
            number(found.transport.duplicates),
            number(found.transport.redelivered),
            number(found.transport.resent),
        );
        let out_of_order = format!("{}{promised}", number(found.out_of_order));
        let mut rows = vec![
            ("endpoint", self.endpoint.clone()),
            ("run", run),
            ("records", records),
            ("delivered", number(found.delivered)),
            ("missing", number(found.missing)),
            ("spurious", number(found.spurious)),
            ("altered", number(found.altered)),
            ("out of order", out_of_order),
            ("duplicates", duplicates),
        ];
        if found.poisoned > 0 || found.quarantined > 0 {
            let text = format!("{} of {} foreign chunks", found.quarantined, found.poisoned);
            rows.push(("quarantined", text));
        }
        if found.spooled > 0 {
            rows.push(("spooled", number(found.spooled)));
        }
        let dropped = found.dropped.iter();
        rows.extend(
            dropped.map(|(reason, count)| ("dropped", format!("{} {reason}", number(*count)))),
        );
        rows.extend(self.schedule.iter().map(|it| {
            let (fault, at, seconds) = (it.fault, it.at_seconds, it.seconds);
            let text = format!("{fault} at {at:.2} s for {seconds:.2} s: {}", it.detail);
            ("fault", text)
        }));
        let violations = found.violations.iter();
        rows.extend(violations.map(|it| ("violation", it.clone())));
        let fresh = match self.fresh_record_passed {
            true => "passed",
            false => "did not pass",
        };
        let verdict = match self.held {
            true => "the promise held",
            false => "THE PROMISE WAS BROKEN",
        };
        rows.push(("a fresh record", fresh.to_owned()));
        rows.push(("verdict", verdict.to_owned()));
        output::two_columns(&rows)
    }
}
