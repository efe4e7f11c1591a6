//! The decisions of hybrid monitoring. They depend on counts, samples and times alone: the clocks are
//! the caller's.
//!
//! Two rules keep the budget. Each period, shares are chosen so that the expected cost fits. Between
//! these decisions an account decides: the program's CPU time pays in, monitoring pays from it, and
//! while it is overdrawn everything is off.

use std::cmp::Ordering;

use super::Hybrid;
use crate::probe::Part;

/// The smallest share of an operation that is on at all: one slice in 200.
const LEAST_SHARE: f64 = 0.005;

/// An operation is a hot spot from this part of all seen time on.
const HOT: f64 = 0.01;

/// The part of the budget that the sampler's own thread may use.
const SAMPLER_PART: f64 = 0.3;

/// Slices become at most this number of times as long as the sampler's period.
const LONGEST_STRETCH: u32 = 64;

/// The weight of a period beside the next one: of rates and costs, and of what is seen.
const MEMORY: f64 = 0.5;
const LONG_MEMORY: f64 = 0.8;

/// What calls cost, in nanoseconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Costs {
    pub(super) published: f64,
    pub(super) recorded: f64,
}

/// What an operation has shown since the last decision; the fields of
/// [`PartTimeRecord`](baler_common::record::sampling::PartTimeRecord).
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    pub(super) calls: u64,
    pub(super) call_squares: f64,
    pub(super) seen: f64,
    pub(super) seen_squares: f64,
}

#[derive(Debug)]
pub(super) struct Operation {
    /// The probability of being on in a slice, and of being recorded.
    pub(super) share: f64,
    pub(super) recorded_share: f64,
    pub(super) part: Part,
    pub(super) counted: Counted,
    /// What it counts in the present look.
    look: f64,
    /// Calls, and the time in which they were counted; earlier periods count less.
    calls: f64,
    on_ns: f64,
    /// What was seen; earlier periods count less.
    heat: f64,
}

impl Operation {
    /// Calls in a nanosecond; 0 if it was never on.
    fn rate(&self) -> f64 {
        if self.on_ns > 0.0 {
            self.calls / self.on_ns
        } else {
            0.0
        }
    }
}

#[derive(Debug)]
pub(super) struct Plan {
    settings: Hybrid,
    costs: Costs,
    pub(super) operations: Vec<Operation>,
    /// CPU time in nanoseconds that monitoring may still use; below 0 everything is off.
    balance: f64,
    /// The most that can be saved.
    most: f64,
    /// Since the last decision, in nanoseconds.
    pub(super) interval: f64,
    pub(super) off: f64,
    cpu: f64,
    pub(super) looks: u64,
    /// CPU time of the program, of the sampler and of the collector, and the time in which it was
    /// used. Earlier periods count less.
    recent: [f64; 4],
    pub(super) stretch: u32,
}

impl Plan {
    pub(super) const fn new(settings: Hybrid, costs: Costs) -> Self {
        Self {
            settings,
            costs,
            operations: Vec::new(),
            balance: 0.0,
            most: 0.0,
            interval: 0.0,
            off: 0.0,
            cpu: 0.0,
            looks: 0,
            recent: [0.0; 4],
            stretch: 1,
        }
    }

    /// A new operation is published, until its calls are known.
    pub(super) fn learn(&mut self) {
        self.operations.push(Operation {
            share: 1.0,
            recorded_share: 0.0,
            part: Part::Published,
            counted: Counted::default(),
            look: 0.0,
            calls: 0.0,
            on_ns: 0.0,
            heat: 0.0,
        });
    }

    /// Whether the budget is spent, so that everything is off.
    pub(super) fn is_spent(&self) -> bool {
        self.balance < 0.0
    }

    /// Ends a slice of `ns` nanoseconds, in which the program used `cpu` nanoseconds of CPU time, and
    /// the sampler's thread `sampler` of these. `calls` returns the published calls of an operation.
    pub(super) fn end_slice(
        &mut self,
        ns: f64,
        cpu: f64,
        sampler: f64,
        calls: impl Fn(usize) -> u32,
    ) {
        let was_spent = self.is_spent();
        self.most = self.most.max(self.settings.budget() * cpu);
        self.interval += ns;
        self.cpu += cpu;
        add(&mut self.recent, [cpu, sampler, 0.0, ns]);
        self.stretch_slices();
        self.balance = (self.balance + self.settings.budget() * cpu).min(self.most) - sampler;
        if was_spent {
            self.off += ns;
        }
        for (index, operation) in self.operations.iter_mut().enumerate() {
            let count = calls(index);
            let calls = f64::from(count);
            self.balance -= calls
                * match operation.part {
                    Part::Recorded => self.costs.recorded,
                    Part::Published | Part::Off => self.costs.published,
                };
            // A thread may see late that its operation is off.
            if operation.part != Part::Off {
                operation.calls += calls;
                operation.on_ns += ns;
                let counted = &mut operation.counted;
                counted.calls = counted.calls.saturating_add(count.into());
                counted.call_squares += calls * calls;
            }
        }
    }

    /// Adds what a sampler sees of a thread: its published operations, the outermost first.
    ///
    /// A call is seen with the probability that its operation was on. While a call is not seen, its
    /// caller seems to be the innermost one. So a thread that is seen counts more than once for its
    /// innermost operation, and its callers give back what they had too much.
    pub(super) fn see(&mut self, stack: impl DoubleEndedIterator<Item = usize>) {
        let mut weight = 1.0;
        for index in stack.rev() {
            let Some(operation) = self.operations.get_mut(index) else {
                return;
            };
            operation.look += weight / operation.share;
            weight *= 1.0 - 1.0 / operation.share;
            if weight == 0.0 {
                return;
            }
        }
    }

