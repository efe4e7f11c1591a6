//! The writing process: one setting, one day.

use std::thread;
use std::time::{Duration, Instant};

use baler_connector_tcp::{TcpConfig, TcpWriter};
use baler_monitoring::Controller;
use serde::{Deserialize, Serialize};

use super::day::{Day, Phase};
use crate::cpu::{process_cpu_time, thread_cpu_time};
use crate::failure::Failure;
use crate::lines::say;
use crate::lossless;
use crate::time::{nanos, now_ns, whole};

/// How chunks are closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Setting {
    /// The collector chooses, within the bound.
    Auto,
    /// At so many records, or when the first has waited as long as auto lets it at most.
    Fixed(u32),
}

impl Setting {
    pub(super) fn name(self) -> String {
        match self {
            Self::Auto => "auto".to_owned(),
            Self::Fixed(records) => records.to_string(),
        }
    }
}

/// A run to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Writing {
    /// Where the reading process listens.
    pub(super) port: u16,
    pub(super) setting: Setting,
    pub(super) compression: String,
    pub(super) max_latency_ms: u32,
    pub(super) run: u32,
    pub(super) seed: u64,
    pub(super) phases: Vec<Phase>,
    /// So much of each phase is not measured: what came before is worked off.
    pub(super) warm_up_seconds: f64,
}

/// What the writing process says of a phase.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Written {
    /// Records that were due, and that were emitted in time.
    pub(super) due: u64,
    pub(super) emitted: u64,
    /// The sum of their trace ids and times.
    pub(super) sum: u64,
    /// While it was measured: records, ...
    pub(super) records: u64,
    /// ... CPU time of the process, of it that of the emitting thread, and of this what waiting for
    /// the next record took, ...
    pub(super) cpu_ns: u64,
    pub(super) emitting_ns: u64,
    pub(super) waiting_ns: u64,
    /// ... chunks that were made and their bytes.
    pub(super) chunks: u64,
    pub(super) bytes: u64,
    /// What was set or chosen in the end.
    pub(super) chunk_records: u64,
    pub(super) wait_ms: f64,
}

impl Written {
    /// Whether records that were due were not emitted, as nothing took them.
    pub(super) fn is_saturated(&self) -> bool {
        self.emitted.saturating_mul(100) < self.due.saturating_mul(98)
    }
}

/// How long everything may take to be confirmed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Records that became due are emitted so often at most.
const TICK: Duration = Duration::from_millis(1);

/// So many records are made between two looks at the clock.
const AT_A_TIME: u64 = 256;

/// What was counted so far.
#[derive(Debug, Clone, Copy)]
struct Snap {
    position: u64,
    cpu_ns: u64,
    emitting_ns: u64,
    waiting_ns: u64,
    chunks: u64,
    bytes: u64,
}

/// The wait time of fixed sizes: the longest of auto, so that the bound can be kept.
pub(super) fn wait_time(max_latency_ms: u32) -> Duration {
    Duration::from_millis(u64::from(max_latency_ms)) * 15 / 16
}

/// Writes a run, and says what it cost.
///
/// # Errors
///
/// The medium does not take it.
pub(super) fn write(task: &Writing) -> Result<(), Failure> {
    let config = TcpConfig::new("127.0.0.1", task.port);
    let builder = lossless::controller(Box::new(TcpWriter::new(config)), &task.compression)?;
    let builder = match task.setting {
        Setting::Auto => builder.auto_chunks(Duration::from_millis(task.max_latency_ms.into())),
        Setting::Fixed(records) => builder
            .chunk_records(usize::try_from(records).unwrap_or(usize::MAX))
            .wait_time(wait_time(task.max_latency_ms)),
    };
    let controller = builder
        .start()
        .map_err(Failure::cannot("start a controller"))?;
    let settle = || {
        let flushed = controller.flush(PATIENCE);
        flushed.map_err(Failure::cannot("deliver everything"))
    };
    let mut day = Day::new(task.seed, task.run);
    // Opens whatever is not open yet; it is of a phase that is none.
    let call = day.call(task.phases.len(), 0, now_ns());
    controller.emit(day.record(&call));
    settle()?;
    let mut start_ns = now_ns();
    let mut all = Vec::new();
    for (index, phase) in task.phases.iter().enumerate() {
        let written = run_phase(&controller, &mut day, (index, phase), start_ns, task)?;
        all.push(written);
        start_ns = start_ns.saturating_add(whole(phase.seconds * 1e9));
        if written.is_saturated() {
            // What is too much for a setting is not for the next phase to bear.
            settle()?;
            start_ns = now_ns();
        }
    }
    settle()?;
    say(&all)?;
    let report = controller.shutdown(PATIENCE);
    if report.adds_up() && report.dropped().total() == 0 {
        Ok(())
    } else {
        Err(Failure::new(report.to_string()))
    }
}

