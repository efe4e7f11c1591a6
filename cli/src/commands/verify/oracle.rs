//! Who knows what was sent, what was acknowledged and what arrived, and judges.
//!
//! It is told every [`Event`] of every process and nothing else: it does not trust the counters of
//! the pipeline that it judges, it compares them with its own.

use std::collections::{BTreeMap, HashMap};

use baler_common::transport::ChunkIdentity;

use super::bits::Bits;
use super::event::{Event, Run};
use super::numbered::Stream;
use super::report::{ConsumerReport, ProducerReport};

/// How a violation of the order begins.
pub(super) const OUT_OF_ORDER: &str = "out of order";

/// How many violations are told one by one.
const EXAMPLES: usize = 8;

/// Who told an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Teller {
    /// A life of a producer.
    Producer {
        /// Which producer.
        producer: u16,
        /// Which life of it.
        life: u16,
    },
    /// A life of a consumer, numbered over all consumers.
    Reader(usize),
}

/// Everything that was told.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    streams: BTreeMap<Stream, Sets>,
    /// Chunks that were offered and not yet acknowledged.
    open: HashMap<ChunkIdentity, Vec<Run>>,
    readers: BTreeMap<usize, Reader>,
    producers: BTreeMap<(u16, u16), Producer>,
    poisoned: BTreeMap<Vec<u8>, u64>,
    quarantined: BTreeMap<Vec<u8>, u64>,
    /// What of a torn write may turn up as damage.
    torn: Vec<Vec<u8>>,
    altered: u64,
    duplicates_within: u64,
    duplicates_across: u64,
    out_of_order: u64,
    spooled: u64,
    acknowledged: u64,
    delivered: u64,
    redelivered: u64,
    unreadable: u64,
    examples: Vec<String>,
}

/// What happened to the records of one stream.
#[derive(Debug, Default)]
struct Sets {
    offered: Bits,
    acknowledged: Bits,
    delivered: Bits,
}

/// What one life of a consumer saw.
#[derive(Debug, Default)]
struct Reader {
    seen: HashMap<Stream, Seen>,
    holding: bool,
    ready: bool,
    report: Option<ConsumerReport>,
}

#[derive(Debug, Default)]
struct Seen {
    numbers: Bits,
    highest: Option<u64>,
}

/// What one life of a producer did.
#[derive(Debug, Default)]
struct Producer {
    offered: u64,
    acknowledged: u64,
    ready: bool,
    report: Option<ProducerReport>,
    ended: bool,
}

/// What the oracle found.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    /// Records that the producers emitted, as far as anybody knows.
    pub(super) offered: u64,
    /// Records that the medium, or a spool, confirmed.
    pub(super) acknowledged: u64,
    /// Records that arrived, each counted once.
    pub(super) delivered: u64,
    /// Acknowledged and never delivered.
    pub(super) missing: u64,
    /// Delivered and never issued.
    pub(super) spurious: u64,
    /// Delivered with another content.
    pub(super) altered: u64,
    /// Delivered twice in one life of a reader.
    pub(super) within: u64,
    /// Delivered by several lives of readers.
    pub(super) across: u64,
    /// First deliveries behind a later record of their thread, in one life of a reader.
    pub(super) out_of_order: u64,
    /// Records of `acknowledged` that a spool took.
    pub(super) spooled: u64,
    /// Records that producers dropped, by reason.
    pub(super) dropped: BTreeMap<String, u64>,
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
    /// Copies that readers recognised and did not let through, of those that told.
    pub(super) copies: u64,
    /// Deliveries that the medium marked as repeated.
    pub(super) redelivered: u64,
    /// Chunks that producers sent again, of those that told.
    pub(super) resent: u64,
    /// What is wrong, in words.
    pub(super) violations: Vec<String>,
}

impl Oracle {
    /// Takes note of an event.
    pub(super) fn told(&mut self, teller: Teller, event: Event) {
        match (teller, event) {
            (Teller::Producer { producer, life }, event) => self.sent(producer, life, event),
            (Teller::Reader(reader), event) => self.arrived(reader, event),
        }
    }

    fn sent(&mut self, producer: u16, life: u16, event: Event) {
        let account = self.producers.entry((producer, life)).or_default();
        match event {
            Event::Ready => account.ready = true,
            Event::Offered { identity, runs } => {
                for run in &runs {
                    let sets = self.streams.entry(run.stream).or_default();
                    for number in run.numbers() {
                        let new = sets.offered.insert(number);
                        account.offered = account.offered.saturating_add(u64::from(new));
                    }
                }
                self.open.insert(identity, runs);
            }
            Event::Acknowledged { identity, spooled } => {
                let Some(runs) = self.open.remove(&identity) else {
                    self.unreadable = self.unreadable.saturating_add(1);
                    return;
                };
                for run in runs {
                    let sets = self.streams.entry(run.stream).or_default();
                    for number in run.numbers() {
                        let new = u64::from(sets.acknowledged.insert(number));
                        account.acknowledged = account.acknowledged.saturating_add(new);
                        self.acknowledged = self.acknowledged.saturating_add(new);
                        if spooled {
                            self.spooled = self.spooled.saturating_add(new);
                        }
                    }
                }
            }
            Event::Refused { identity } => {
                self.open.remove(&identity);
            }
            Event::Poisoned { bytes } => count(&mut self.poisoned, bytes),
            Event::Report { json } => match serde_json::from_str(&json) {
                Ok(report) => account.report = Some(report),
                Err(_) => self.unreadable = self.unreadable.saturating_add(1),
            },
            Event::Processed { .. } | Event::Quarantined { .. } | Event::Holding => {
                self.unreadable = self.unreadable.saturating_add(1);
            }
        }
    }

