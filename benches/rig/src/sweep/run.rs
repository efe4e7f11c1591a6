//! Measuring all cases, interleaved, and keeping what is measured.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use baler_common::transport::uri::Uri;

use super::args::{Plan, partitions};
use super::cell::{Cell, compare};
use super::drift::drift;
use super::further::further;
use super::keep::{Keeper, Kept};
use super::measure::Measuring;
use super::order::Order;
use super::program::Program;
use super::readers::Readers;
use super::sample::Sample;
use crate::child::Child;
use crate::failure::Failure;
use crate::lines::{line, understand};
use crate::schedule::interleaved;
use crate::statistics::widening;

/// How long the embedded cluster may take to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// The embedded cluster answers a fetch that found nothing when its time is over, not when something
/// comes: half a second by default, in which nobody would do anything.
const MOCK_FETCH: &str = "fetch.wait.max.ms=2";

/// Where a sweep stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Standing {
    /// Runs that are over, those of an interrupted sweep before included.
    pub done: usize,
    /// All runs.
    pub of: usize,
    /// How long the others will take; nothing until one is over.
    pub left: Option<Duration>,
}

/// Is told where the sweep stands, many times a second, and says whether to go on.
pub type Progress<'a> = dyn FnMut(Standing) -> bool + 'a;

/// What runs need around them.
struct Medium {
    writer_uri: String,
    reader_uri: String,
    scheme: String,
    /// Ends with this value.
    _cluster: Option<Child>,
    broker_pid: Option<u32>,
    partitions: Option<u16>,
    /// So many bytes of a partition it keeps, whether they were read or not; nothing: it keeps what
    /// was not read.
    retained_bytes: Option<u64>,
}

/// What was found.
pub(super) struct Found {
    /// In the order of the plan.
    pub(super) cells: Vec<Cell>,
    /// How much the CPU times of runs resemble those of the runs before ([`super::drift`]).
    pub(super) autocorrelation: f64,
}

/// Measures everything that is not kept already.
///
/// A case that fails is told as such in its cell, and the others go on.
///
/// # Errors
///
/// The medium cannot be reached, `progress` said to stop, or runs cannot be kept.
pub(super) fn run(
    plan: &Plan,
    folder: &Path,
    program: &dyn Program,
    progress: &mut Progress<'_>,
) -> Result<Found, Failure> {
    let fingerprint = fingerprint(plan)?;
    let (mut keeper, kept) = Keeper::open(folder, &fingerprint)?;
    let planned = interleaved(plan.cases.len(), plan.repetitions, plan.seed);
    let mut found = vec![Runs::default(); plan.cases.len()];
    let mut waiting: BTreeMap<usize, usize> = planned.into_iter().enumerate().collect();
    let mut next_number = waiting.len();
    let before = kept.len();
    for run in kept {
        waiting.remove(&run.number);
        next_number = next_number.max(run.number + 1);
        take(&mut found, run);
    }
    let mut medium: Option<Medium> = None;
    let mut readers: Option<Readers> = None;
    let started = Instant::now();
    let mut over = 0_usize;
    let base = run_base();
    loop {
        let Some((number, index)) = waiting.pop_first() else {
            let again = further(plan, &found, next_number);
            if again.is_empty() {
                break;
            }
            waiting.extend((next_number..).zip(again));
            next_number += waiting.len();
            continue;
        };
        let to_come = waiting.len() + 1;
        let standing = Standing {
            done: before + over,
            of: before + over + to_come,
            left: left(started.elapsed(), over, to_come),
        };
        let mut go_on = || progress(standing);
        over += 1;
        if found.get(index).is_some_and(|runs| runs.failure.is_some()) {
            continue;
        }
        let medium = match &mut medium {
            Some(medium) => medium,
            none => none.insert(Medium::start(plan, program)?),
        };
        let result = once(
            plan,
            medium,
            program,
            &mut readers,
            (index, base.wrapping_add(number)),
            &mut go_on,
        );
        if !go_on() {
            return Err(Failure::new("stopped before everything was measured"));
        }
        if result.is_err() {
            // Whatever is wrong with them, the next run gets others.
            readers = None;
            // Without a broker every other run would wait as long for nothing.
            program.reach(&medium.writer_uri)?;
        }
        let run = Kept {
            number,
            case: index,
            result: result.map_err(|failure| failure.to_string()),
        };
        keeper.add(&run)?;
        take(&mut found, run);
    }
    keeper.finish()?;
    let autocorrelation = drift(plan, &found);
    let mut cells: Vec<Cell> = plan
        .cases
        .iter()
        .zip(found)
        .map(|(case, runs)| Cell::new(case, &runs.samples, runs.failure))
        .collect();
    let widening = widening(autocorrelation);
    cells.iter_mut().for_each(|cell| cell.widen_cpu(widening));
    compare(&mut cells);
    Ok(Found {
        cells,
        autocorrelation,
    })
}

/// What the runs of a case told.
#[derive(Debug, Clone, Default)]
pub(super) struct Runs {
    pub(super) samples: Vec<Sample>,
    /// What was wrong with one of them: it is the last.
    pub(super) failure: Option<String>,
}

fn take(found: &mut [Runs], run: Kept) {
    if let Some(runs) = found.get_mut(run.case) {
        match run.result {
            Ok(sample) => runs.samples.push(sample),
            Err(message) => runs.failure = Some(message),
        }
    }
}

