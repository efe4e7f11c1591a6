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

mod judge;

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
    /// How many chunks were acknowledged, processed or put aside.
    moved: u64,
    unreadable: u64,
    /// What is wrong wherever it is seen, in words.
    examples: Vec<String>,
    /// What is wrong where order is promised.
    disorder: Vec<String>,
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
    /// What it lacks before it is at the end of its medium; nothing once it has ended.
    waits_for: Option<String>,
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
                self.moved = self.moved.saturating_add(1);
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
            Event::Processed { .. }
            | Event::Quarantined { .. }
            | Event::Holding
            | Event::Waits { .. } => {
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
                self.moved = self.moved.saturating_add(1);
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
            Event::Quarantined { bytes } => {
                self.moved = self.moved.saturating_add(1);
                count(&mut self.quarantined, bytes);
            }
            Event::Holding => reader.holding = true,
            Event::Waits { what } => reader.waits_for = Some(what),
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
            let is_copy = !sets.delivered.insert(record);
            if is_copy {
                self.duplicates_across = self.duplicates_across.saturating_add(1);
            } else {
                self.delivered = self.delivered.saturating_add(1);
            }
            // A copy may come late: another reader had the first one, and not every medium says that
            // it delivers again. What the medium says it has delivered before may come late as well.
            let is_late = seen.highest.is_some_and(|highest| record < highest);
            if is_late && !is_copy && !redelivered {
                late = late.saturating_add(1);
            }
            seen.highest = seen.highest.max(Some(record));
        }
        self.duplicates_within = self.duplicates_within.saturating_add(within);
        self.out_of_order = self.out_of_order.saturating_add(late);
        for (what, records, examples) in [
            ("within a reader", within, &mut self.examples),
            ("out of order", late, &mut self.disorder),
        ] {
            if records > 0 && examples.len() < EXAMPLES {
                examples.push(format!(
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
        match teller {
            Teller::Producer { producer, life } => {
                let account = self.producers.entry((producer, life)).or_default();
                account.ended = true;
            }
            Teller::Reader(reader) => {
                if let Some(reader) = self.readers.get_mut(&reader) {
                    reader.waits_for = None;
                }
            }
        }
    }

    /// How many chunks were acknowledged, processed or put aside so far, copies too.
    pub(super) const fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether a running consumer lacks its broker, or its part of the medium.
    pub(super) fn is_cut_off(&self) -> bool {
        self.lacks(&["broker", "partitions", "queue"])
    }

    /// Whether every running consumer has read all that its part of the medium has, as far as it can
    /// know.
    pub(super) fn is_at_end(&self) -> bool {
        !self.is_cut_off() && !self.lacks(&["chunks"])
    }

    /// Whether a running consumer waits for one of these; see `ChunkReader::waits_for`.
    fn lacks(&self, nouns: &[&str]) -> bool {
        let mut readers = self.readers.values();
        readers.any(|reader| {
            let lacks = reader.waits_for.as_deref();
            lacks.is_some_and(|noun| nouns.contains(&noun))
        })
    }

    /// Whether a life of a producer had records acknowledged, and all of these were delivered.
    pub(super) fn has_arrived(&self, producer: u16, life: u16) -> bool {
        let streams = self.streams.iter();
        let mut own = streams.filter(|(it, _)| it.producer == producer && it.life == life);
        self.acknowledged_by(producer, life) > 0
            && own.all(|(_, sets)| sets.acknowledged.missing_from(&sets.delivered) == 0)
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
}

fn count(set: &mut BTreeMap<Vec<u8>, u64>, bytes: Vec<u8>) {
    let times = set.entry(bytes).or_default();
    *times = times.saturating_add(1);
}

#[cfg(test)]
mod tests;