    fn arrived(&mut self, number: usize, event: Event) {
        let reader = self.readers.entry(number).or_default();
        match event {
            Event::Ready => reader.ready = true,
            Event::Processed {
                runs,
                altered,
                redelivered,
                identity,
            } => {
                self.altered = self.altered.saturating_add(altered);
                if altered > 0 && self.examples.len() < EXAMPLES {
                    self.examples
                        .push(format!("altered: {altered} records of chunk {identity:?}"));
                }
                self.redelivered = self.redelivered.saturating_add(u64::from(redelivered));
                for run in runs {
                    self.delivered_run(number, run, redelivered);
                }
            }
            Event::Quarantined { bytes } => count(&mut self.quarantined, bytes),
            Event::Holding => reader.holding = true,
            Event::Report { json } => match serde_json::from_str(&json) {
                Ok(report) => reader.report = Some(report),
                Err(_) => self.unreadable = self.unreadable.saturating_add(1),
            },
            Event::Offered { .. }
            | Event::Acknowledged { .. }
            | Event::Refused { .. }
            | Event::Poisoned { .. } => self.unreadable = self.unreadable.saturating_add(1),
        }
    }

    fn delivered_run(&mut self, number: usize, run: Run, redelivered: bool) {
        let Some(reader) = self.readers.get_mut(&number) else {
            return;
        };
        let seen = reader.seen.entry(run.stream).or_default();
        let sets = self.streams.entry(run.stream).or_default();
        let (mut within, mut late) = (0_u64, 0_u64);
        for record in run.numbers() {
            if !seen.numbers.insert(record) {
                within = within.saturating_add(1);
                continue;
            }
            if sets.delivered.insert(record) {
                self.delivered = self.delivered.saturating_add(1);
            } else {
                self.duplicates_across = self.duplicates_across.saturating_add(1);
            }
            // What the medium says it has delivered before may come late: its reader was lost.
            if seen.highest.is_some_and(|highest| record < highest) && !redelivered {
                late = late.saturating_add(1);
            }
            seen.highest = seen.highest.max(Some(record));
        }
        self.duplicates_within = self.duplicates_within.saturating_add(within);
        self.out_of_order = self.out_of_order.saturating_add(late);
        for (what, records) in [("within a reader", within), (OUT_OF_ORDER, late)] {
            if records > 0 && self.examples.len() < EXAMPLES {
                self.examples.push(format!(
                    "{what}: {records} records of {run:?} at reader {number}"
                ));
            }
        }
    }

    /// Says that bytes like these may turn up as damage: a torn write.
    pub(super) fn expect_damage(&mut self, bytes: Vec<u8>) {
        self.torn.push(bytes);
    }

    /// Says that a process has ended, with or without a last word.
    pub(super) fn ended(&mut self, teller: Teller) {
        if let Teller::Producer { producer, life } = teller {
            let account = self.producers.entry((producer, life)).or_default();
            account.ended = true;
        }
    }

    /// Records acknowledged so far.
    pub(super) const fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// Records delivered so far, each counted once.
    pub(super) const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Records that a life of a producer offered to its medium so far.
    pub(super) fn offered_by(&self, producer: u16, life: u16) -> u64 {
        let account = self.producers.get(&(producer, life));
        account.map_or(0, |account| account.offered)
    }

    /// Records that a life of a producer has acknowledged so far.
    pub(super) fn acknowledged_by(&self, producer: u16, life: u16) -> u64 {
        let account = self.producers.get(&(producer, life));
        account.map_or(0, |account| account.acknowledged)
    }

    /// The last word of a life of a producer.
    pub(super) fn report_of(&self, producer: u16, life: u16) -> Option<&ProducerReport> {
        let account = self.producers.get(&(producer, life));
        account.and_then(|account| account.report.as_ref())
    }

    /// Whether a process said that it is ready.
    pub(super) fn is_ready(&self, teller: Teller) -> bool {
        match teller {
            Teller::Producer { producer, life } => {
                let account = self.producers.get(&(producer, life));
                account.is_some_and(|account| account.ready)
            }
            Teller::Reader(reader) => self.readers.get(&reader).is_some_and(|it| it.ready),
        }
    }

    /// Whether a consumer holds a chunk that it processed.
    pub(super) fn is_holding(&self, reader: usize) -> bool {
        self.readers.get(&reader).is_some_and(|it| it.holding)
    }

