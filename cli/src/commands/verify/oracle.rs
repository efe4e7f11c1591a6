//! The oracle: knows which records were sent, acknowledged and delivered, and judges the run.
//!
//! It gets every [`Event`] of every process, and nothing else. It does not trust the counters of the
//! pipeline that it judges: it compares them with its own.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::messages::{Event, Life, ProducerAccount, Role};
use super::records::{Run, Stream};
use super::report::Findings;

/// The maximum number of listed violations.
const EXAMPLES: usize = 8;

/// The events of a run, and the violations in them.
#[derive(Debug, Default)]
pub(super) struct Oracle {
    streams: BTreeMap<Stream, Sets>,
    /// Chunks that were offered and not yet acknowledged, by producer and number.
    open: HashMap<(Life, u64), Vec<Run>>,
    lives: BTreeMap<Life, Notes>,
    /// Foreign bytes that producers were asked to send, and whether the medium confirmed them.
    foreign: BTreeMap<Vec<u8>, bool>,
    quarantined: BTreeSet<Vec<u8>>,
    /// Torn writes: any part of them may turn up as damage.
    torn: Vec<Vec<u8>>,
    /// The number of chunks that were acknowledged, processed or put aside.
    moved: u64,
    /// The counts and violations so far; [`Oracle::judge`] completes them.
    so_far: Findings,
    /// Violations of the order, which count if the endpoint promises order.
    disorder: Vec<String>,
}

/// The fate of the records of one stream.
#[derive(Debug, Default)]
struct Sets {
    offered: NumberSet,
    acknowledged: NumberSet,
    delivered: NumberSet,
}

/// The reports of one process.
#[derive(Debug, Default)]
struct Notes {
    ready: bool,
    /// Of a producer: the number of records offered and acknowledged.
    offered: u64,
    acknowledged: u64,
    /// Of a producer that ended well: the number of records that it made, and its own counts.
    account: Option<(u64, ProducerAccount)>,
    /// Of a consumer: the numbers seen, and the highest of them.
    seen: HashMap<Stream, (NumberSet, u64)>,
    holding: bool,
    /// The resource that a running consumer waits for; empty once it has ended.
    waits_for: String,
    /// Of a consumer that ended well: the number of copies that it held back.
    duplicates: Option<u64>,
}

impl Oracle {
    /// Records an event.
    pub(super) fn note(&mut self, life: Life, event: Event) {
        let notes = self.lives.entry(life).or_default();
        match event {
            Event::Ready => notes.ready = true,
            Event::Offered { chunk, runs } => {
                for run in &runs {
                    let sets = self.streams.entry(run.stream).or_default();
                    notes.offered += sets.offered.insert_all(*run);
                }
                self.open.insert((life, chunk), runs);
            }
            Event::Acknowledged { chunk, spooled } => {
                self.moved += 1;
                let Some(runs) = self.open.remove(&(life, chunk)) else {
                    let message = format!("spurious: chunk {chunk} of {life:?} was never offered");
                    self.so_far.example(message);
                    self.so_far.spurious += 1;
                    return;
                };
                for run in runs {
                    let sets = self.streams.entry(run.stream).or_default();
                    let new = sets.acknowledged.insert_all(run);
                    notes.acknowledged += new;
                    self.so_far.acknowledged += new;
                    self.so_far.spooled += if spooled { new } else { 0 };
                }
            }
            Event::Refused { chunk } => {
                self.open.remove(&(life, chunk));
            }
            Event::Poisoned { bytes } => {
                self.foreign.insert(bytes, true);
            }
            Event::Produced { issued, account } => notes.account = Some((issued, account)),
            Event::Processed {
                chunk,
                redelivered,
                runs,
                altered,
            } => {
                self.moved += 1;
                self.so_far.altered += altered;
                if altered > 0 {
                    let message = format!("altered: {altered} records of chunk {chunk:?}");
                    self.so_far.example(message);
                }
                self.so_far.transport.redelivered += u64::from(redelivered);
                for run in runs {
                    self.arrived(life, run, redelivered);
                }
            }
            Event::Quarantined { bytes } => {
                self.moved += 1;
                self.quarantined.insert(bytes);
            }
            Event::Holding => notes.holding = true,
            Event::WaitsFor { what } => notes.waits_for = what,
            Event::Consumed { duplicates } => notes.duplicates = Some(duplicates),
        }
    }

