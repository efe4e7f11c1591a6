//! The records of a run, when each is due, and the size of their chunks.

use std::thread;
use std::time::Duration;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::BatchBuilder;
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use serde::{Deserialize, Serialize};

use crate::clock::now_ns;
use crate::harness::Failure;
use crate::statistics::to_f64;
use crate::workload::{Call, Execution, Executions, FIRST_TRACE_ID, PlainCall, Random, Workload};

/// How many different calls there are; they are repeated in other traces and at other times.
const DIFFERENT: usize = 20_000;

/// A trace id holds the number of its run above this number of bits.
const RUN_BITS: u32 = 40;

/// Due records are emitted once in this time. A thread that wakes up for each record, or a thousand
/// times a second, costs more than most of the measured operations.
const BURST_NS: i64 = 5_000_000;

/// When records are due and when they are measured, in nanoseconds since the Unix epoch.
///
/// This is an open loop: records are due at fixed times, however slow the medium is, and are emitted in
/// bursts at fixed times. Latency counts from the time at which a record's burst was due, even if the
/// load was late.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Schedule {
    /// When record 0 is due, which is sent before the load to open everything.
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
    /// The latest burst that was due at this time.
    pub(super) fn burst_before(&self, now_ns: i64) -> i64 {
        let since = now_ns.saturating_sub(self.start_ns);
        now_ns.saturating_sub(since.rem_euclid(BURST_NS))
    }

    /// The burst in which a record that is due at this time is emitted: the first one after it.
    pub(super) fn burst_of(&self, due_ns: i64) -> i64 {
        self.burst_before(due_ns).saturating_add(BURST_NS)
    }

    /// Waits for the first burst after this time.
    pub(super) fn wait_for_burst_after(&self, mut now: i64) {
        let until = self.burst_of(now);
        while now < until {
            let left = u64::try_from(until.saturating_sub(now)).unwrap_or(0);
            thread::park_timeout(Duration::from_nanos(left));
            now = now_ns();
        }
    }
}

/// A call, and its times in units of the load.
#[derive(Debug, Clone, Copy)]
struct Timed {
    call: Call,
    /// Where in its interval it is due, from 0 to 1: evenly spaced times would compress too well.
    jitter: f64,
    /// It began after the end of the call this number of positions before it ...
    back: i64,
    /// ... by this share of the time to the end of the next call.
    share: f64,
}

/// Makes the records of a run, the same for the same seed, run and schedule.
///
/// The calls are those of the rig's workload, stretched in time so that they end at a constant rate
/// and still nest. A record's timestamp is its call's end, which is when the record is due. The reader
/// computes the latency from it, whatever delayed the record.
#[derive(Debug)]
pub(super) struct Load {
    workload: Workload,
    executions: Executions,
    calls: Vec<Timed>,
    run: u32,
    pub(super) schedule: Schedule,
}

impl Load {
    pub(super) fn new(seed: u64, run: u32, schedule: Schedule) -> Self {
        let mut workload = Workload::new(seed);
        let calls: Vec<Call> = workload.by_ref().take(DIFFERENT).collect();
        let ends: Vec<i64> = calls.iter().map(|call| call.tout).collect();
        let mut random = Random::new(seed ^ 0x7377_6565_7000);
        let calls = (0_i64..).zip(&calls).map(|(index, call)| {
            let ended = ends.partition_point(|end| *end <= call.tin);
            let before = ended.checked_sub(1).and_then(|last| ends.get(last));
            let share = match (before, ends.get(ended)) {
                (Some(before), Some(after)) => ratio(call.tin - before, after - before),
                _ => 0.5,
            };
            Timed {
                call: *call,
                jitter: random.unit(),
                back: index - (i64::try_from(ended).unwrap_or(0) - 1),
                share,
            }
        });
        Self {
            calls: calls.collect(),
            executions: Executions::new(workload.names()),
            workload,
            run,
            schedule,
        }
    }

    fn timed(&self, position: i64) -> Option<&Timed> {
        let count = i64::try_from(self.calls.len()).unwrap_or(i64::MAX).max(1);
        let index = usize::try_from(position.rem_euclid(count)).unwrap_or(0);
        self.calls.get(index)
    }