    /// Whether everything acknowledged was delivered, and every foreign chunk put aside.
    pub(super) fn is_complete(&self) -> bool {
        let arrived = |sets: &Sets| sets.acknowledged.missing_from(&sets.delivered) == 0;
        self.streams.values().all(arrived)
            && self
                .poisoned
                .keys()
                .all(|bytes| self.quarantined.contains_key(bytes))
    }

    /// Judges.
    pub(super) fn judge(&self) -> Findings {
        let mut findings = Findings {
            acknowledged: self.acknowledged,
            delivered: self.delivered,
            altered: self.altered,
            within: self.duplicates_within,
            across: self.duplicates_across,
            out_of_order: self.out_of_order,
            spooled: self.spooled,
            redelivered: self.redelivered,
            conserved: true,
            violations: self.examples.clone(),
            ..Findings::default()
        };
        for (stream, sets) in &self.streams {
            for (what, total, lacking, within) in [
                (
                    "missing",
                    &mut findings.missing,
                    &sets.acknowledged,
                    &sets.delivered,
                ),
                (
                    "spurious",
                    &mut findings.spurious,
                    &sets.delivered,
                    &sets.offered,
                ),
            ] {
                let records = lacking.missing_from(within);
                *total = total.saturating_add(records);
                if records > 0 && findings.violations.len() < EXAMPLES {
                    let first = lacking.first_missing_from(within, 3);
                    findings.violations.push(format!(
                        "{what}: {records} records of {stream:?}, the first are {first:?}"
                    ));
                }
            }
        }
        self.judge_accounts(&mut findings);
        self.judge_quarantine(&mut findings);
        for reader in self.readers.values() {
            let copies = reader.report.as_ref().map_or(0, |report| report.duplicates);
            findings.copies = findings.copies.saturating_add(copies);
        }
        if self.unreadable > 0 {
            findings.conserved = false;
            findings.violations.push(format!(
                "{} events that no process should tell",
                self.unreadable
            ));
        }
        findings
    }

    /// `offered = delivered + spooled + dropped`, for each life with a last word, as told and as
    /// seen from here.
    fn judge_accounts(&self, findings: &mut Findings) {
        for ((producer, life), account) in &self.producers {
            let Some(report) = &account.report else {
                findings.offered = findings.offered.saturating_add(account.offered);
                let unknown = account.offered.saturating_sub(account.acknowledged);
                findings.in_doubt = findings.in_doubt.saturating_add(unknown);
                continue;
            };
            findings.offered = findings.offered.saturating_add(report.emitted);
            findings.resent = findings.resent.saturating_add(report.retries);
            let mut dropped = 0_u64;
            for (reason, records) in &report.dropped {
                dropped = dropped.saturating_add(*records);
                let total = findings.dropped.entry(reason.clone()).or_default();
                *total = total.saturating_add(*records);
            }
            let told = report.delivered.saturating_add(report.spooled);
            let adds_up = told.checked_add(dropped) == Some(report.emitted);
            if !adds_up || told != account.acknowledged || report.emitted != report.issued {
                findings.conserved = false;
                findings.violations.push(format!(
                    "not conserved: life {life} of producer {producer} issued {}, emitted {}, and \
                     says {} delivered, {} spooled, {dropped} dropped; {} were acknowledged",
                    report.issued,
                    report.emitted,
                    report.delivered,
                    report.spooled,
                    account.acknowledged,
                ));
            }
        }
    }

    fn judge_quarantine(&self, findings: &mut Findings) {
        findings.poisoned = u64::try_from(self.poisoned.len()).unwrap_or(u64::MAX);
        let mut wrong = 0_u64;
        for bytes in self.poisoned.keys() {
            wrong = wrong.saturating_add(u64::from(!self.quarantined.contains_key(bytes)));
        }
        for bytes in self.quarantined.keys() {
            let torn = self.torn.iter().any(|torn| contains(torn, bytes));
            // What was offered by a producer that was killed may have arrived without a word.
            let known = self.poisoned.contains_key(bytes) || super::poison::is_ours(bytes);
            if known {
                findings.quarantined = findings.quarantined.saturating_add(1);
            } else if !torn {
                wrong = wrong.saturating_add(1);
            }
        }
        findings.quarantine_errors = wrong;
        if wrong > 0 {
            findings.violations.push(format!(
                "quarantine: {wrong} chunks of foreign bytes were not put aside as they were, or \
                 sound ones were"
            ));
        }
    }
}

impl Findings {
    /// Whether the promise held, but for the order.
    pub(super) const fn held(&self) -> bool {
        self.missing == 0
            && self.spurious == 0
            && self.altered == 0
            && self.within == 0
            && self.quarantine_errors == 0
            && self.conserved
    }
}

fn count(set: &mut BTreeMap<Vec<u8>, u64>, bytes: Vec<u8>) {
    let times = set.entry(bytes).or_default();
    *times = times.saturating_add(1);
}

/// Whether bytes occur in others.
fn contains(whole: &[u8], part: &[u8]) -> bool {
    part.is_empty() || whole.windows(part.len()).any(|window| window == part)
}

#[cfg(test)]
mod tests;
