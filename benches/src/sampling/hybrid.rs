//! The shop of `baler demo` under hybrid monitoring, while its load changes tenfold.

use std::collections::{BTreeMap, BTreeSet};
use std::hint::black_box;
use std::num::NonZeroU64;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::record::sampling::PartTimeRecord;
use baler_common::transport::ChunkWriter;
use baler_connector_kieker::container;
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::usage::process_cpu_time;
use baler_monitoring::{Controller, Hybrid, probe};
use baler_rig::clock::{now_ns, time_until};
use baler_rig::report::{self, Column};
use baler_rig::statistics::{Distribution, to_f64};
use baler_rig::usage::busy_time_of_threads;
use serde::Serialize;

use super::PATIENCE;
use crate::Failure;
use crate::random::Random;
use crate::recorded::WrittenChunks;

#[path = "../../../cli/src/commands/demo/shop.rs"]
mod shop;

/// The parts of full load, one after the other.
const LOADS: [f64; 3] = [1.0, 0.1, 1.0];

/// The threads that serve customers. They serve for a part of each turn.
const THREADS: u64 = 2;
const TURN: Duration = Duration::from_millis(100);

/// The figures of a load. JSON uses the same names.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Row {
    load: f64,
    visits: u64,
    /// The CPU time of the whole program, and of the threads of monitoring.
    cpu_ms: f64,
    sampler_ms: f64,
    collector_ms: f64,
    /// Calls that were published for the sampler, and those of them that were recorded.
    published: u64,
    recorded: u64,
    /// The calibrated times of such a call, and of these calls.
    published_ns: f64,
    recorded_ns: f64,
    probes_ms: f64,
    /// The time of monitoring.
    percent: f64,
    /// By how much a visit takes more CPU time than afterwards without monitoring.
    beside_percent: f64,
    /// The operations that are recorded at the end.
    hot_spots: BTreeSet<String>,
    /// The seconds from the start of this load until each of them was recorded.
    found_s: BTreeMap<String, f64>,
}

/// The use of a load.
struct Used {
    unix_ns: [i64; 2],
    visits: u64,
    /// Of the program, the sampler and the collector.
    cpu_ms: [f64; 3],
}

impl Used {
    fn visit_ms(&self) -> f64 {
        self.cpu_ms[0] / to_f64(self.visits)
    }
}

/// Runs the shop for this number of seconds at each load, under hybrid monitoring and then without.
pub(super) fn measure(seconds: NonZeroU64, budget_per_mille: u32) -> Result<Vec<Row>, Failure> {
    let time = Duration::from_secs(seconds.get());
    let published_ns = calibrate(0)?;
    let recorded_ns = calibrate(1)?;
    let written = WrittenChunks::default();
    let hybrid = Hybrid {
        budget_per_mille,
        hot_spots: 5,
        ..Hybrid::default()
    };
    let controller = start(written.writer(), hybrid)?;
    let run = |load| serve(load, time);
    let with = LOADS.map(run).into_iter().collect::<Result<Vec<_>, _>>()?;
    let failed = controller.sampler_stats().failed;
    let report = controller.shutdown(PATIENCE);
    if !report.adds_up() || report.dropped().total() > 0 || failed > 0 {
        return Err(Failure::new(format!("records are missing: {report}")));
    }
    let without = LOADS.map(run).into_iter().collect::<Result<Vec<_>, _>>()?;

    let mut records: Vec<PartTimeRecord> = Vec::new();
    let mut decoder = container::decoder();
    for chunk in written.take() {
        let decoded = decoder.decode(&chunk.bytes);
        let batch = decoded.map_err(Failure::cannot("decode a chunk"))?.batch;
        for record in batch.read() {
            records.push(record.map_err(Failure::cannot("read a record"))?);
        }
    }
    let row = |((load, used), plain): ((f64, &Used), &Used)| {
        let [begin, end] = used.unix_ns;
        let of_load = |it: &&PartTimeRecord| begin < it.timestamp && it.timestamp <= end;
        let records: Vec<_> = records.iter().filter(of_load).collect();
        let hot: Vec<_> = records.iter().filter(|it| it.is_recorded).collect();
        let last = records.iter().map(|it| it.timestamp).max();
        let mut found_s = BTreeMap::new();
        for it in &hot {
            let after = Duration::from_nanos((it.timestamp - begin).unsigned_abs());
            found_s
                .entry(name(it))
                .or_insert_with(|| after.as_secs_f64());
        }
        let published = records.iter().map(|it| it.calls).sum();
        let recorded = hot.iter().map(|it| it.calls).sum();
        let probes_ns =
            to_f64(published - recorded) * published_ns + to_f64(recorded) * recorded_ns;
        let probes_ms = probes_ns / 1e6;
        let [cpu_ms, sampler_ms, collector_ms] = used.cpu_ms;
        Row {
            load,
            visits: used.visits,
            cpu_ms,
            sampler_ms,
            collector_ms,
            published,
            recorded,
            published_ns,
            recorded_ns,
            probes_ms,
            percent: 100.0 * (sampler_ms + collector_ms + probes_ms) / cpu_ms,
            beside_percent: 100.0 * (used.visit_ms() / plain.visit_ms() - 1.0),
            hot_spots: hot
                .iter()
                .filter(|it| Some(it.timestamp) == last)
                .map(|it| name(it))
                .collect(),
            found_s,
        }
    };
    let runs = LOADS.into_iter().zip(&with).zip(&without);
    Ok(runs.map(row).collect())
}

