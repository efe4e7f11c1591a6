//! A shop with three planted hot spots under hybrid monitoring, while its load changes tenfold.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::pattern::{Dialect, PatternList};
use baler_common::record::Record as _;
use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::sampling::PartTimeRecord;
use baler_common::transport::Chunk;
use baler_connector_null::{NullConfig, NullWriter};
use baler_monitoring::{Controller, Hybrid, Sampler, probe};
use baler_rig::clock::{nanos, now_ns, process_cpu_time};
use baler_rig::report::{self, Column};
use baler_rig::statistics::{Distribution, to_f64};
use baler_rig::usage::busy_time_of_threads;
use serde::Serialize;

use super::PATIENCE;
use crate::Failure;
use crate::recorded::watched;

/// The parts of full load, one after the other.
const LOADS: [f64; 3] = [0.1, 1.0, 0.1];

/// The threads that serve customers.
const THREADS: usize = 2;

/// The batches that calibrate a probe, and their calls.
const BATCHES: usize = 100;
const BATCH_CALLS: u32 = 1_000;

/// The operations that take most of the time.
const HOT_SPOTS: [&str; 3] = ["shop.search()", "shop.rank()", "shop.price()"];

#[probe(name = "shop.visit()")]
fn visit() {
    search();
    rank();
    (0..20).for_each(|_| price());
    (0..1_000).for_each(|_| hash());
    small();
}

#[probe(name = "shop.search()")]
fn search() {
    steps(1_500_000);
}

#[probe(name = "shop.rank()")]
fn rank() {
    steps(1_000_000);
}

#[probe(name = "shop.price()")]
fn price() {
    steps(40_000);
}

/// Many calls of almost no length: to record them, or to publish them all the time, would cost more
/// than the budget.
#[probe(name = "shop.hash()")]
#[inline(never)]
fn hash() {
    steps(50);
}

#[inline(never)]
fn plain_hash() {
    steps(50);
}

#[probe(name = "shop.small()")]
fn small() {
    steps(50_000);
}

#[inline(never)]
fn steps(count: u32) {
    for step in 0..count {
        black_box(step);
    }
}

/// The figures of a second. JSON uses the same names.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Second {
    second: u64,
    load: f64,
    visits: u64,
    /// The CPU time of the whole program, and of the threads of monitoring.
    cpu_ms: f64,
    sampler_ms: f64,
    collector_ms: f64,
    /// Calls that were published for the sampler, and those of them that were recorded.
    published: u64,
    recorded: u64,
    /// The calibrated time of these calls.
    probes_ms: f64,
    /// The time of monitoring.
    percent: f64,
}

/// Runs the shop for this number of seconds at each load. Returns the figures, and what was found.
pub(super) fn measure(seconds: NonZeroU64) -> Result<(Vec<Second>, String), Failure> {
    let published_ns = calibrate("- *\n+ %THREADS")?;
    let recorded_ns = calibrate("")?;
    let now = Arc::new(AtomicU64::new(0));
    let chunks: Arc<Mutex<Vec<(u64, Chunk)>>> = Arc::default();
    let (arrived, arrives) = (Arc::clone(&chunks), Arc::clone(&now));
    let writer = watched(move |chunk| {
        // Decoding here would take the collector's time.
        let mut chunks = arrived.lock().unwrap_or_else(PoisonError::into_inner);
        chunks.push((arrives.load(Ordering::Relaxed), chunk));
    });
    let controller = Controller::builder(writer)
        .application("hybrid")
        .metadata_record(false)
        .hybrid(Hybrid::default())
        .start()
        .map_err(Failure::cannot("start a controller"))?;
    controller.install();
    let began = now_ns();
    let mut rows = Vec::new();
    for load in LOADS {
        let visits = AtomicU64::new(0);
        let end = Instant::now() + Duration::from_secs(seconds.get());
        let served = thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(|| serve(load, end, &visits));
            }
            for _ in 0..seconds.get() {
                rows.push(second(&now, load, &visits)?);
            }
            Ok::<_, Failure>(())
        });
        served?;
    }
    let stats = controller.sampler_stats();
    let report = controller.shutdown(PATIENCE);
    if !report.adds_up() || report.dropped().total() > 0 || stats.failed > 0 {
        return Err(Failure::new(format!("records are missing: {report}")));
    }

    let mut found = BTreeMap::new();
    let mut decoder = ChunkDecoder::default();
    for (second, chunk) in &*chunks.lock().unwrap_or_else(PoisonError::into_inner) {
        let decoded = decoder.decode(&chunk.bytes);
        let batch = decoded.map_err(Failure::cannot("decode a chunk"))?.batch;
        let last = rows.len().saturating_sub(1);
        let at = usize::try_from(*second).unwrap_or(last).min(last);
        let row = &mut rows[at];
        for table in batch.tables() {
            if table.schema() == OperationExecutionRecord::schema() {
                row.recorded += u64::try_from(table.len()).unwrap_or(u64::MAX);
            }
        }
        for record in batch.read::<PartTimeRecord>() {
            let record = record.map_err(Failure::cannot("read a record"))?;
            row.published += record.calls;
            if record.recorded_share > 0.0 {
                found
                    .entry(record.operation_signature)
                    .or_insert(record.timestamp);
            }
        }
    }
    for row in &mut rows {
        let only_published = row.published.saturating_sub(row.recorded);
        let probes = to_f64(only_published) * published_ns + to_f64(row.recorded) * recorded_ns;
        row.probes_ms = probes / 1e6;
        row.percent = 100.0 * (row.sampler_ms + row.collector_ms + row.probes_ms) / row.cpu_ms;
    }
    let mut text = format!(
        "A published call costs {published_ns:.1} ns, a recorded one {recorded_ns:.1} ns.\n"
    );
    for name in HOT_SPOTS {
        text += &match found.get(name) {
            Some(at) => {
                let after = Duration::from_nanos((at - began).max(0).unsigned_abs());
                format!("{name} was found after {:.1} s\n", after.as_secs_f64())
            }
            None => format!("{name} was not found\n"),
        };
    }
    for (phase, rows) in rows.chunks(rows.len() / LOADS.len()).enumerate() {
        let sum = |part: fn(&Second) -> f64| rows.iter().map(part).sum::<f64>();
        let used = sum(|it| it.sampler_ms + it.collector_ms + it.probes_ms);
        let percent = 100.0 * used / sum(|it| it.cpu_ms);
        text += &format!("load {}: monitoring took {percent:.2} %\n", LOADS[phase]);
    }
    Ok((rows, text))
}

