//! One run: a demo under an agent, what the agent shows, and where the time went.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::mutex::lock;
use baler_common::record::sampling::{BackToBack, Midpoint, ThreadSampleRecord};
use baler_common::record::{Record as _, Table};
use baler_common::transport::Chunk;
use baler_connector_kieker::container;
use baler_monitoring::{Controller, Overflow, Sampler};
use baler_rig::clock::nanos;
use baler_rig::statistics::{Distribution, to_f64};
use baler_rig::usage::busy_time_of_threads;
use serde::{Deserialize, Serialize};

use super::demo::{CALLS, Demo, aggregated, method, operation, plain, sampled};
use crate::Failure;
use crate::recorded::{Time, times_of, watched};

/// The time limit for delivering the queues.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most entries of an execution path: the article has a limit, too.
const LONGEST_PATH: usize = 20;

/// The batches that calibrate a probe, and their calls.
const BATCHES: usize = 100;
const BATCH_CALLS: u32 = 1_000;

/// What observes the calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Agent {
    Plain,
    Operation,
    Aggregated,
    /// The sampler of threads, at fixed intervals.
    Fixed,
    Jittered,
}

impl Agent {
    /// Its name, as in JSON.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Operation => "operation",
            Self::Aggregated => "aggregated",
            Self::Fixed => "fixed",
            Self::Jittered => "jittered",
        }
    }

    /// Its ways to get times; the article's one is the first.
    pub(super) const fn estimators(self) -> &'static [&'static str] {
        match self {
            Self::Plain => &[],
            Self::Operation | Self::Aggregated => &["probes"],
            Self::Fixed | Self::Jittered => &["back-to-back", "midpoint"],
        }
    }
}

/// The order to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Case {
    /// The number of calls of the mass demo; `None`: the mixed demo.
    pub(super) mass: Option<u64>,
    pub(super) agent: Agent,
    /// The period of the sampler.
    pub(super) interval_ms: Option<u32>,
}

impl Case {
    fn calls(&self) -> u64 {
        self.mass.unwrap_or(CALLS.len() as u64)
    }
}

/// An agent's time of a method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Estimate {
    pub(super) estimator: String,
    pub(super) method: String,
    pub(super) ns: u64,
    /// The number of calls, and their shortest and longest time, if the agent knows.
    pub(super) calls: Option<(u64, u64, u64)>,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) demo_ms: f64,
    pub(super) balance: Balance,
    /// What the probe adds to a call.
    pub(super) probe_ns: f64,
    /// The true time of each method.
    pub(super) truth_ns: BTreeMap<String, f64>,
    pub(super) estimates: Vec<Estimate>,
    pub(super) path: Vec<String>,
    pub(super) is_path_complete: bool,
    /// Points in time that the sampler missed.
    pub(super) missed: u64,
}

impl Measured {
    pub(super) fn estimate(&self, estimator: &str, method: &str) -> Option<&Estimate> {
        let mut all = self.estimates.iter();
        all.find(|it| it.estimator == estimator && it.method == method)
    }
}

/// The parts of a run's wall time in milliseconds, and the time itself, to which they add up.
///
/// `setup` and `report` start and end the agent. `work` is the true time of the calls; `probes` is the
/// calibrated time of a probe, for each call. `sampler` and `collector` are CPU times of their
/// threads during the calls. The `rest` is negative if these ran beside the calls, on another core.
pub(super) type Balance = BTreeMap<String, f64>;

/// Completes a balance by wall time and rest.
pub(super) fn closed<const N: usize>(wall: f64, parts: [(&str, f64); N]) -> Balance {
    let rest = wall - parts.iter().map(|(_, time)| time).sum::<f64>();
    let ends = [("wall", wall), ("rest", rest)];
    let all = parts.into_iter().chain(ends);
    all.map(|(name, time)| (name.to_owned(), time)).collect()
}

