//! One run: a process that calls one version of a function, or two in turns, and what its probes
//! recorded.

use std::hint::black_box;
use std::time::{Duration, Instant};

use baler_common::transport::Chunk;
use baler_connector_kieker::container;
use baler_monitoring::{Controller, Overflow};
use baler_rig::statistics::to_f64;
use serde::{Deserialize, Serialize};

use super::kind::{Kind, VERSIONS, Worker, find};
use super::trimmed::count;
use crate::Failure;
use crate::recorded::{Time, WrittenChunks, times_of};

/// The time limit for delivering the queues.
const PATIENCE: Duration = Duration::from_secs(60);

/// The part of the calls that warm up, before the others.
const WARM_UP: usize = 10;

/// The order to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) kind: String,
    /// The steps of work of each version: the base version and the changed one in turns, or one
    /// version alone.
    pub(super) steps: Vec<u64>,
    /// How many calls of one version follow each other.
    pub(super) batch_calls: usize,
    /// The number of measured batches of each version.
    pub(super) batches: usize,
}

/// The result of a run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Measured {
    /// For each version the mean time of a call in each batch, in nanoseconds.
    pub(super) batches_ns: Vec<Vec<f64>>,
    /// The number of calls for which a batch stands.
    pub(super) batch_calls: f64,
}

/// Calls as ordered. If the kind has records, they decide, and not the clock of the loop.
pub(super) fn measure(run: &Run) -> Result<Measured, Failure> {
    let kind = find(&run.kind)?;
    let Some(settings) = kind.settings else {
        call(kind, run, run.batches / WARM_UP);
        return Ok(Measured {
            batches_ns: call(kind, run, run.batches),
            batch_calls: count(run.batch_calls),
        });
    };
    let written = WrittenChunks::default();
    let builder = Controller::builder(written.writer());
    let builder = builder.overflow(Overflow::Block).metadata_record(false);
    let controller = settings(builder.application("detect")).start();
    let controller = controller.map_err(Failure::cannot("start a controller"))?;
    controller.install();
    call(kind, run, run.batches / WARM_UP);
    let flushed = controller.flush(PATIENCE);
    flushed.map_err(Failure::cannot("deliver the records of the warm-up"))?;
    written.take();
    call(kind, run, run.batches);
    let report = controller.shutdown(PATIENCE);
    if !report.adds_up() || report.dropped().total() > 0 {
        return Err(Failure::new(format!("records are missing: {report}")));
    }
    recorded(&written.take(), run)
}

/// Calls the versions in turns; returns what the clock of the loop shows. Every second turn is in
/// reverse order, so that a machine that gets slower or faster favours no version.
fn call(kind: &Kind, run: &Run, batches: usize) -> Vec<Vec<f64>> {
    let versions: Vec<_> = kind.versions.iter().zip(&run.steps).enumerate().collect();
    let mut batches_ns = vec![Vec::new(); versions.len()];
    let mut batch = |(number, (version, steps)): &(usize, (&Worker, &u64))| {
        let begin = Instant::now();
        for _ in 0..run.batch_calls {
            black_box(version(black_box(**steps)));
        }
        let seconds = begin.elapsed().as_secs_f64();
        batches_ns[*number].push(seconds * 1e9 / count(run.batch_calls));
    };
    for turn in 0..batches {
        match turn % 2 {
            0 => versions.iter().for_each(&mut batch),
            _ => versions.iter().rev().for_each(&mut batch),
        }
    }
    batches_ns
}

/// The batches of the records in these chunks.
fn recorded(chunks: &[Chunk], run: &Run) -> Result<Measured, Failure> {
    let mut times = vec![Vec::new(); run.steps.len()];
    let mut decoder = container::decoder();
    for chunk in chunks {
        let decoded = decoder.decode(&chunk.bytes);
        let batch = decoded.map_err(Failure::cannot("decode a chunk"))?.batch;
        for table in batch.tables() {
            let of_table = times_of(table, &batch).ok_or_else(|| {
                let name = table.schema().name();
                Failure::new(format!("{name} is no record of the time of an operation"))
            })?;
            for (operation, time) in of_table {
                let version = VERSIONS.iter().position(|version| *version == operation);
                let version = version.ok_or_else(|| {
                    Failure::new(format!(
                        "there is a record of another operation: {operation}"
                    ))
                })?;
                times[version].push(time);
            }
        }
    }
    let records = times
        .iter()
        .map(Vec::len)
        .min()
        .expect("a step runs a version");
    let calls = run.batches * run.batch_calls;
    // A batch has the records of as many calls as ordered, or of a few more.
    let size = (records * run.batch_calls).div_ceil(calls).max(1);
    Ok(Measured {
        batches_ns: times.iter().map(|times| means(times, size)).collect(),
        batch_calls: count(size * calls) / count(records.max(1)),
    })
}

/// Returns the mean time of a call in each group of records; incomplete groups do not count.
fn means(times: &[Time], size: usize) -> Vec<f64> {
    let groups = times.chunks_exact(size).map(|group| {
        let ns = to_f64(group.iter().map(|time| time.ns).sum());
        ns / to_f64(group.iter().map(|time| time.calls).sum())
    });
    groups.collect()
}

#[cfg(test)]
mod tests;
