//! Measuring all cases, interleaved, and writing down every run as it ends.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::uri::Uri;

use super::args::{Plan, partitions};
use super::case::Case;
use super::cell::{Cell, compare};
use super::measure::Measuring;
use super::program::{Order, Program};
use super::readers::Readers;
use super::run_log::{FinishedRun, RunLog};
use super::sample::Sample;
use crate::child::Child;
use crate::failure::Failure;
use crate::lines::{parse_line, to_line};
use crate::schedule::interleaved;

/// How long the embedded cluster may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The embedded cluster answers a fetch that found nothing when its time is over, not when a message
/// comes: after half a second by default.
const MOCK_FETCH: &str = "fetch.wait.max.ms=2";

/// How far a sweep is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Finished runs, including those before an interruption.
    pub done: usize,
    /// All runs.
    pub of: usize,
    /// How long the others will take; `None` until a run has ended.
    pub left: Option<Duration>,
}

/// Is called many times a second with the state of the sweep, and returns whether to go on.
pub type Progress<'a> = dyn FnMut(Standing) -> bool + 'a;

/// The results of the runs of a case.
#[derive(Debug, Clone, Default)]
struct Runs {
    samples: Vec<Sample>,
    /// Why there are no more.
    failure: Option<String>,
}

impl Runs {
    fn add(&mut self, result: Result<Sample, String>) {
        match result {
            Ok(sample) => self.samples.push(sample),
            Err(message) => self.failure = Some(message),
        }
    }
}

/// Measures everything that an interrupted sweep with this plan has not measured.
///
/// A case that fails has the reason in its cell, and the others go on.
///
/// # Errors
///
/// The medium cannot be reached, `progress` said to stop, or runs cannot be written.
pub(super) fn run(
    plan: &Plan,
    folder: &Path,
    program: &dyn Program,
    progress: &mut Progress<'_>,
) -> Result<Vec<Cell>, Failure> {
    let (mut log, finished) = RunLog::open(folder, &fingerprint(plan)?)?;
    let order = interleaved(plan.cases.len(), plan.repetitions, plan.seed);
    let mut all = vec![Runs::default(); plan.cases.len()];
    let mut waiting: Vec<(usize, usize)> = order.into_iter().enumerate().collect();
    waiting.retain(|(number, _)| finished.iter().all(|run| run.number != *number));
    let done_before = finished.len();
    for run in finished {
        if let Some(runs) = all.get_mut(run.case) {
            runs.add(run.result);
        }
    }
    let mut medium: Option<Medium> = None;
    let started = Instant::now();
    let base = run_base();
    for (over, (number, index)) in waiting.iter().copied().enumerate() {
        let left = waiting.len() - over;
        let standing = Standing {
            done: done_before + over,
            of: done_before + waiting.len(),
            left: time_left(started.elapsed(), over, left),
        };
        let mut go_on = || progress(standing);
        let (Some(case), Some(runs)) = (plan.cases.get(index), all.get_mut(index)) else {
            continue;
        };
        if runs.failure.is_some() {
            continue;
        }
        let medium = match &mut medium {
            Some(medium) => medium,
            none => none.insert(Medium::start(plan, program)?),
        };
        let run = u32::try_from((base + number) & 0xf_ffff).unwrap_or(0);
        let result = medium.measure(plan, program, (case, run), &mut go_on);
        if !go_on() {
            return Err(Failure::new("stopped before everything was measured"));
        }
        if result.is_err() {
            // The next run gets other readers, whatever is wrong with these.
            medium.readers = None;
            // Without a broker every other run would wait in vain, too.
            program.reach(&medium.writer_uri)?;
        }
        let result = result.map_err(|failure| failure.to_string());
        log.add(&FinishedRun {
            number,
            case: index,
            result: result.clone(),
        })?;
        runs.add(result);
    }
    log.finish()?;
    let mut cells: Vec<Cell> = plan
        .cases
        .iter()
        .zip(all)
        .map(|(case, runs)| Cell::new(case, &runs.samples, runs.failure))
        .collect();
    compare(&mut cells);
    Ok(cells)
}

fn time_left(elapsed: Duration, over: usize, left: usize) -> Option<Duration> {
    let over = u32::try_from(over).ok().filter(|over| *over > 0)?;
    Some((elapsed / over).saturating_mul(u32::try_from(left).unwrap_or(u32::MAX)))
}

/// The plan as text, without secrets.
fn fingerprint(plan: &Plan) -> Result<String, Failure> {
    let mut shown = plan.clone();
    shown.to = without_secrets(&plan.to);
    shown.from = plan.from.as_deref().map(without_secrets);
    // A broker that was restarted is another process, and the same sweep.
    shown.broker_pid = plan.broker_pid.map(|_| 0);
    to_line(&shown)
}

