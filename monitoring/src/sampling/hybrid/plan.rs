//! The decisions of hybrid monitoring. They depend on counts, samples and times alone: the clocks are
//! the caller's.
//!
//! ```text
//! gap | burst, look | gap | burst, look | ...     rare operations: on all the time
//!                                                 frequent ones: on in bursts
//! ```
//!
//! Two rules keep the budget. Each period, the frequency of bursts and the rare operations are chosen
//! so that the expected cost fits. Between these decisions an account decides: the program's CPU time
//! pays in, monitoring pays from it, and while it is overdrawn everything is off.

use std::mem;
use std::time::Duration;

use baler_common::record::sampling::PartTimeRecord;

use crate::probe::Part;

/// The length of a burst. Frequent calls are shorter, so a look at its end sees all of them.
pub(super) const BURST: Duration = Duration::from_millis(1);

/// The bounds of the mean time from a burst to the next one.
const SHORTEST_GAP: Duration = Duration::from_millis(10);
const LONGEST_GAP: Duration = Duration::from_millis(500);

/// The part of the budget that is planned: programs are irregular.
const PLANNED: f64 = 0.9;

/// The part for bursts, which are calls in them and the sampler's thread, of the budget that the
/// collector leaves.
const BURSTS_PART: f64 = 0.5;

/// An operation is a hot spot from this part of all seen time on.
const HOT: f64 = 0.01;

/// The weight of a period beside the next one: of rates and costs, and of what is seen.
const MEMORY: f64 = 0.5;
const LONG_MEMORY: f64 = 0.8;

/// The settings of hybrid monitoring, for
/// [`ControllerBuilder::hybrid`](crate::ControllerBuilder::hybrid).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hybrid {
    /// The CPU time of monitoring, in thousandths of the program's. Default 10, which is 1 %.
    pub budget_per_mille: u32,
    /// How often to decide anew which probes record. Default 1 s.
    pub period: Duration,
    /// The most operations whose probes record at a time. Default 10.
    pub hot_spots: usize,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self {
            budget_per_mille: 10,
            period: Duration::from_secs(1),
            hot_spots: 10,
        }
    }
}

/// The cost of a call in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) published: f64,
    pub(super) recorded: f64,
}

#[derive(Debug, Default)]
pub(super) struct Operation {
    /// Of the present period. Shares and times follow at its end.
    pub(super) record: PartTimeRecord,
    /// Whether calls are so frequent that it is on in bursts only.
    is_frequent: bool,
    /// What it does in the present slice.
    part: Part,
    /// The calls of the present slice, and the number of threads in the present look.
    calls: u32,
    look: f64,
    /// Calls, and the time in which they were counted; earlier periods count less.
    recent_calls: f64,
    on_ns: f64,
    /// What was seen; earlier periods count less.
    heat: f64,
}

/// What is known of the present period.
#[derive(Debug, Default)]
struct Period {
    /// Its length, and the parts in bursts and with everything off.
    time: Duration,
    in_bursts: Duration,
    off: Duration,
    /// CPU time of the program, of bursts, and of the collector's thread.
    cpu: f64,
    bursts: f64,
    collector: f64,
    looks: u32,
}

/// All times without a unit are in nanoseconds.
#[derive(Debug)]
pub(super) struct Plan {
    hot_spots: usize,
    budget: f64,
    costs: Costs,
    pub(super) operations: Vec<Operation>,
    /// CPU time that monitoring may still use; below 0 everything is off.
    balance: f64,
    /// The most that can be saved: the income of a period.
    most: f64,
    period: Period,
    /// Whether the present slice is a burst, and the mean length of gaps.
    is_burst: bool,
    gap: Duration,
}

impl Plan {
    pub(super) fn new(settings: Hybrid, costs: Costs) -> Self {
        Self {
            hot_spots: settings.hot_spots,
            budget: f64::from(settings.budget_per_mille) / 1e3,
            costs,
            operations: Vec::new(),
            balance: 0.0,
            most: 0.0,
            period: Period::default(),
            is_burst: false,
            gap: Duration::from_millis(50),
        }
    }

    /// Adds an operation, and returns its position.
    pub(super) fn learn(&mut self, hostname: &str, signature: &str) -> usize {
        self.operations.push(Operation {
            record: PartTimeRecord {
                hostname: hostname.to_owned(),
                operation_signature: signature.to_owned(),
                ..PartTimeRecord::default()
            },
            // Until its calls are known.
            is_frequent: true,
            ..Operation::default()
        });
        self.operations.len() - 1
    }

    /// Adds calls of an operation in the slice that ends.
    pub(super) fn count(&mut self, operation: usize, calls: u32) {
        if let Some(operation) = self.operations.get_mut(operation) {
            operation.calls += calls;
        }
    }

    /// Ends a slice, a gap or a burst, with these nanoseconds of CPU time: of the program, and among
    /// them those of the sampler's and of the collector's thread. Returns whether to look now.
    pub(super) fn end_slice(&mut self, slice: Duration, cpu_ns: [u64; 3]) -> bool {
        let ns = slice.as_nanos() as f64;
        let [cpu, sampler, collector] = cpu_ns.map(|ns| ns as f64);
        let period = &mut self.period;
        period.time += slice;
        period.cpu += cpu;
        period.bursts += sampler;
        period.collector += collector;
        let income = self.budget * cpu;
        self.most = self.most.max(income);
        let is_off = self.balance < 0.0 && !self.is_burst;
        self.balance = (self.balance + income).min(self.most) - sampler - collector;
        if is_off {
            period.off += slice;
        } else if self.is_burst {
            period.in_bursts += slice;
        }
        for operation in &mut self.operations {
            let count = mem::take(&mut operation.calls);
            let calls = f64::from(count);
            let cost = calls * self.costs.of(operation.part == Part::Recorded);
            self.balance -= cost;
            if operation.is_frequent {
                period.bursts += cost;
            }
            // A thread may see late that its operation is off.
            if operation.part != Part::Off {
                operation.recent_calls += calls;
                operation.on_ns += ns;
                let record = &mut operation.record;
                record.calls += u64::from(count);
                record.call_squares += calls * calls;
            }
        }
        self.is_burst
    }

