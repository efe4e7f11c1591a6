//! The records of a run (calls, or the user's records), their times, and the size of their chunks.

use std::thread;
use std::time::Duration;

use baler_common::container::{ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, RecordRef, RowWriter};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use serde::{Deserialize, Serialize};

use super::{plain_row, user_records};
use crate::clock::now_ns;
use crate::harness::Failure;
use crate::statistics::to_f64;
use crate::workload::{Call, Execution, Executions, Random, Workload};

/// The number of different calls; they are repeated in other traces and at other times.
const DIFFERENT: usize = 20_000;

/// Due records are emitted together at this interval. A thread that wakes up for each record, or a
/// thousand times a second, costs more than most of the measured operations.
const BURST_NS: i64 = 5_000_000;

/// The times at which records are due and measured, in nanoseconds since the Unix epoch.
///
/// This is an open loop: records are due at fixed times, however slow the medium is, and are
/// emitted in bursts at fixed times. Latency counts from the time at which a record's burst was
/// due, even if the load was late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Schedule {
    /// When record 0 is due; it is sent before the load to open everything.
    pub(super) first_ns: i64,
    /// When the other records and the bursts begin.
    pub(super) start_ns: i64,
    /// The mean time between two records.
    pub(super) interval_ns: f64,
    /// The measured time begins ...
    pub(super) from_ns: i64,
    /// ... and ends.
    pub(super) to_ns: i64,
}

impl Schedule {
    /// Returns the latest burst that was due at this time.
    pub(super) fn burst_before(&self, now_ns: i64) -> i64 {
        now_ns - (now_ns - self.start_ns).rem_euclid(BURST_NS)
    }

    /// Returns the burst that emits a record due at this time: the first one after it.
    pub(super) fn burst_of(&self, due_ns: i64) -> i64 {
        self.burst_before(due_ns) + BURST_NS
    }

    /// Waits for the first burst after this time.
    pub(super) fn wait_for_burst_after(&self, mut now: i64) {
        let until = self.burst_of(now);
        while now < until {
            thread::park_timeout(Duration::from_nanos(until.abs_diff(now)));
            now = now_ns();
        }
    }
}

/// The records that a load repeats: the calls of a seed, or the user's records.
#[derive(Debug, Clone, Copy)]
pub(super) struct Material<'a> {
    pub(super) seed: u64,
    /// Empty for calls.
    pub(super) own: &'a [DynamicRecord],
}

impl Material<'static> {
    /// Returns the calls of this seed.
    #[cfg(test)]
    pub(super) const fn of_seed(seed: u64) -> Self {
        Self { seed, own: &[] }
    }
}

/// A call, and its times in units of the load.
#[derive(Debug, Clone, Copy)]
struct Timed {
    call: Call,
    /// It began after the end of the call this number of positions before it ...
    back: i64,
    /// ... by this share of the time to the end of the next call.
    share: f64,
}

/// Makes the records of a run: the same ones for the same material, run and schedule.
///
/// A record's timestamp is the time at which the record is due. The reader computes the latency
/// from it, whatever delayed the record.
#[derive(Debug)]
pub(super) struct Load {
    content: Content,
    times: Times,
    run: u32,
}

#[derive(Debug)]
enum Content {
    Calls(Box<Calls>),
    Own(Vec<DynamicRecord>),
}

/// A record of a load.
#[derive(Debug)]
pub(super) enum LoadRecord<'a> {
    Call(&'a Execution),
    Own(RecordRef<'a>),
}

/// When the records of a run are due.
#[derive(Debug)]
struct Times {
    schedule: Schedule,
    /// The position of a record's due time in its interval, from 0 to 1. Even times would compress
    /// too well.
    jitter: Vec<f64>,
}

/// The calls of the rig's workload, stretched in time so that they end at a constant rate and still
/// nest. A call ends when it is due.
#[derive(Debug)]
struct Calls {
    workload: Workload,
    executions: Executions,
    calls: Vec<Timed>,
}

impl Load {
    pub(super) fn new(material: Material<'_>, run: u32, schedule: Schedule) -> Self {
        let mut random = Random::new(material.seed ^ 0x7377_6565_7000);
        let content = match material.own {
            [] => Content::Calls(Box::new(Calls::new(material.seed))),
            own => Content::Own(own.to_vec()),
        };
        Self {
            content,
            times: Times {
                schedule,
                jitter: (0..DIFFERENT).map(|_| random.unit()).collect(),
            },
            run,
        }
    }

    pub(super) const fn schedule(&self) -> Schedule {
        self.times.schedule
    }

    pub(super) const fn set_schedule(&mut self, schedule: Schedule) {
        self.times.schedule = schedule;
    }

    /// Returns when the record at this position is due.
    pub(super) fn due(&self, position: u64) -> i64 {
        self.times.due(position)
    }

    /// Returns the record at this position, to emit it.
    pub(super) fn record(&mut self, position: u64) -> LoadRecord<'_> {
        match &mut self.content {
            Content::Calls(calls) => {
                let call = calls.call(position, &self.times);
                LoadRecord::Call(calls.executions.of(&call))
            }
            Content::Own(records) => {
                // A load without records of the user is one of calls.
                let index = index_of(position.cast_signed(), records.len());
                let record = &mut records[index];
                record.move_to(self.times.due(position));
                LoadRecord::Own(record.as_ref())
            }
        }
    }

    /// Writes the record at this position as a row over the contents of `row`.
    pub(super) fn write_row(&mut self, position: u64, row: &mut Vec<u8>) {
        plain_row::begin(self.run, self.due(position), row);
        if let Content::Calls(calls) = &self.content {
            let call = calls.call(position, &self.times);
            plain_row::append_call(&calls.workload.names().plain(&call), row);
        } else if let LoadRecord::Own(record) = self.record(position) {
            record.fields().write(&mut RowWriter::new(row));
        }
    }
}

