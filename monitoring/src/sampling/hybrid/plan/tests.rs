use baler_common::record::sampling::{Estimate, PartTimeRecord};

use super::super::whole;
use super::*;

const MS: f64 = 1e6;
const SECOND: f64 = 1e9;

/// Nanoseconds of the costs.
const COSTS: Costs = Costs {
    published: 40.0,
    recorded: 120.0,
};
const LOOK: f64 = 40_000.0;
const COLLECTED: f64 = 60.0;
const COLLECTOR_PER_SECOND: f64 = 0.3 * MS;

const PROCESSORS: u32 = 2;

/// The time of an operation's calls, and their part of the program's time. The first three are the
/// hot spots, the fourth has 2.5 million calls a second on each processor, and the last one calls the
/// others.
const PROGRAM: [(f64, f64); 9] = [
    (1_000_000.0, 0.30),
    (100_000.0, 0.25),
    (10_000.0, 0.20),
    (20.0, 0.05),
    (50_000.0, 0.05),
    (50_000.0, 0.05),
    (1_000.0, 0.04),
    (1_000.0, 0.03),
    (5_000_000.0, 0.03),
];
const HOT_SPOTS: [usize; 3] = [0, 1, 2];
const ROOT: usize = PROGRAM.len() - 1;

/// A program and its monitoring, with times that pass as the test says.
struct World {
    plan: Plan,
    random: u64,
    in_period: f64,
    collector: f64,
    /// CPU time of the program, and of monitoring.
    cpu: f64,
    cost: f64,
    /// All calls of the period, also those that nobody counts.
    calls: [f64; PROGRAM.len()],
    periods: Vec<Period>,
}

/// The true calls of each operation, and its record.
type Period = Vec<(f64, PartTimeRecord)>;

impl World {
    fn new(settings: Hybrid) -> Self {
        let mut plan = Plan::new(settings, COSTS);
        PROGRAM.iter().for_each(|_| plan.learn());
        Self {
            plan,
            random: 1,
            in_period: 0.0,
            collector: 0.0,
            cpu: 0.0,
            cost: 0.0,
            calls: [0.0; PROGRAM.len()],
            periods: Vec::new(),
        }
    }