    fn arrived(&mut self, life: Life, run: Run, redelivered: bool) {
        let notes = self.lives.entry(life).or_default();
        let (seen, highest) = notes.seen.entry(run.stream).or_default();
        let sets = self.streams.entry(run.stream).or_default();
        let (mut within, mut late) = (0, 0);
        for number in run.first..run.first + run.count {
            if !seen.insert(number) {
                within += 1;
                continue;
            }
            let is_copy = !sets.delivered.insert(number);
            self.so_far.duplicates_across_readers += u64::from(is_copy);
            self.so_far.delivered += u64::from(!is_copy);
            // A copy may come late: another reader had the original, and not every medium marks a
            // redelivery. Records that the medium marks as redelivered may come late as well.
            late += u64::from(number < *highest && !is_copy && !redelivered);
            *highest = number.max(*highest);
        }
        self.so_far.duplicates_within_reader += within;
        self.so_far.out_of_order += late;
        if within > 0 {
            let message = format!("within a reader: {within} records of {run:?} at {life:?}");
            self.so_far.example(message);
        }
        if late > 0 && self.disorder.len() < EXAMPLES {
            let message = format!("out of order: {late} records of {run:?} at {life:?}");
            self.disorder.push(message);
        }
    }

    /// Expects foreign bytes that a producer is asked to send.
    pub(super) fn expect_foreign(&mut self, bytes: Vec<u8>) {
        self.foreign.entry(bytes).or_default();
    }

    /// Expects that bytes like these may turn up as damage: a torn write.
    pub(super) fn expect_damage(&mut self, bytes: Vec<u8>) {
        self.torn.push(bytes);
    }

    /// Records that a process has ended, with or without a final report.
    pub(super) fn ended(&mut self, life: Life) {
        self.lives.entry(life).or_default().waits_for.clear();
    }

    /// Returns the number of chunks that were acknowledged, processed or put aside so far,
    /// including copies.
    pub(super) const fn moved(&self) -> u64 {
        self.moved
    }

    /// Whether a running consumer lacks its broker, or its part of the medium.
    pub(super) fn is_cut_off(&self) -> bool {
        let mut lives = self.lives.values();
        lives.any(|it| matches!(&*it.waits_for, "broker" | "partitions" | "queue"))
    }

    /// Whether every running consumer has read its whole part of the medium, as far as it can know.
    pub(super) fn is_at_end(&self) -> bool {
        !self.is_cut_off() && self.lives.values().all(|it| it.waits_for != "chunks")
    }

    /// Whether a life of a producer had records acknowledged, and all of these were delivered.
    pub(super) fn has_arrived(&self, life: Life) -> bool {
        let mut streams = self.streams.iter();
        self.made_by(life).1 > 0
            && streams.all(|(stream, sets)| {
                (stream.producer, stream.life) != (life.number, life.life)
                    || sets.acknowledged.is_within(&sets.delivered)
            })
    }

    /// Returns the number of records acknowledged so far.
    pub(super) const fn acknowledged(&self) -> u64 {
        self.so_far.acknowledged
    }

    /// Returns the number of records delivered so far, each counted once.
    pub(super) const fn delivered(&self) -> u64 {
        self.so_far.delivered
    }

    /// Returns how many records a life of a producer made, as far as is known, and how many were
    /// acknowledged.
    pub(super) fn made_by(&self, life: Life) -> (u64, u64) {
        self.lives.get(&life).map_or((0, 0), |notes| {
            let made = notes.account.as_ref().map_or(notes.offered, |it| it.0);
            (made, notes.acknowledged)
        })
    }

    /// Whether a process reported its figures at its end.
    pub(super) fn has_last_word(&self, life: Life) -> bool {
        let notes = self.lives.get(&life);
        notes.is_some_and(|it| it.account.is_some() || it.duplicates.is_some())
    }

    /// Whether a process reported that it is ready.
    pub(super) fn is_ready(&self, life: Life) -> bool {
        self.lives.get(&life).is_some_and(|it| it.ready)
    }

    /// Whether a consumer holds a chunk that it processed.
    pub(super) fn is_holding(&self, life: Life) -> bool {
        self.lives.get(&life).is_some_and(|it| it.holding)
    }

    /// Whether everything acknowledged was delivered, and every foreign chunk put aside.
    pub(super) fn is_complete(&self) -> bool {
        let mut foreign = self.foreign.iter();
        let mut streams = self.streams.values();
        streams.all(|sets| sets.acknowledged.is_within(&sets.delivered))
            && foreign.all(|(bytes, confirmed)| !confirmed || self.quarantined.contains(bytes))
    }

    /// Judges the run.
    pub(super) fn judge(&self, order_promised: bool) -> Findings {
        let mut findings = Findings {
            order_promised,
            conserved: true,
            ..self.so_far.clone()
        };
        if order_promised {
            findings.violations.extend(self.disorder.iter().cloned());
        }
        for (stream, sets) in &self.streams {
            let (missing, first_missing) = sets.acknowledged.without(&sets.delivered);
            let (spurious, first_spurious) = sets.delivered.without(&sets.offered);
            findings.missing += missing;
            findings.spurious += spurious;
            for (what, records, first) in [
                ("missing", missing, first_missing),
                ("spurious", spurious, first_spurious),
            ] {
                if records > 0 {
                    findings.example(format!(
                        "{what}: {records} records of {stream:?}, the first are {first:?}"
                    ));
                }
            }
        }
        for (life, notes) in &self.lives {
            if let Some(duplicates) = notes.duplicates {
                findings.transport.duplicates += duplicates;
            }
            if life.role == Role::Producer {
                judge_account(*life, notes, &mut findings);
            }
        }
        self.judge_quarantine(&mut findings);
        findings
    }

