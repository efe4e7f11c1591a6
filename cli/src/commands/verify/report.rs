//! What processes say at their end, and what the command says at its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::oracle::{Findings, OUT_OF_ORDER};
use crate::output;

/// A producer's last word.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ProducerReport {
    /// Records that its threads made.
    pub(super) issued: u64,
    /// Records that its controller counted.
    pub(super) emitted: u64,
    /// Of these: confirmed.
    pub(super) delivered: u64,
    /// Of these: on local disk.
    pub(super) spooled: u64,
    /// Of these: dropped, by reason.
    pub(super) dropped: BTreeMap<String, u64>,
    /// Chunks sent again.
    pub(super) retries: u64,
    /// How often it connected again.
    pub(super) reconnects: u64,
    /// Chunks left in the spool.
    #[serde(default)]
    pub(super) waiting_chunks: u64,
}

/// A consumer's last word.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ConsumerReport {
    /// Chunks processed.
    pub(super) chunks: u64,
    /// Copies that were not let through.
    pub(super) duplicates: u64,
    /// Deliveries that the medium marked as repeated.
    pub(super) redelivered: u64,
    /// Chunks whose past nobody knows any more.
    pub(super) unverifiable: u64,
    /// Settlements that came too late.
    pub(super) stale: u64,
    /// How often lanes came or went.
    pub(super) rebalances: u64,
    /// Why it ended, if not because it was asked to.
    pub(super) error: Option<String>,
}

/// One fault, as it was injected.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Injected {
    /// Which.
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
    pub(super) offered: u64,
    pub(super) acknowledged: u64,
    pub(super) delivered: u64,
    pub(super) missing: u64,
    pub(super) spurious: u64,
    pub(super) altered: u64,
    pub(super) duplicates_within_reader: u64,
    pub(super) duplicates_across_readers: u64,
    pub(super) out_of_order: u64,
    /// Whether the endpoint promises order to these consumers.
    pub(super) order_promised: bool,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) spooled: u64,
    pub(super) in_doubt: u64,
    pub(super) conserved: bool,
    pub(super) poisoned: u64,
    pub(super) quarantined: u64,
    pub(super) quarantine_errors: u64,
    pub(super) transport: Transport,
    pub(super) faults: BTreeMap<&'static str, u64>,
    pub(super) schedule: Vec<Injected>,
    pub(super) fresh_record_passed: bool,
    pub(super) violations: Vec<String>,
    pub(super) seconds: f64,
    pub(super) records_per_second: f64,
}

/// Repetition below the oracle: what readers kept from it, or were told of.
#[derive(Debug, Default, Serialize)]
pub(super) struct Transport {
    /// Copies of chunks that readers recognised.
    pub(super) duplicates: u64,
    /// Chunks that the medium marked as delivered before.
    pub(super) redelivered: u64,
    /// Chunks that producers sent again.
    pub(super) resent: u64,
}

impl Document {
    /// Fills in what the oracle found.
    pub(super) fn take(&mut self, findings: Findings) {
        let in_order = findings.out_of_order == 0 || !self.order_promised;
        self.held = findings.held() && in_order && self.fresh_record_passed;
        self.offered = findings.offered;
        self.acknowledged = findings.acknowledged;
        self.delivered = findings.delivered;
        self.missing = findings.missing;
        self.spurious = findings.spurious;
        self.altered = findings.altered;
        self.duplicates_within_reader = findings.within;
        self.duplicates_across_readers = findings.across;
        self.out_of_order = findings.out_of_order;
        self.dropped = findings.dropped;
        self.spooled = findings.spooled;
        self.in_doubt = findings.in_doubt;
        self.conserved = findings.conserved;
        self.poisoned = findings.poisoned;
        self.quarantined = findings.quarantined;
        self.quarantine_errors = findings.quarantine_errors;
        self.transport = Transport {
            duplicates: findings.copies,
            redelivered: findings.redelivered,
            resent: findings.resent,
        };
        self.violations.extend(findings.violations);
        if in_order {
            self.violations
                .retain(|violation| !violation.starts_with(OUT_OF_ORDER));
        }
    }

    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let number = output::number;
        let dropped = self.dropped.values().sum();
        let mut rows = vec![
            ("endpoint", self.endpoint.clone()),
            (
                "run",
                format!(
                    "seed {}, {} producers of {} threads, {} consumers, {:.1} s",
                    self.seed, self.producers, self.threads, self.consumers, self.seconds
                ),
            ),
            (
                "records",
                format!(
                    "{} offered = {} acknowledged + {} dropped + {} in doubt",
                    number(self.offered),
                    number(self.acknowledged),
                    number(dropped),
                    number(self.in_doubt),
                ),
            ),
            ("delivered", number(self.delivered)),
            ("missing", number(self.missing)),
            ("spurious", number(self.spurious)),
            ("altered", number(self.altered)),
            (
                "out of order",
                match self.order_promised {
                    true => number(self.out_of_order),
                    false => format!(
                        "{}, but consumers of one queue are promised none",
                        number(self.out_of_order)
                    ),
                },
            ),
            (
                "duplicates",
                format!(
                    "{} within a reader, {} across readers; below them {} copies, {} redelivered, \
                     {} sent again",
                    number(self.duplicates_within_reader),
                    number(self.duplicates_across_readers),
                    number(self.transport.duplicates),
                    number(self.transport.redelivered),
                    number(self.transport.resent),
                ),
            ),
        ];
        if self.poisoned > 0 || self.quarantined > 0 {
            let text = format!("{} of {} foreign chunks", self.quarantined, self.poisoned);
            rows.push(("quarantined", text));
        }
        if self.spooled > 0 {
            rows.push(("spooled", number(self.spooled)));
        }
        for (reason, count) in &self.dropped {
            rows.push(("dropped", format!("{} {reason}", number(*count))));
        }
        for injected in &self.schedule {
            rows.push((
                "fault",
                format!(
                    "{} at {:.2} s for {:.2} s: {}",
                    injected.fault, injected.at_seconds, injected.seconds, injected.detail
                ),
            ));
        }
        for violation in &self.violations {
            rows.push(("violation", violation.clone()));
        }
        let fresh = if self.fresh_record_passed {
            "passed"
        } else {
            "did not pass"
        };
        rows.push(("a fresh record", fresh.to_owned()));
        let verdict = if self.held {
            "the promise held"
        } else {
            "THE PROMISE WAS BROKEN"
        };
        rows.push(("verdict", verdict.to_owned()));
        output::two_columns(&rows)
    }
}