fn run_phase(
    controller: &Controller,
    day: &mut Day,
    (index, phase): (usize, &Phase),
    start_ns: i64,
    task: &Writing,
) -> Result<Written, Failure> {
    let interval_ns = 1e9 / f64::from(phase.rate);
    // No clock ticks evenly; the golden ratio spreads what is uneven.
    let due = |position: u64| {
        let number = crate::statistics::to_f64(position);
        let jitter = (number * 0.618_033_988_75).fract();
        start_ns.saturating_add(whole((number + jitter) * interval_ns))
    };
    let from_ns = start_ns.saturating_add(whole(task.warm_up_seconds * 1e9));
    let to_ns = start_ns.saturating_add(whole(phase.seconds * 1e9));
    let snap = |position, waiting_ns| {
        let stats = controller.stats();
        Snap {
            position,
            cpu_ns: nanos(process_cpu_time()),
            emitting_ns: nanos(thread_cpu_time()),
            waiting_ns,
            chunks: stats.chunks_encoded,
            bytes: stats.encoded_bytes,
        }
    };
    let (mut position, mut sum, mut first) = (0_u64, 0_u64, None);
    let mut next_tick = Instant::now();
    let mut waiting_ns = 0;
    loop {
        let now = now_ns();
        if first.is_none() && now >= from_ns {
            first = Some(snap(position, waiting_ns));
        }
        if now >= to_ns {
            break;
        }
        let mut end = position;
        while end < position + AT_A_TIME && due(end) <= now {
            let call = day.call(index, end, due(end));
            sum = sum.wrapping_add_signed(call.tout.wrapping_add(call.trace_id));
            if !controller.emit(day.record(&call)) {
                return Err(Failure::new("the controller does not take a record"));
            }
            end += 1;
        }
        position = end;
        let left = due(position).min(to_ns).saturating_sub(now_ns());
        if let Ok(left) = u64::try_from(left)
            && left > 0
        {
            let before = thread_cpu_time();
            wait_until((Instant::now() + Duration::from_nanos(left)).max(next_tick));
            waiting_ns += nanos(thread_cpu_time().saturating_sub(before));
            next_tick = Instant::now() + TICK;
        }
    }
    let last = snap(position, waiting_ns);
    let first = first.unwrap_or(last);
    let mut due_in_all = position;
    while due(due_in_all) < to_ns - 1_000_000 {
        due_in_all += 1;
    }
    let stats = controller.stats();
    Ok(Written {
        due: due_in_all,
        emitted: position,
        sum,
        records: last.position - first.position,
        cpu_ns: last.cpu_ns - first.cpu_ns,
        emitting_ns: last.emitting_ns - first.emitting_ns,
        waiting_ns: last.waiting_ns - first.waiting_ns,
        chunks: last.chunks - first.chunks,
        bytes: last.bytes - first.bytes,
        chunk_records: stats.chunk_records,
        wait_ms: stats.wait_time.as_secs_f64() * 1e3,
    })
}

fn wait_until(by: Instant) {
    loop {
        let left = by.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        thread::park_timeout(left);
    }
}
