//! What processes say at their end, and what the command says at its own.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::findings::Findings;
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
    #[serde(flatten)]
    pub(super) findings: Findings,
    pub(super) faults: BTreeMap<&'static str, u64>,
    pub(super) schedule: Vec<Injected>,
    pub(super) fresh_record_passed: bool,
    pub(super) seconds: f64,
    pub(super) records_per_second: f64,
}

impl Document {
    /// The figures for people.
    pub(super) fn text(&self) -> String {
        let number = output::number;
        let found = &self.findings;
        let dropped = found.dropped.values().sum();
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
                    number(found.offered),
                    number(found.acknowledged),
                    number(dropped),
                    number(found.in_doubt),
                ),
            ),
            ("delivered", number(found.delivered)),
            ("missing", number(found.missing)),
            ("spurious", number(found.spurious)),
            ("altered", number(found.altered)),
            (
                "out of order",
                match found.order_promised {
                    true => number(found.out_of_order),
                    false => format!(
                        "{}, but consumers of one queue are promised none",
                        number(found.out_of_order)
                    ),
                },
            ),
            (
                "duplicates",
                format!(
                    "{} within a reader, {} across readers; below them {} copies, {} redelivered, \
                     {} sent again",
                    number(found.duplicates_within_reader),
                    number(found.duplicates_across_readers),
                    number(found.transport.duplicates),
                    number(found.transport.redelivered),
                    number(found.transport.resent),
                ),
            ),
        ];
        if found.poisoned > 0 || found.quarantined > 0 {
            let text = format!("{} of {} foreign chunks", found.quarantined, found.poisoned);
            rows.push(("quarantined", text));
        }
        if found.spooled > 0 {
            rows.push(("spooled", number(found.spooled)));
        }
        for (reason, count) in &found.dropped {
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
        for violation in &found.violations {
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