fn left(elapsed: Duration, over: usize, to_come: usize) -> Option<Duration> {
    let over = u32::try_from(over).ok().filter(|over| *over > 0)?;
    Some((elapsed / over).saturating_mul(u32::try_from(to_come).unwrap_or(u32::MAX)))
}

/// What tells this sweep from others, without secrets.
fn fingerprint(plan: &Plan) -> Result<String, Failure> {
    let mut shown = plan.clone();
    shown.to = without_secrets(&plan.to);
    shown.from = plan.from.as_deref().map(without_secrets);
    // A broker that was started anew is another process, and the same sweep.
    shown.broker_pid = plan.broker_pid.map(|_| 0);
    line(&shown)
}

/// A URI as it may be shown.
pub(super) fn without_secrets(uri: &str) -> String {
    Uri::parse(uri).map_or_else(|_| "a URI".to_owned(), |uri| uri.to_string())
}

/// Runs of another sweep, which may have left something in a queue, have other numbers.
fn run_base() -> usize {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    // 20 bits are for runs; a sweep has some hundreds.
    usize::try_from(seconds % 0x3ff).unwrap_or(0) << 10
}

fn once(
    plan: &Plan,
    medium: &Medium,
    program: &dyn Program,
    readers: &mut Option<Readers>,
    (index, run): (usize, usize),
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Sample, Failure> {
    let case = plan
        .cases
        .get(index)
        .ok_or_else(|| Failure::new("there is no such case"))?;
    let consumers = usize::from(case.consumers);
    if readers
        .as_ref()
        .is_none_or(|open| open.count() != consumers)
    {
        // Those before leave the group first.
        *readers = None;
        *readers = Some(medium.readers(program, case.consumers, go_on)?);
    }
    let Some(readers) = readers else {
        return Err(Failure::new("there are no readers"));
    };
    let measuring = Measuring {
        program,
        writer_uri: medium.writer_uri(case.consumers, readers.listens_on()),
        broker_pid: medium.broker_pid,
        seed: plan.seed,
        warm_up_seconds: plan.warm_up_seconds,
        seconds: plan.seconds,
        burst_seconds: plan.burst_seconds,
        retained_bytes: medium.retained_bytes,
    };
    let run = u32::try_from(run & 0xf_ffff).unwrap_or(0);
    measuring.run(case, run, readers, go_on)
}

impl Medium {
    fn start(plan: &Plan, program: &dyn Program) -> Result<Self, Failure> {
        let wrong = Failure::cannot("use the URI");
        let uri = Uri::parse(&plan.to).map_err(&wrong)?;
        let scheme = uri.scheme().to_owned();
        let most = partitions(&plan.cases);
        let reader_uri = plan.from.clone().unwrap_or_else(|| plan.to.clone());
        let mut medium = Self {
            writer_uri: plan.to.clone(),
            reader_uri,
            scheme: scheme.clone(),
            _cluster: None,
            broker_pid: plan.broker_pid,
            partitions: None,
            retained_bytes: None,
        };
        match &*scheme {
            "kafka+mock" => {
                let topic = uri.path().trim_matches('/').to_owned();
                let (_, settings) = plan.to.split_once('?').unwrap_or_default();
                let cluster = Order::Cluster {
                    topic: topic.clone(),
                    partitions: most,
                };
                let cluster = cluster.start(program)?;
                let line = cluster.line(Instant::now() + PATIENCE);
                let (address, retained_bytes): (String, u64) =
                    understand(&line.map_err(Failure::cannot("start a cluster"))?)?;
                medium.writer_uri = with(&format!("kafka://{address}/{topic}"), settings);
                medium.reader_uri = with(&medium.writer_uri, MOCK_FETCH);
                medium.broker_pid.get_or_insert_with(|| cluster.pid());
                medium.partitions = Some(most);
                medium.retained_bytes = Some(retained_bytes);
                medium._cluster = Some(cluster);
            }
            "kafka" => medium.partitions = Some(1),
            _ => {}
        }
        Ok(medium)
    }

    fn readers(
        &self,
        program: &dyn Program,
        consumers: u16,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Readers, Failure> {
        let lanes = self.partitions.filter(|_| consumers > 0);
        Readers::start(program, &self.reader_uri, consumers, lanes, go_on)
    }

    /// Where to write: for TCP where the receiver listens, whatever port it got.
    fn writer_uri(&self, consumers: u16, listens_on: Option<&str>) -> String {
        match listens_on {
            Some(address) if self.scheme == "tcp" => {
                let (_, settings) = self.writer_uri.split_once('?').unwrap_or_default();
                with(&format!("tcp://{address}"), settings)
            }
            // All chunks of a producer are in one partition otherwise.
            _ if consumers > 1 && self.scheme == "kafka+mock" => {
                with(&self.writer_uri, "partition_by=round_robin")
            }
            _ => self.writer_uri.clone(),
        }
    }
}

/// A URI with more settings; those it has already stay.
fn with(uri: &str, settings: &str) -> String {
    let name = settings.split('=').next().unwrap_or_default();
    if settings.is_empty() || uri.contains(&format!("{name}=")) {
        return uri.to_owned();
    }
    let joint = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{joint}{settings}")
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
        assert_eq!(left(second, 0, 10), None);
        assert_eq!(left(second * 6, 3, 10), Some(second * 20));
    }
}