/// The name of the operation alone.
fn name(record: &PartTimeRecord) -> String {
    let (path, _) = record
        .operation_signature
        .split_once('(')
        .expect("a signature has arguments");
    let (_, name) = path.rsplit_once('.').expect("a signature has a class");
    name.to_owned()
}

fn start(writer: Box<dyn ChunkWriter>, hybrid: Hybrid) -> Result<Controller, Failure> {
    let builder = Controller::builder(writer).metadata_record(false);
    let started = builder.application("hybrid").hybrid(hybrid).start();
    let controller = started.map_err(Failure::cannot("start a controller"))?;
    controller.install();
    Ok(controller)
}

/// Serves customers for this time, and for this part of it.
fn serve(load: f64, time: Duration) -> Result<Used, Failure> {
    let shop = &shop::Shop::new();
    let end = Instant::now() + time;
    let began = now_ns();
    let before = cpu_ms()?;
    thread::scope(|scope| {
        for seed in 0..THREADS {
            scope.spawn(move || {
                let mut dice = Random::new(seed);
                let mut turn = Instant::now();
                while turn < end {
                    while turn.elapsed() < TURN.mul_f64(load) {
                        shop.serve(&mut dice);
                    }
                    turn += TURN;
                    sleep(time_until(turn));
                }
            });
        }
    });
    let after = cpu_ms()?;
    Ok(Used {
        unix_ns: [began, now_ns()],
        visits: shop.visits().total(),
        cpu_ms: [0, 1, 2].map(|it| after[it] - before[it]),
    })
}

/// The CPU times so far of the program, the sampler and the collector.
fn cpu_ms() -> Result<[f64; 3], Failure> {
    let times = [
        process_cpu_time(),
        busy_time_of_threads("baler-samplers")?,
        busy_time_of_threads("baler-collector")?,
    ];
    Ok(times.map(|time| time.as_secs_f64() * 1e3))
}

#[expect(
    clippy::disallowed_methods,
    reason = "customers come at their own times"
)]
fn sleep(time: Duration) {
    thread::sleep(time);
}

#[probe(name = "calibration.hash()")]
#[inline(never)]
fn hash() {
    plain_hash();
}

#[inline(never)]
fn plain_hash() {
    for step in 0..5 {
        black_box(step);
    }
}

/// Returns by how many nanoseconds a probe makes a call longer: one of a hot spot, or one that is only
/// published.
fn calibrate(hot_spots: usize) -> Result<f64, Failure> {
    let period = Duration::from_millis(100);
    let hybrid = Hybrid {
        budget_per_mille: 1_000,
        period,
        hot_spots,
    };
    let writer = NullWriter::new(NullConfig::default());
    let controller = start(Box::new(writer), hybrid)?;
    let batch = |call: fn(), calls: u32| {
        let begin = Instant::now();
        (0..calls).for_each(|_| call());
        begin.elapsed().as_secs_f64() * 1e9 / f64::from(calls)
    };
    let begin = Instant::now();
    let mut differences = Vec::new();
    while begin.elapsed() < period * 10 {
        let difference = batch(hash, 1_000) - batch(plain_hash, 1_000);
        // So much other work that the budget allows all calls.
        batch(plain_hash, 50_000);
        if begin.elapsed() > period * 5 {
            differences.push(difference);
        }
    }
    controller.shutdown(PATIENCE);
    let median = Distribution::of(differences).quantile(0.5);
    median.ok_or_else(|| Failure::new("nothing was measured"))
}

/// The figures of all loads.
pub(super) fn table(rows: &[Row]) -> String {
    const COLUMNS: &[Column<Row>] = &[
        Column::number("load", |row| format!("{:.1}", row.load)),
        Column::number("visits", |row| row.visits.to_string()),
        Column::number("CPU ms", |row| format!("{:.0}", row.cpu_ms)),
        Column::number("sampler", |row| format!("{:.1}", row.sampler_ms)),
        Column::number("collector", |row| format!("{:.1}", row.collector_ms)),
        Column::number("published", |row| row.published.to_string()),
        Column::number("recorded", |row| row.recorded.to_string()),
        Column::number("probes", |row| format!("{:.1}", row.probes_ms)),
        Column::number("%", |row| format!("{:.2}", row.percent)),
        Column::number("beside %", |row| format!("{:+.2}", row.beside_percent)),
    ];
    let found = rows[0].found_s.iter();
    let found = found.map(|(name, seconds)| format!("{name} was found after {seconds:.1} s\n"));
    report::table(rows, COLUMNS) + "\n" + &found.collect::<String>()
}