    fn judge_quarantine(&self, findings: &mut Findings) {
        let confirmed = || self.foreign.iter().filter(|(_, confirmed)| **confirmed);
        let lost = confirmed().filter(|(bytes, _)| !self.quarantined.contains(*bytes));
        // Foreign bytes of a killed producer may have arrived without a confirmation.
        let (foreign, others): (Vec<_>, Vec<_>) = self
            .quarantined
            .iter()
            .partition(|bytes| self.foreign.contains_key(*bytes));
        let is_torn = |bytes: &[u8]| {
            let is_part = |torn: &Vec<u8>| {
                bytes.is_empty() || torn.windows(bytes.len()).any(|window| window == bytes)
            };
            self.torn.iter().any(is_part)
        };
        let unexpected = others.iter().filter(|bytes| !is_torn(bytes));
        let wrong = lost.count() + unexpected.count();
        findings.poisoned = confirmed().count() as u64;
        findings.quarantined = foreign.len() as u64;
        findings.quarantine_errors = wrong as u64;
        if wrong > 0 {
            findings.violations.push(format!(
                "quarantine: {wrong} chunks of foreign bytes were not put aside as they were, or \
                 sound ones were"
            ));
        }
    }
}

/// Checks `offered = delivered + spooled + dropped` for a life with a final report: in the report
/// itself, and against the events.
fn judge_account(life: Life, notes: &Notes, findings: &mut Findings) {
    let Some((issued, account)) = &notes.account else {
        findings.offered += notes.offered;
        findings.in_doubt += notes.offered - notes.acknowledged;
        return;
    };
    findings.offered += account.emitted;
    findings.transport.resent += account.retries;
    for (reason, records) in &account.dropped {
        *findings.dropped.entry(reason.clone()).or_default() += records;
    }
    let dropped: u64 = account.dropped.values().sum();
    let safe = account.delivered + account.spooled;
    let adds_up = safe + dropped == account.emitted && account.emitted == *issued;
    if !adds_up || safe != notes.acknowledged {
        findings.conserved = false;
        findings.violations.push(format!(
            "not conserved: {life:?} made {issued} records and says {account:?}; {} were \
             acknowledged",
            notes.acknowledged
        ));
    }
}

impl Findings {
    /// Adds a violation, unless enough are listed.
    fn example(&mut self, message: String) {
        if self.violations.len() < EXAMPLES {
            self.violations.push(message);
        }
    }
}

/// A set of dense numbers, one bit each.
#[derive(Debug, Default)]
struct NumberSet {
    words: Vec<u64>,
}

impl NumberSet {
    /// The largest number that a set takes. No producer issues a larger number.
    const MAX: u64 = 1 << 36;

    /// Adds a number. Returns whether it is new; a number above [`Self::MAX`] is never new.
    fn insert(&mut self, number: u64) -> bool {
        if number > Self::MAX {
            return false;
        }
        let index = usize::try_from(number / 64).expect("a set has at most 2^30 words");
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        let (word, bit) = (&mut self.words[index], 1 << (number % 64));
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Adds the numbers of a run; returns how many are new.
    fn insert_all(&mut self, run: Run) -> u64 {
        let numbers = run.first..run.first + run.count;
        numbers.map(|number| u64::from(self.insert(number))).sum()
    }

    /// Returns the words of this set without the numbers of another set.
    fn difference(&self, other: &Self) -> impl Iterator<Item = u64> {
        let others = other.words.iter().chain(std::iter::repeat(&0));
        self.words
            .iter()
            .zip(others)
            .map(|(word, other)| word & !other)
    }

    fn is_within(&self, other: &Self) -> bool {
        self.difference(other).all(|word| word == 0)
    }

    /// Returns how many numbers are not in the other set, and the first of these numbers.
    fn without(&self, other: &Self) -> (u64, Vec<u64>) {
        let count = self
            .difference(other)
            .map(|word| u64::from(word.count_ones()));
        let numbers = (0..).zip(self.difference(other)).flat_map(|(index, word)| {
            let bits = (0..64).filter(move |bit| word >> bit & 1 == 1);
            bits.map(move |bit| index * 64 + bit)
        });
        (count.sum(), numbers.take(3).collect())
    }
}

#[cfg(test)]
mod tests;