pub(super) fn measure(case: &Case) -> Result<Measured, Failure> {
    let demo = match case.agent {
        Agent::Plain => &plain::DEMO,
        Agent::Operation => &operation::DEMO,
        Agent::Aggregated => &aggregated::DEMO,
        Agent::Fixed | Agent::Jittered => &sampled::DEMO,
    };
    let recorded = Recording::default();
    let begin = Instant::now();
    let controller = start(case, &recorded)?;
    let setup = begin.elapsed();
    let (work_ns, probe_ns) = calibrate(demo);
    if let Some(controller) = &controller {
        let flushed = controller.flush(PATIENCE);
        flushed.map_err(Failure::cannot("deliver the records of the calibration"))?;
        take(&recorded)?;
    }
    let before = background()?;
    let begin = Instant::now();
    let calls = match case.mass {
        None => (demo.mixed)(),
        Some(calls) => {
            (demo.mass)(calls);
            Vec::new()
        }
    };
    let demo_time = begin.elapsed();
    let after = background()?;
    let begin = Instant::now();
    let mut missed = 0;
    if let Some(controller) = controller {
        let report = controller.shutdown(PATIENCE);
        if !report.adds_up() || report.dropped().total() > 0 {
            return Err(Failure::new(format!("records are missing: {report}")));
        }
        missed = controller.sampler_stats().missed;
    }
    let recorded = take(&recorded)?;
    let (estimates, path) = (recorded.estimates(), recorded.path());
    let report = begin.elapsed();

    let mut truth_ns: BTreeMap<String, f64> = BTreeMap::new();
    for (ms, ns) in calls {
        *truth_ns.entry(method(ms)).or_default() += to_f64(ns);
    }
    if let Some(calls) = case.mass {
        truth_ns.insert(method(0), work_ns * to_f64(calls));
    }
    // The threads of the controller ran at both times, so they have counted on.
    let parts = [
        ("setup", ms(setup)),
        ("work", truth_ns.values().sum::<f64>() / 1e6),
        ("probes", probe_ns * to_f64(case.calls()) / 1e6),
        ("sampler", ms(after[0] - before[0])),
        ("collector", ms(after[1] - before[1])),
        ("report", ms(report)),
    ];
    Ok(Measured {
        demo_ms: ms(demo_time),
        balance: closed(ms(setup + demo_time + report), parts),
        probe_ns,
        truth_ns,
        estimates,
        is_path_complete: path.len() <= LONGEST_PATH,
        path: path.into_iter().take(LONGEST_PATH).collect(),
        missed,
    })
}

/// Starts an agent; `None` if nothing observes.
fn start(case: &Case, recorded: &Recording) -> Result<Option<Controller>, Failure> {
    let recorded = Arc::clone(recorded);
    let writer = watched(move |chunk| {
        let mut recorded = lock(&recorded);
        if let Err(failure) = recorded.add(&chunk) {
            recorded.failure = Some(failure);
        }
    });
    let builder = Controller::builder(writer).application("sampling");
    let builder = builder.overflow(Overflow::Block).metadata_record(false);
    let period = Duration::from_millis(case.interval_ms.map_or(0, u64::from));
    let builder = match case.agent {
        Agent::Plain => return Ok(None),
        Agent::Operation | Agent::Aggregated => builder,
        Agent::Fixed => builder.sampler(Sampler::Threads, period),
        Agent::Jittered => builder.jittered_sampler(Sampler::Threads, period),
    };
    let controller = builder.start();
    let controller = controller.map_err(Failure::cannot("start a controller"))?;
    if case.interval_ms.is_some() {
        let only_sampled = controller.deactivate("*");
        let only_sampled = only_sampled.and_then(|()| controller.activate("%THREADS"));
        only_sampled.map_err(Failure::cannot("deactivate the probes"))?;
    }
    controller.install();
    Ok(Some(controller))
}

/// Returns the nanoseconds of `method0ms` without a probe, and by how much the probe makes it longer.
fn calibrate(demo: &Demo) -> (f64, f64) {
    let batch = |method: fn()| {
        let begin = Instant::now();
        for _ in 0..BATCH_CALLS {
            method();
        }
        to_f64(nanos(begin.elapsed())) / f64::from(BATCH_CALLS)
    };
    let pairs = (0..BATCHES).map(|_| (batch(plain::DEMO.method_0ms), batch(demo.method_0ms)));
    let (plain, probed): (Vec<f64>, Vec<f64>) = pairs.unzip();
    let [plain, probed] = [plain, probed].map(|batches| {
        let median = Distribution::of(batches).quantile(0.5);
        median.expect("there are some")
    });
    (plain, probed - plain)
}