/// Waits a second, and returns its figures as far as they are known.
fn second(now: &AtomicU64, load: f64, visits: &AtomicU64) -> Result<Second, Failure> {
    let used = || {
        Ok::<_, Failure>([
            process_cpu_time(),
            busy_time_of_threads("baler-samplers")?,
            busy_time_of_threads("baler-collector")?,
        ])
    };
    let before = used()?;
    let served = visits.load(Ordering::Relaxed);
    sleep(Duration::from_secs(1));
    let after = used()?;
    let second = now.fetch_add(1, Ordering::Relaxed);
    let [cpu_ms, sampler_ms, collector_ms] =
        [0, 1, 2].map(|it| after[it].saturating_sub(before[it]).as_secs_f64() * 1e3);
    Ok(Second {
        second,
        load,
        visits: visits.load(Ordering::Relaxed).saturating_sub(served),
        cpu_ms,
        sampler_ms,
        collector_ms,
        published: 0,
        recorded: 0,
        probes_ms: 0.0,
        percent: 0.0,
    })
}

/// Serves customers for this part of the time.
fn serve(load: f64, end: Instant, visits: &AtomicU64) {
    while Instant::now() < end {
        let begin = Instant::now();
        visit();
        visits.fetch_add(1, Ordering::Relaxed);
        if load < 1.0 {
            sleep(begin.elapsed().mul_f64(1.0 / load - 1.0));
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "customers come at their own times"
)]
fn sleep(time: Duration) {
    thread::sleep(time);
}

/// Returns by how many nanoseconds a probe makes a call longer under these patterns, while calls are
/// published.
fn calibrate(patterns: &str) -> Result<f64, Failure> {
    let writer = NullWriter::new(NullConfig::default());
    let controller = Controller::builder(Box::new(writer))
        .patterns(PatternList::parse(patterns, Dialect::Strict).0)
        .sampler(Sampler::Threads, Duration::from_secs(1))
        .start()
        .map_err(Failure::cannot("start a controller"))?;
    controller.install();
    let batch = |call: fn()| {
        let begin = Instant::now();
        (0..BATCH_CALLS).for_each(|_| call());
        to_f64(nanos(begin.elapsed())) / f64::from(BATCH_CALLS)
    };
    let differences = (0..BATCHES).map(|_| batch(hash) - batch(plain_hash));
    let median = Distribution::of(differences).quantile(0.5);
    controller.shutdown(PATIENCE);
    median.ok_or_else(|| Failure::new("nothing was measured"))
}

/// The figures of all seconds.
pub(super) fn table(rows: &[Second]) -> String {
    const COLUMNS: &[Column<Second>] = &[
        Column::number("second", |row| row.second.to_string()),
        Column::number("load", |row| format!("{:.1}", row.load)),
        Column::number("visits", |row| row.visits.to_string()),
        Column::number("CPU ms", |row| format!("{:.1}", row.cpu_ms)),
        Column::number("sampler", |row| format!("{:.2}", row.sampler_ms)),
        Column::number("collector", |row| format!("{:.2}", row.collector_ms)),
        Column::number("published", |row| row.published.to_string()),
        Column::number("recorded", |row| row.recorded.to_string()),
        Column::number("probes", |row| format!("{:.2}", row.probes_ms)),
        Column::number("%", |row| format!("{:.2}", row.percent)),
    ];
    report::table(rows, COLUMNS)
}