    /// When the record at this position is due.
    pub(super) fn due(&self, position: u64) -> i64 {
        match position {
            0 => self.schedule.first_ns,
            position => self.end(i64::try_from(position).unwrap_or(i64::MAX)),
        }
    }

    fn end(&self, position: i64) -> i64 {
        let jitter = self.timed(position).map_or(0.0, |timed| timed.jitter);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "a run has fewer than 2^53 records and nanoseconds"
        )]
        let after = ((position as f64 - 1.0 + jitter) * self.schedule.interval_ns) as i64;
        self.schedule.start_ns.saturating_add(after)
    }

    fn call(&self, position: u64) -> Call {
        let signed = i64::try_from(position).unwrap_or(i64::MAX);
        let Some(timed) = self.timed(signed) else {
            return Call::default();
        };
        let mut call = timed.call;
        let cycle = signed / i64::try_from(self.calls.len()).unwrap_or(i64::MAX).max(1);
        call.trace_id += (cycle << 16) + (i64::from(self.run) << RUN_BITS);
        call.tout = self.due(position);
        let before = self.end(signed - timed.back);
        let after = self.end(signed - timed.back + 1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "between two times of a run"
        )]
        let into = ((after - before) as f64 * timed.share) as i64;
        call.tin = match position {
            // It is sent before the load, whose beginning is not fixed yet.
            0 => call.tout,
            _ => before.saturating_add(into).min(call.tout),
        };
        call
    }

    /// The record at this position, to emit it.
    pub(super) fn record(&mut self, position: u64) -> &Execution {
        let call = self.call(position);
        self.executions.of(&call)
    }

    /// The record at this position, to send it as a row.
    pub(super) fn plain(&self, position: u64) -> PlainCall<'_> {
        self.workload.names().plain(&self.call(position))
    }
}

/// The run that a trace belongs to.
pub(super) fn run_of(trace_id: i64) -> i64 {
    trace_id.wrapping_sub(FIRST_TRACE_ID) >> RUN_BITS
}

#[expect(clippy::cast_precision_loss, reason = "differences within a workload")]
fn ratio(part: i64, whole: i64) -> f64 {
    match whole {
        0 => 0.5,
        whole => part as f64 / whole as f64,
    }
}

/// The bytes of payload a record in chunks of this number of records: a part of the load at this rate is
/// encoded to see.
pub(super) fn payload_per_record(
    compression: &str,
    seed: u64,
    records: f64,
    rate: f64,
) -> Result<f64, Failure> {
    let cannot_encode = "encode the load";
    let compression = compression.parse::<Compression>();
    let compression = compression.map_err(Failure::cannot(cannot_encode))?;
    let serializer = NativeSerializer::new(compression);
    let mut serializer = serializer.map_err(Failure::cannot(cannot_encode))?;
    let start_ns = 1_700_000_000_000_000_000;
    let schedule = Schedule {
        first_ns: start_ns,
        start_ns,
        interval_ns: 1e9 / rate,
        from_ns: start_ns,
        to_ns: start_ns,
    };
    let mut load = Load::new(seed, 0, schedule);
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 1,
    });
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at least 1 and at most a u32"
    )]
    let records = records.round().max(1.0) as u64;
    // Enough chunks for a mean, whatever their size.
    let chunks = (4_096 / records).clamp(2, 256);
    let (mut builder, mut bytes) = (BatchBuilder::new(), 0_usize);
    for chunk in 0..chunks {
        for position in 1..=records {
            let pushed = builder.push(load.record(chunk * records + position));
            pushed.map_err(Failure::cannot(cannot_encode))?;
        }
        let mut out = Vec::new();
        let written = serializer.serialize(&builder.take(), &header, &mut out);
        written.map_err(Failure::cannot(cannot_encode))?;
        bytes += out.len();
    }
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    Ok(to_f64(bytes) / to_f64(chunks * records))
}

#[cfg(test)]
mod tests;