/// The CPU time of the sampler and of the collector so far.
fn background() -> Result<[Duration; 2], Failure> {
    Ok([
        busy_time_of_threads("baler-samplers")?,
        busy_time_of_threads("baler-collector")?,
    ])
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

type Recording = Arc<Mutex<Recorded>>;

fn take(recorded: &Recording) -> Result<Recorded, Failure> {
    let recorded = mem::take(&mut *lock(recorded));
    match recorded.failure {
        None => Ok(recorded),
        Some(failure) => Err(failure),
    }
}

/// What is left of records: there can be too many to keep all.
#[derive(Debug)]
struct Recorded {
    decoder: ChunkDecoder,
    times: Vec<(String, Time)>,
    /// The first single calls.
    path: Vec<String>,
    samples: Vec<ThreadSampleRecord>,
    /// The reason why a chunk cannot be read.
    failure: Option<Failure>,
}

impl Default for Recorded {
    fn default() -> Self {
        Self {
            decoder: container::decoder(),
            times: Vec::new(),
            path: Vec::new(),
            samples: Vec::new(),
            failure: None,
        }
    }
}

impl Recorded {
    fn add(&mut self, chunk: &Chunk) -> Result<(), Failure> {
        let decoded = self.decoder.decode(&chunk.bytes);
        let batch = decoded.map_err(Failure::cannot("decode a chunk"))?.batch;
        let is_sample = |table: &Table| table.schema() == ThreadSampleRecord::schema();
        if batch.tables().iter().all(is_sample) {
            for sample in batch.read() {
                self.samples
                    .push(sample.map_err(Failure::cannot("read a sample"))?);
            }
            return Ok(());
        }
        for table in batch.tables() {
            let is_call = table.column("tin").is_some();
            let times = times_of(table, &batch);
            let times = times.ok_or_else(|| Failure::new("a record has no time of a call"))?;
            for (operation, time) in times {
                self.add_time(operation, time);
                if is_call && self.path.len() <= LONGEST_PATH {
                    self.path.push(operation.to_owned());
                }
            }
        }
        Ok(())
    }

    fn add_time(&mut self, operation: &str, time: Time) {
        match self.times.iter_mut().find(|(known, _)| known == operation) {
            None => self.times.push((operation.to_owned(), time)),
            Some((_, sum)) => {
                *sum = Time {
                    calls: sum.calls + time.calls,
                    ns: sum.ns + time.ns,
                    min_ns: sum.min_ns.min(time.min_ns),
                    max_ns: sum.max_ns.max(time.max_ns),
                };
            }
        }
    }

    fn estimates(&self) -> Vec<Estimate> {
        let estimate = |estimator: &str, method: &str, ns, calls| Estimate {
            estimator: estimator.to_owned(),
            method: method.to_owned(),
            ns,
            calls,
        };
        let probes = self.times.iter().map(|(method, time)| {
            let calls = (time.calls, time.min_ns, time.max_ns);
            estimate("probes", method, time.ns, Some(calls))
        });
        let article = BackToBack::of(&self.samples).times.into_iter();
        let article = article.map(|(method, ns)| estimate("back-to-back", method, ns, None));
        let midpoint = Midpoint::of(&self.samples).times.into_iter();
        let midpoint =
            midpoint.map(|(method, time)| estimate("midpoint", method, time.nanoseconds, None));
        probes.chain(article).chain(midpoint).collect()
    }

    /// The calls one after the other, as far as they are known.
    fn path(self) -> Vec<String> {
        if self.samples.is_empty() {
            return self.path;
        }
        let path = BackToBack::of(&self.samples).path.into_iter();
        path.map(|(caller, operation)| match caller {
            Some(caller) => format!("{caller} > {operation}"),
            None => operation.to_owned(),
        })
        .collect()
    }
}

#[cfg(test)]
mod tests;