/// A URI as it may be shown.
pub(super) fn without_secrets(uri: &str) -> String {
    Uri::parse(uri).map_or_else(|_| "a URI".to_owned(), |uri| uri.to_string())
}

/// Where the numbers of this sweep's runs begin. Another sweep may have left chunks in a queue, so its
/// runs should have other numbers.
fn run_base() -> usize {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    // A run's number has 20 bits; a sweep has some hundreds of runs.
    usize::try_from(seconds % 0x3ff).unwrap_or(0) << 10
}

/// The medium, and the processes around it.
struct Medium {
    scheme: String,
    writer_uri: String,
    reader_uri: String,
    /// Ends with this value.
    cluster: Option<Child>,
    partitions: Option<u16>,
    readers: Option<Readers>,
}

impl Medium {
    fn start(plan: &Plan, program: &dyn Program) -> Result<Self, Failure> {
        let uri = Uri::parse(&plan.to).map_err(Failure::cannot("use the URI"))?;
        let scheme = uri.scheme().to_owned();
        let mut medium = Self {
            writer_uri: plan.to.clone(),
            reader_uri: plan.from.clone().unwrap_or_else(|| plan.to.clone()),
            cluster: None,
            partitions: (scheme == "kafka").then_some(1),
            readers: None,
            scheme,
        };
        if medium.scheme == "kafka+mock" {
            let topic = uri.path().trim_matches('/').to_owned();
            let partitions = partitions(&plan.cases);
            let order = Order::Cluster {
                topic: topic.clone(),
                partitions,
            };
            let cluster = order.start(program)?;
            let line = cluster.line(Instant::now() + PATIENCE);
            let address: String = parse_line(&line.map_err(Failure::cannot("start a cluster"))?)?;
            let (_, settings) = plan.to.split_once('?').unwrap_or_default();
            medium.writer_uri = with(&format!("kafka://{address}/{topic}"), settings);
            medium.reader_uri = with(&medium.writer_uri, MOCK_FETCH);
            medium.partitions = Some(partitions);
            medium.cluster = Some(cluster);
        }
        Ok(medium)
    }

    /// Measures a case once, with as many readers as it has consumers.
    fn measure(
        &mut self,
        plan: &Plan,
        program: &dyn Program,
        (case, run): (&Case, u32),
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Sample, Failure> {
        let consumers = case.consumers;
        let open = self.readers.take();
        let mut readers = match open.filter(|open| open.count() == usize::from(consumers)) {
            Some(readers) => readers,
            None => {
                let lanes = self.partitions.filter(|_| consumers > 0);
                Readers::start(program, &self.reader_uri, consumers, lanes, go_on)?
            }
        };
        let measuring = Measuring {
            program,
            broker_pid: plan
                .broker_pid
                .or_else(|| self.cluster.as_ref().map(Child::pid)),
            seed: plan.seed,
            warm_up_seconds: plan.warm_up_seconds,
            seconds: plan.seconds,
        };
        let writer_uri = self.writer_uri(consumers, readers.listens_on());
        let sample = measuring.run((case, run), writer_uri, &mut readers, go_on);
        self.readers = Some(readers);
        sample
    }

    /// Where to write: for TCP to the port on which the receiver listens.
    fn writer_uri(&self, consumers: u16, listens_on: Option<&str>) -> String {
        match listens_on {
            Some(address) if self.scheme == "tcp" => {
                let (_, settings) = self.writer_uri.split_once('?').unwrap_or_default();
                with(&format!("tcp://{address}"), settings)
            }
            // Otherwise all chunks of a producer are in one partition.
            _ if consumers > 1 && self.scheme == "kafka+mock" => {
                with(&self.writer_uri, "partition_by=round_robin")
            }
            _ => self.writer_uri.clone(),
        }
    }
}

/// A URI with another setting; one that it has already stays.
fn with(uri: &str, setting: &str) -> String {
    let name = setting.split('=').next().unwrap_or_default();
    if setting.is_empty() || uri.contains(&format!("{name}=")) {
        return uri.to_owned();
    }
    let joint = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{joint}{setting}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_added_once() {
        assert_eq!(with("kafka://a/t", ""), "kafka://a/t");
        assert_eq!(with("kafka://a/t", "x=1"), "kafka://a/t?x=1");
        assert_eq!(with("kafka://a/t?y=2", "x=1"), "kafka://a/t?y=2&x=1");
        assert_eq!(with("kafka://a/t?x=2", "x=1"), "kafka://a/t?x=2");
    }

    #[test]
    fn the_time_left_follows_from_the_time_taken() {
        let second = Duration::from_secs(1);
        assert_eq!(time_left(second, 0, 10), None);
        assert_eq!(time_left(second * 6, 3, 10), Some(second * 20));
    }
}