    /// Below 1 (Steele's splitmix).
    fn random(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Runs for a time, in which the program uses this part of the processors.
    fn run(&mut self, ns: f64, load: f64) {
        let mut left = ns;
        while left > 0.0 {
            let slice = 10.0 * MS * f64::from(self.plan.stretch);
            left -= slice;
            self.slice(slice, load);
        }
    }

    fn slice(&mut self, ns: f64, load: f64) {
        let cpu = ns * f64::from(PROCESSORS) * load;
        let mut counts = [0_u32; PROGRAM.len()];
        let mut cost = LOOK;
        self.collector += COLLECTOR_PER_SECOND * ns / SECOND;
        for (index, (length, part)) in PROGRAM.iter().enumerate() {
            // The load of a slice varies by up to a half.
            let expected = cpu * part / length * (0.5 + self.random());
            let calls = (expected + self.random()).floor();
            self.calls[index] += calls;
            let (each, collected) = match self.plan.operations[index].part {
                Part::Off => continue,
                Part::Published => (COSTS.published, 0.0),
                Part::Recorded => (COSTS.recorded, COLLECTED),
            };
            counts[index] = u32::try_from(whole(calls)).unwrap();
            cost += calls * each;
            self.collector += calls * collected;
            self.cost += calls * collected;
        }
        self.cost += cost + COLLECTOR_PER_SECOND * ns / SECOND;
        self.cpu += cpu;
        self.plan.end_slice(ns, cpu, LOOK, |index| counts[index]);
        if !self.plan.is_spent() {
            self.look(load);
        }
        self.in_period += ns;
        if self.in_period >= SECOND {
            self.in_period = 0.0;
            let period = self.period();
            self.periods.push(period);
            self.plan
                .decide(std::mem::take(&mut self.collector), |_| true);
            self.plan.begin_period();
        }
        for index in 0..PROGRAM.len() {
            let random = self.random();
            let part = self.plan.draw(&self.plan.operations[index], random);
            self.plan.operations[index].part = part;
        }
    }

    /// Looks at threads in an operation, or in none.
    fn look(&mut self, load: f64) {
        for _ in 0..PROCESSORS {
            if self.random() >= load {
                continue;
            }
            let mut random = self.random();
            let operation = PROGRAM.iter().position(|(_, part)| {
                random -= part;
                random < 0.0
            });
            let mut stack = vec![ROOT];
            stack.extend(operation.filter(|it| *it != ROOT));
            stack.retain(|it| self.plan.operations[*it].part != Part::Off);
            self.plan.see(stack.into_iter());
        }
        self.plan.end_look();
    }

    /// Returns the records of the period that ends.
    fn period(&mut self) -> Period {
        let calls = std::mem::take(&mut self.calls);
        let record = |operation: &Operation| PartTimeRecord {
            timestamp: 0,
            hostname: String::new(),
            operation_signature: String::new(),
            interval: whole(self.plan.interval),
            off: whole(self.plan.off),
            share: operation.share,
            recorded_share: operation.recorded_share,
            calls: operation.counted.calls,
            call_squares: operation.counted.call_squares,
            looks: self.plan.looks,
            seen: operation.counted.seen,
            seen_squares: operation.counted.seen_squares,
        };
        let records = self.plan.operations.iter().map(record);
        calls.into_iter().zip(records).collect()
    }

    /// Runs for 20 s; returns the cost of monitoring in percent.
    fn percent(&mut self, load: f64) -> f64 {
        (self.cpu, self.cost) = (0.0, 0.0);
        self.run(20.0 * SECOND, load);
        100.0 * self.cost / self.cpu
    }

    fn recorded(&self, index: usize) -> f64 {
        self.plan.operations[index].recorded_share
    }
}

#[test]
fn three_hot_spots_are_found_in_ten_seconds_at_any_load() {
    for load in [1.0, 0.1] {
        let mut world = World::new(Hybrid::default());
        world.run(10.0 * SECOND, load);
        for hot in HOT_SPOTS {
            assert!(world.recorded(hot) > 0.0, "{load}, {hot}: {:?}", world.plan);
        }
    }
}

#[test]
fn only_the_hottest_operations_are_recorded() {
    let mut world = World::new(Hybrid::default().hot_spots(3));
    world.run(60.0 * SECOND, 1.0);
    let recorded = (0..PROGRAM.len()).filter(|it| world.recorded(*it) > 0.0);
    assert_eq!(recorded.collect::<Vec<_>>(), HOT_SPOTS);
    // Their calls are rare enough to record all.
    assert!(HOT_SPOTS.iter().all(|it| world.recorded(*it) == 1.0));
    // The small operation is looked at part of the time.
    assert!(world.plan.operations[3].share < 0.1);
    world.plan.decide(0.0, |index| index != 0);
    assert_eq!(world.recorded(0), 0.0);
}

#[test]
fn the_budget_holds_while_the_load_changes_tenfold() {
    for budget in [0.5, 1.0, 3.0] {
        let mut world = World::new(Hybrid::default().budget_percent(budget));
        for load in [0.1, 1.0, 0.1, 1.0] {
            let percent = world.percent(load);
            assert!(percent <= 1.02 * budget, "{load}: {percent} of {budget} %");
            assert!(percent > 0.2 * budget, "{load}: {percent} of {budget} %");
        }
    }
}

#[test]
fn a_budget_of_nothing_switches_everything_off() {
    let mut world = World::new(Hybrid::default().budget_percent(0.0));
    world.run(SECOND, 1.0);
    assert!(world.plan.is_spent());
    assert!(world.plan.operations.iter().all(|it| it.part == Part::Off));
    let (_, record) = &world.periods[0][0];
    assert!(record.off >= record.interval * 9 / 10, "{record:?}");
}

#[test]
fn estimates_are_unbiased_and_their_intervals_hold() {
    let mut world = World::new(Hybrid::default());
    world.run(300.0 * SECOND, 1.0);
    let (mut held, mut all) = (0, 0);
    for index in 0..PROGRAM.len() {
        let (mut truth, mut estimated, mut time) = (0.0, 0.0, 0.0);
        // Until the first decision nothing is in balance.
        for period in world.periods.iter().skip(1) {
            let (calls, record) = &period[index];
            let Some(Estimate { value, interval }) = record.all_calls() else {
                continue;
            };
            truth += calls;
            estimated += value;
            time += record.self_time().map_or(0.0, |it| it.value);
            let is_part_time = record.share < 1.0 && record.calls > 0;
            all += u32::from(is_part_time);
            held += u32::from(is_part_time && (interval.0..=interval.1).contains(calls));
        }
        let error = estimated / truth - 1.0;
        assert!(error.abs() < 0.05, "{index}: {estimated} of {truth}");
        let all_time = f64::from(PROCESSORS) * 299.0 * SECOND;
        let expected = PROGRAM[index].1 * all_time;
        let error = (time - expected) / all_time;
        assert!(error.abs() < 0.03, "{index}: {time} of {expected}");
    }
    assert!(all > 100 && held * 10 > all * 9, "{held} of {all}");
}

#[test]
fn room_is_divided_equally_as_far_as_it_is_needed() {
    assert_eq!(divide(1.0, &[]), []);
    assert_eq!(divide(10.0, &[0.0, 2.0, 3.0]), [1.0, 1.0, 1.0]);
    assert_eq!(divide(6.0, &[8.0, 2.0, 4.0]), [0.25, 1.0, 0.5]);
    assert_eq!(divide(0.0, &[0.0, 2.0]), [1.0, 0.0]);
}
