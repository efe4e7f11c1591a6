use baler_common::record::sampling::Estimate;

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
    /// CPU time of the program, and of monitoring.
    cpu: f64,
    cost: f64,
    /// All calls of the period, counted or not.
    calls: [f64; PROGRAM.len()],
    periods: Vec<Period>,
}

/// The true calls of each operation, and its record.
type Period = Vec<(f64, Option<PartTimeRecord>)>;

fn name(index: usize) -> String {
    format!("p.operation{index}()")
}

fn budget(budget_per_mille: u32) -> Hybrid {
    Hybrid {
        budget_per_mille,
        ..Hybrid::default()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "whole nanoseconds")]
fn whole(ns: f64) -> u64 {
    ns as u64
}

/// Below 1 (Steele's splitmix).
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
}

impl World {
    fn new(settings: Hybrid) -> Self {
        let mut plan = Plan::new(settings, COSTS);
        for index in 0..PROGRAM.len() {
            plan.learn("host", &name(index));
        }
        Self {
            plan,
            random: 1,
            in_period: 0.0,
            cpu: 0.0,
            cost: 0.0,
            calls: [0.0; PROGRAM.len()],
            periods: Vec::new(),
        }
    }

    fn random(&mut self) -> f64 {
        uniform(&mut self.random)
    }

    /// Runs for a time, in which the program uses this part of the processors.
    fn run(&mut self, ns: f64, load: f64) {
        let mut left = ns;
        while left > 0.0 {
            let random = self.random();
            let slice = self.plan.begin_slice(random);
            left -= slice.as_nanos() as f64;
            self.slice(slice, load);
        }
    }

    fn slice(&mut self, slice: Duration, load: f64) {
        let ns = slice.as_nanos() as f64;
        let cpu = ns * f64::from(PROCESSORS) * load;
        let mut collector = COLLECTOR_PER_SECOND * ns / SECOND;
        let mut cost = LOOK;
        for (index, (length, part)) in PROGRAM.iter().enumerate() {
            // The load of a slice varies by up to a half.
            let expected = cpu * part / length * (0.5 + self.random());
            let calls = (expected + self.random()).floor();
            self.calls[index] += calls;
            let (each, collected) = match self.plan.part(index) {
                Part::Off => continue,
                Part::Published => (COSTS.published, 0.0),
                Part::Recorded => (COSTS.recorded, COLLECTED),
            };
            self.plan.count(index, whole(calls).try_into().unwrap());
            cost += calls * each;
            collector += calls * collected;
        }
        self.cost += cost + collector;
        self.cpu += cpu;
        let times = [cpu, LOOK, collector].map(whole);
        if self.plan.end_slice(slice, times) {
            self.look(load);
        }
        self.in_period += ns;
        if self.in_period >= SECOND {
            self.in_period = 0.0;
            self.end_period();
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
            // The root calls the others, and is always on.
            self.plan.see(operation.unwrap_or(ROOT));
        }
        self.plan.end_look();
    }

    fn end_period(&mut self) {
        let records = self.plan.end_period(0, |_| true);
        let record = |(index, calls)| {
            let signature = name(index);
            let mut found = records.iter();
            let found = found.find(|it| it.operation_signature == signature);
            // Nothing was seen of the others.
            (calls, found.cloned())
        };
        let calls = mem::take(&mut self.calls).into_iter().enumerate();
        self.periods.push(calls.map(record).collect());
    }

    /// Runs for 20 s; returns the cost of monitoring in percent.
    fn percent(&mut self, load: f64) -> f64 {
        (self.cpu, self.cost) = (0.0, 0.0);
        self.run(20.0 * SECOND, load);
        100.0 * self.cost / self.cpu
    }

    fn record(&self, index: usize) -> &PartTimeRecord {
        &self.plan.operations[index].record
    }
}

#[test]
fn three_hot_spots_are_found_in_ten_seconds_at_any_load() {
    for load in [1.0, 0.1] {
        let mut world = World::new(Hybrid::default());
        world.run(10.0 * SECOND, load);
        for hot in HOT_SPOTS {
            assert!(
                world.record(hot).is_recorded,
                "{load}, {hot}: {:?}",
                world.plan
            );
        }
    }
}

#[test]
fn only_the_hottest_operations_are_recorded() {
    let mut world = World::new(Hybrid {
        hot_spots: 3,
        ..Hybrid::default()
    });
    world.run(60.0 * SECOND, 1.0);
    let recorded = (0..PROGRAM.len()).filter(|it| world.record(*it).is_recorded);
    assert_eq!(recorded.collect::<Vec<_>>(), HOT_SPOTS);
    // The calls of the first two are rare enough to record all. The small operation is on in bursts.
    let is_frequent = [0, 1, 3].map(|index| world.plan.operations[index].is_frequent);
    assert_eq!(is_frequent, [false, false, true]);
    world.plan.end_period(0, |signature| signature != name(0));
    assert!(!world.record(0).is_recorded);
}

#[test]
fn the_budget_holds_while_the_load_changes_tenfold() {
    for per_mille in [10, 30] {
        let mut world = World::new(budget(per_mille));
        for load in [0.1, 1.0, 0.1, 1.0] {
            let percent = world.percent(load);
            let budget = f64::from(per_mille) / 10.0;
            assert!(percent <= 1.02 * budget, "{load}: {percent} of {budget} %");
            assert!(percent > 0.2 * budget, "{load}: {percent} of {budget} %");
        }
    }
}

#[test]
fn a_budget_of_nothing_switches_everything_off() {
    let mut world = World::new(budget(0));
    world.run(SECOND, 1.0);
    assert!((0..PROGRAM.len()).all(|it| world.plan.part(it) == Part::Off));
    let record = world.periods[0][0].1.as_ref().unwrap();
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
        for (calls, record) in world.periods.iter().skip(1).map(|it| &it[index]) {
            truth += calls;
            // Of an operation without a record, the estimates are 0.
            let Some(record) = record else { continue };
            time += record.self_time().map_or(0.0, |it| it.value);
            let Estimate { value, interval } = record.all_calls().unwrap();
            estimated += value;
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