    /// Adds a thread whose innermost published operation is this one.
    pub(super) fn see(&mut self, operation: usize) {
        if let Some(operation) = self.operations.get_mut(operation) {
            operation.look += 1.0;
        }
    }

    /// Ends a look at all threads.
    pub(super) fn end_look(&mut self) {
        self.period.looks += 1;
        for operation in &mut self.operations {
            let look = mem::take(&mut operation.look);
            operation.record.seen += look;
            operation.record.seen_squares += look * look;
        }
    }

    /// Ends a period: returns its records, and makes the choices of the next one. `may_record` tells
    /// whether the operation with this signature may be recorded.
    pub(super) fn end_period(
        &mut self,
        unix_ns: i64,
        may_record: impl Fn(&str) -> bool,
    ) -> Vec<PartTimeRecord> {
        let period = mem::take(&mut self.period);
        let was_on = (period.time - period.off).as_nanos() as f64;
        let share_of_bursts = period.in_bursts.as_nanos() as f64 / was_on.max(1.0);
        let mut records = Vec::new();
        for operation in &mut self.operations {
            let next = PartTimeRecord {
                calls: 0,
                call_squares: 0.0,
                seen: 0.0,
                seen_squares: 0.0,
                ..operation.record.clone()
            };
            let record = mem::replace(&mut operation.record, next);
            operation.heat = LONG_MEMORY * operation.heat + record.seen;
            if record.calls > 0 || record.seen > 0.0 {
                let share = if operation.is_frequent {
                    share_of_bursts
                } else {
                    1.0
                };
                records.push(PartTimeRecord {
                    timestamp: unix_ns,
                    interval: nanos(period.time),
                    off: nanos(period.off),
                    share,
                    looks: period.looks.into(),
                    ..record
                });
            }
        }
        self.choose(&period, may_record);
        records
    }

    /// Chooses the hot spots, the frequency of bursts, and which operations are always on.
    fn choose(&mut self, period: &Period, may_record: impl Fn(&str) -> bool) {
        let heats = self.operations.iter().map(|it| it.heat);
        let least = HOT * heats.sum::<f64>();
        let mut hottest: Vec<&mut Operation> = self.operations.iter_mut().collect();
        hottest.sort_by(|a, b| b.heat.total_cmp(&a.heat));
        let mut left = self.hot_spots;
        for operation in hottest {
            let is_hot = left > 0 && operation.heat > 0.0 && operation.heat >= least;
            let record = &mut operation.record;
            record.is_recorded = is_hot && may_record(&record.operation_signature);
            left -= usize::from(record.is_recorded);
        }

        self.most = self.budget * period.cpu;
        let free = (PLANNED * self.most - period.collector).max(0.0);
        // As many bursts as their part of the budget allows.
        let factor = (period.bursts / (BURSTS_PART * free)).min(100.0);
        let cycle = (period.time / period.looks.max(1)).mul_f64(factor);
        self.gap = cycle.clamp(SHORTEST_GAP, LONGEST_GAP);

        // In nanoseconds of CPU time for each nanosecond.
        let mut room = (1.0 - BURSTS_PART) * free / period.time.as_nanos() as f64;
        let costs = self.costs;
        let cost = |it: &Operation| {
            // An operation that was never on has no calls.
            it.recent_calls / it.on_ns.max(1.0) * costs.of(it.record.is_recorded)
        };
        let mut rarest: Vec<&mut Operation> = self.operations.iter_mut().collect();
        rarest.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        for operation in rarest {
            let cost = cost(operation);
            operation.is_frequent = operation.on_ns == 0.0 || cost > room;
            room -= if operation.is_frequent { 0.0 } else { cost };
            operation.recent_calls *= MEMORY;
            operation.on_ns *= MEMORY;
        }
    }

    /// Begins a burst after a gap, otherwise a gap. `random` is below 1. Returns the length of the
    /// slice; `part` tells what the operations do in it.
    pub(super) fn begin_slice(&mut self, random: f64) -> Duration {
        let is_spent = self.balance < 0.0;
        self.is_burst = !self.is_burst && !is_spent;
        for operation in &mut self.operations {
            operation.part = if is_spent || (operation.is_frequent && !self.is_burst) {
                Part::Off
            } else if operation.record.is_recorded {
                Part::Recorded
            } else {
                Part::Published
            };
        }
        match self.is_burst {
            true => BURST,
            // Waking up costs time, too.
            false if is_spent => LONGEST_GAP / 2,
            false => self.gap.mul_f64(0.5 + random),
        }
    }

    pub(super) fn part(&self, operation: usize) -> Part {
        let operation = self.operations.get(operation);
        operation.map_or(Part::Off, |it| it.part)
    }
}

impl Costs {
    const fn of(self, is_recorded: bool) -> f64 {
        if is_recorded {
            self.recorded
        } else {
            self.published
        }
    }
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