    /// Ends a look at all threads.
    pub(super) fn end_look(&mut self) {
        self.looks = self.looks.saturating_add(1);
        for operation in &mut self.operations {
            let look = std::mem::take(&mut operation.look);
            operation.counted.seen += look;
            operation.counted.seen_squares += look * look;
        }
    }

    /// Ends a period, in which the collector's thread used `collector` nanoseconds of CPU time, and
    /// chooses the shares of the next one. `may_record` tells whether an operation may be recorded.
    pub(super) fn decide(&mut self, collector: f64, may_record: impl Fn(usize) -> bool) {
        self.balance -= collector;
        self.most = self.settings.budget() * self.cpu;
        add(&mut self.recent, [0.0, 0.0, collector, 0.0]);
        let [_, sampler, collector, time] = self.recent;
        // In nanoseconds of CPU time for each nanosecond.
        let income = self.most / self.interval;
        let room = (income - (sampler + collector) / time).max(0.0);
        self.recent = self.recent.map(|it| it * MEMORY);
        for operation in &mut self.operations {
            operation.heat = LONG_MEMORY * operation.heat + operation.counted.seen;
        }

        let rates: Vec<f64> = self.operations.iter().map(Operation::rate).collect();
        let costs: Vec<f64> = rates.iter().map(|it| it * self.costs.published).collect();
        let shares = divide(room / 2.0, &costs);
        let used: f64 = shares.iter().zip(&costs).map(|(a, b)| a * b).sum();
        let hot = self.hot_spots(may_record);
        let rate = |index: &usize| rates.get(*index).copied().unwrap_or_default();
        let costs: Vec<f64> = hot
            .iter()
            .map(|it| rate(it) * self.costs.recorded)
            .collect();
        let recorded = divide((room - used).max(0.0), &costs);
        for (operation, share) in self.operations.iter_mut().zip(shares) {
            operation.share = share.max(LEAST_SHARE);
            operation.recorded_share = 0.0;
            operation.calls *= MEMORY;
            operation.on_ns *= MEMORY;
        }
        for (index, share) in hot.into_iter().zip(recorded) {
            let operation = self.operations.get_mut(index);
            if let Some(operation) = operation.filter(|_| share >= LEAST_SHARE) {
                operation.recorded_share = share;
                operation.share = operation.share.max(share);
            }
        }
    }

    /// Begins the records of the next period.
    pub(super) fn begin_period(&mut self) {
        (self.interval, self.off, self.cpu, self.looks) = (0.0, 0.0, 0.0, 0);
        for operation in &mut self.operations {
            operation.counted = Counted::default();
        }
    }

    /// Returns what an operation does in the next slice; `random` is below 1.
    pub(super) fn draw(&self, operation: &Operation, random: f64) -> Part {
        if self.is_spent() {
            Part::Off
        } else if random < operation.recorded_share {
            Part::Recorded
        } else if random < operation.share {
            Part::Published
        } else {
            Part::Off
        }
    }

    /// The hottest operations that may be recorded, the hottest first.
    fn hot_spots(&self, may_record: impl Fn(usize) -> bool) -> Vec<usize> {
        let heats = self.operations.iter().map(|it| it.heat.max(0.0));
        let mut hot: Vec<(usize, f64)> = heats.enumerate().collect();
        let least = HOT * hot.iter().map(|(_, heat)| heat).sum::<f64>();
        hot.retain(|(index, heat)| *heat > 0.0 && *heat >= least && may_record(*index));
        hot.sort_by(|(_, a), (_, b)| b.partial_cmp(a).unwrap_or(Ordering::Equal));
        hot.truncate(self.settings.hot_spots);
        hot.into_iter().map(|(index, _)| index).collect()
    }

    /// Makes slices twice or half as long if the sampler's part of the budget requires or allows
    /// that.
    fn stretch_slices(&mut self) {
        let [cpu, sampler, ..] = self.recent;
        let part = SAMPLER_PART * self.settings.budget() * cpu;
        if sampler > part && self.stretch < LONGEST_STRETCH {
            self.stretch = self.stretch.saturating_mul(2);
            // As if it had been so all the time.
            self.recent[1] /= 2.0;
        } else if sampler < part / 4.0 && self.stretch > 1 {
            self.stretch /= 2;
            self.recent[1] *= 2.0;
        }
    }
}

fn add<const N: usize>(sums: &mut [f64; N], more: [f64; N]) {
    for (sum, more) in sums.iter_mut().zip(more) {
        *sum += more;
    }
}

/// Divides `room` equally among these costs, of which none gets more than it is. Returns the share
/// of each cost that it gets.
fn divide(mut room: f64, costs: &[f64]) -> Vec<f64> {
    let mut order: Vec<(usize, f64)> = costs.iter().copied().enumerate().collect();
    order.sort_by(|(_, a), (_, b)| a.partial_cmp(b).unwrap_or(Ordering::Equal));
    let mut shares = vec![1.0; costs.len()];
    let mut left = costs.len();
    for (index, cost) in order {
        let part = room / left as f64;
        if let (Some(share), true) = (shares.get_mut(index), cost > part) {
            *share = part / cost;
        }
        room -= cost.min(part);
        left = left.saturating_sub(1);
    }
    shares
}

#[cfg(test)]
mod tests;