impl Times {
    fn due(&self, position: u64) -> i64 {
        match position {
            0 => self.schedule.first_ns,
            position => self.end(position.cast_signed()),
        }
    }

    /// The positions before the first record are those of calls that began before the load.
    fn end(&self, position: i64) -> i64 {
        let jitter = self.jitter[index_of(position, self.jitter.len())];
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "a run has fewer than 2^53 records and nanoseconds"
        )]
        let after = ((position as f64 - 1.0 + jitter) * self.schedule.interval_ns) as i64;
        self.schedule.start_ns + after
    }
}

impl Calls {
    fn new(seed: u64) -> Self {
        let mut workload = Workload::new(seed);
        let calls: Vec<Call> = workload.by_ref().take(DIFFERENT).collect();
        let ends: Vec<i64> = calls.iter().map(|call| call.tout).collect();
        let calls = (0_i64..).zip(&calls).map(|(index, call)| {
            let ended = ends.partition_point(|end| *end <= call.tin);
            let before = ended.checked_sub(1).and_then(|last| ends.get(last));
            let share = match (before, ends.get(ended)) {
                (Some(before), Some(after)) => ratio(call.tin - before, after - before),
                _ => 0.5,
            };
            Timed {
                call: *call,
                back: index - (ended as i64 - 1),
                share,
            }
        });
        Self {
            calls: calls.collect(),
            executions: Executions::new(workload.names()),
            workload,
        }
    }

    fn call(&self, position: u64, times: &Times) -> Call {
        let timed = self.calls[index_of(position.cast_signed(), self.calls.len())];
        let mut call = timed.call;
        let cycle = position / self.calls.len() as u64;
        call.trace_id += cycle.cast_signed() << 16;
        call.tout = times.due(position);
        let before = position.cast_signed() - timed.back;
        let (before, after) = (times.end(before), times.end(before + 1));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "between two times of a run"
        )]
        let into = ((after - before) as f64 * timed.share) as i64;
        call.tin = match position {
            // It is sent before the load, whose start is not known yet.
            0 => call.tout,
            _ => (before + into).min(call.tout),
        };
        call
    }
}

/// Returns the index of the item at this position of `count` endlessly repeated values.
fn index_of(position: i64, count: usize) -> usize {
    let index = position.rem_euclid(count as i64);
    usize::try_from(index).expect("it is below the count")
}

#[expect(clippy::cast_precision_loss, reason = "differences within a workload")]
fn ratio(part: i64, whole: i64) -> f64 {
    match whole {
        0 => 0.5,
        whole => part as f64 / whole as f64,
    }
}

/// Returns the bytes of payload of a record in chunks of this number of records. A part of the load
/// at this rate is encoded to measure it.
pub(super) fn payload_per_record(
    compression: &str,
    material: Material<'_>,
    records: f64,
    rate: f64,
) -> Result<f64, Failure> {
    let cannot_encode = "encode the load";
    let compression = compression.parse::<Compression>();
    let compression = compression.map_err(Failure::cannot(cannot_encode))?;
    let serializer = NativeSerializer::new(compression);
    let mut serializer = serializer.map_err(Failure::cannot(cannot_encode))?;
    serializer.set_well_known_types(&WELL_KNOWN_TYPES);
    let start_ns = 1_700_000_000_000_000_000;
    let schedule = Schedule {
        first_ns: start_ns,
        start_ns,
        interval_ns: 1e9 / rate,
        from_ns: start_ns,
        to_ns: start_ns,
    };
    let mut load = Load::new(material, 0, schedule);
    let header = user_records::header();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1 and at most a u32"
    )]
    let records = records.round().max(1.0) as u64;
    // Enough chunks for a mean, whatever their size.
    let chunks = (4_096 / records).clamp(2, 256);
    let (mut builder, mut bytes) = (BatchBuilder::new(), 0);
    for chunk in 0..chunks {
        for position in 1..=records {
            let pushed = match load.record(chunk * records + position) {
                LoadRecord::Call(record) => builder.push(record),
                LoadRecord::Own(record) => builder.push_ref(record),
            };
            pushed.map_err(Failure::cannot(cannot_encode))?;
        }
        let mut out = Vec::new();
        let written = serializer.serialize(&builder.take(), &header, &mut out);
        written.map_err(Failure::cannot(cannot_encode))?;
        bytes += out.len() as u64;
    }
    Ok(to_f64(bytes) / to_f64(chunks * records))
}

#[cfg(test)]
mod tests;
