//! The writing process.

use std::time::{Duration, Instant};

use baler_monitoring::Controller;
use serde::{Deserialize, Serialize};

use super::backlog::Backlog;
use super::case::{Case, Way};
use super::load::{Load, Timing};
use super::pace::Bursts;
use super::program::{PlainWriter, Program};
use super::sample::ClosedBy;
use crate::cpu::{process_cpu_time, thread_cpu_time};
use crate::failure::Failure;
use crate::lines::{listen, say};
use crate::lossless;
use crate::plain_row::Rows;
use crate::statistics::to_f64;
use crate::time::{nanos, now_ns, whole};

/// How long the medium may take to open, and to confirm everything at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between opening and the first record of the constant rate: whoever listens can tell the reader.
const AHEAD: Duration = Duration::from_millis(50);

/// Where there is no rate, records are timed as if there were so many a second.
pub(super) const NOMINAL: f64 = 10_000_000.0;

/// So many records are made between two looks at the clock, ...
const AT_A_TIME: u64 = 256;

/// ... and so many where each is awaited.
const AWAITED_AT_A_TIME: u64 = 4;

/// A run to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Writing {
    pub(super) uri: String,
    pub(super) case: Case,
    pub(super) run: u32,
    pub(super) seed: u64,
    /// How long the load runs before it is measured.
    pub(super) warm_up_seconds: f64,
    /// For how many seconds it is measured.
    pub(super) seconds: u32,
    /// Records that became due are emitted so often.
    pub(super) burst_seconds: f64,
    /// The load waits while so many records are on their way; nothing: it never does.
    pub(super) most_on_their_way: Option<u64>,
}

/// What the writing process says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Said {
    /// It is open, and the load begins.
    Started(Started),
    /// A second begins, or the last one is over.
    Second(Second),
    /// It is to be told when so many records have arrived.
    Asks {
        /// So many.
        arrived: u64,
    },
    /// Everything is confirmed. It ends when it is told to.
    Done {
        /// How many records there were.
        emitted: u64,
    },
}

/// When what is measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Started {
    pub(super) timing: Timing,
    pub(super) bursts: Bursts,
    /// From here on ...
    pub(super) from_ns: i64,
    /// ... and to here it is measured.
    pub(super) to_ns: i64,
}

/// The state between two seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Second {
    /// Records that were emitted.
    pub(super) emitted: u64,
    /// Records that are confirmed.
    pub(super) confirmed: u64,
    /// Messages that are confirmed.
    pub(super) messages: u64,
    /// CPU time of the process.
    pub(super) cpu_ns: u64,
    /// CPU time of the thread that emits.
    pub(super) emitting_cpu_ns: u64,
    /// Since when, by the monotonic clock.
    pub(super) elapsed_ns: u64,
    pub(super) closed_by: ClosedBy,
    /// For how long the load has waited for the readers; nothing where it does not.
    pub(super) held_ns: Option<u64>,
}

/// Something that records are given to.
trait Sends {
    /// Emits the records from one position to before another.
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure>;
    /// What is confirmed.
    fn state(&self) -> Second;
    /// Waits until everything is confirmed.
    fn settle(&mut self) -> Result<(), Failure>;
}

/// Writes a run.
///
/// # Errors
///
/// The medium does not take it.
pub(super) fn write(task: &Writing, program: &dyn Program) -> Result<(), Failure> {
    let interval_ns = 1e9 / task.case.rate.unwrap_or(NOMINAL);
    let mut timing = Timing {
        first_ns: now_ns(),
        start_ns: now_ns(),
        interval_ns,
    };
    let mut load = Load::new(task.seed, task.run, timing);
    let mut sends: Box<dyn Sends> = match task.case.way {
        Way::Auto | Way::Baler => Box::new(Chunks::open(task, program)?),
        Way::Pacing => Box::new(Nothing(0)),
        way => Box::new(Plain::open(task, program, way == Way::Awaiting)?),
    };
    // The first record opens whatever is not open yet.
    timing.first_ns = now_ns();
    load.set_timing(timing);
    sends.emit(&mut load, 0, 1)?;
    sends.settle()?;
    timing.start_ns = now_ns().saturating_add_unsigned(nanos(AHEAD));
    load.set_timing(timing);
    let from_ns = timing
        .start_ns
        .saturating_add(whole(task.warm_up_seconds * 1e9));
    let to_ns = from_ns.saturating_add(i64::from(task.seconds).saturating_mul(1_000_000_000));
    let every = Duration::try_from_secs_f64(task.burst_seconds);
    let bursts = Bursts::new(
        timing.start_ns,
        every.map_err(Failure::cannot("keep time"))?,
    );
    say(&Said::Started(Started {
        timing,
        bursts,
        from_ns,
        to_ns,
    }))?;
    let mut backlog = Backlog::new(task.most_on_their_way, listen());
    let emitted = run(
        task,
        &mut load,
        &mut *sends,
        &mut backlog,
        bursts,
        (from_ns, to_ns),
    )?;
    sends.settle()?;
    say(&Said::Done { emitted })?;
    // Its sockets and its memory are looked at before it ends.
    backlog.wait_for_the_end();
    Ok(())
}

/// Emits what is due, burst by burst, until the end; yields how many records there were.
fn run(
    task: &Writing,
    load: &mut Load,
    sends: &mut dyn Sends,
    backlog: &mut Backlog,
    bursts: Bursts,
    (from_ns, to_ns): (i64, i64),
) -> Result<u64, Failure> {
    let since = Instant::now();
    let mut position = 1_u64;
    let mut next_second = from_ns;
    let at_a_time = match task.case.way {
        Way::Awaiting => AWAITED_AT_A_TIME,
        _ => AT_A_TIME,
    };
    loop {
        let now = now_ns();
        if now >= next_second {
            let mut second = sends.state();
            second.emitted = position;
            second.cpu_ns = nanos(process_cpu_time());
            second.emitting_cpu_ns = nanos(thread_cpu_time());
            second.elapsed_ns = nanos(since.elapsed());
            second.held_ns = backlog.held().map(nanos);
            say(&Said::Second(second))?;
            // One that is late is not followed by one that is too short.
            next_second = next_second
                .saturating_add(1_000_000_000)
                .max(now.saturating_add(500_000_000).min(to_ns));
            if now >= to_ns {
                // So that what a record takes on the wire is not told of a chunk that is cut short.
                let full = task.case.full_after(position);
                sends.emit(load, position, full)?;
                return Ok(full);
            }
        }
        let patience = u64::try_from(next_second.saturating_sub(now)).unwrap_or(0);
        let ask = |arrived| say(&Said::Asks { arrived });
        if !backlog.has_room(position, Duration::from_nanos(patience), ask)? {
            continue;
        }
        let mut end = position;
        if task.case.rate.is_some() {
            let burst = bursts.before(now);
            while end < position + at_a_time && load.due(end) < burst {
                end += 1;
            }
        } else if now >= load.due(1) {
            end += at_a_time;
        }
        if end > position {
            sends.emit(load, position, end)?;
            position = end;
        }
        if task.case.rate.is_none() || load.due(position) < bursts.before(now) {
            continue;
        }
        bursts.wait_behind(now);
    }
}

/// Baler: emit, queue, collector, encoding, connector.
struct Chunks {
    controller: Controller,
    /// Whether each record spells its strings, so that chunks have no table of them.
    spells: bool,
}

impl Chunks {
    fn open(task: &Writing, program: &dyn Program) -> Result<Self, Failure> {
        let compression = task.case.compression.as_deref().unwrap_or("none");
        let mut builder = lossless::controller(program.writer(&task.uri)?, compression)?;
        if let Some(records) = task.case.chunk_records {
            builder = builder.chunk_records(usize::try_from(records).unwrap_or(usize::MAX));
        }
        if let Some(ms) = task.case.wait_time_ms {
            let time = Duration::try_from_secs_f64(ms / 1e3);
            let time = time.map_err(Failure::cannot("wait"))?;
            builder = match task.case.way {
                Way::Auto => builder.auto_chunks(time),
                _ => builder.wait_time(time),
            };
        }
        let controller = builder.start();
        Ok(Self {
            controller: controller.map_err(Failure::cannot("start a controller"))?,
            spells: task.case.spells(),
        })
    }
}

impl Sends for Chunks {
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure> {
        for position in from..to {
            let is_taken = match self.spells {
                false => self.controller.emit(load.record(position)),
                true => self.controller.emit(load.spelled(position)),
            };
            if !is_taken {
                return Err(Failure::new("the controller does not take a record"));
            }
        }
        Ok(())
    }

    fn state(&self) -> Second {
        let stats = self.controller.stats();
        let closed_by = stats.closed_by;
        Second {
            confirmed: stats.delivered,
            messages: stats.chunks_delivered,
            closed_by: ClosedBy {
                records: closed_by.records,
                age: closed_by.age,
                bytes: closed_by.bytes,
                flush: closed_by.flush,
            },
            ..Second::default()
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        let flushed = self.controller.flush(PATIENCE);
        flushed.map_err(Failure::cannot("deliver everything"))
    }
}

/// The client library alone.
struct Plain {
    writer: Box<dyn PlainWriter>,
    /// Used again and again.
    rows: Vec<Vec<u8>>,
}

impl Plain {
    fn open(task: &Writing, program: &dyn Program, awaiting: bool) -> Result<Self, Failure> {
        Ok(Self {
            writer: program.plain(&task.uri, awaiting)?,
            rows: Vec::new(),
        })
    }
}

impl Sends for Plain {
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure> {
        let count = usize::try_from(to - from).unwrap_or(usize::MAX);
        if self.rows.len() < count {
            self.rows.resize_with(count, Vec::new);
        }
        for (position, row) in (from..to).zip(&mut self.rows) {
            let call = load.call(position);
            Rows::new(load.workload()).write(&call, row);
        }
        self.writer
            .publish(self.rows.get(..count).unwrap_or_default())
    }

    fn state(&self) -> Second {
        let confirmed = self.writer.confirmed();
        Second {
            confirmed,
            messages: confirmed,
            ..Second::default()
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.writer.settle(Instant::now() + PATIENCE)
    }
}

/// Nobody: the records are made and thrown away.
struct Nothing(u64);

impl Sends for Nothing {
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure> {
        for position in from..to {
            std::hint::black_box(load.record(position));
            self.0 += 1;
        }
        Ok(())
    }

    fn state(&self) -> Second {
        Second {
            confirmed: self.0,
            ..Second::default()
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}

/// How many records a second were due in so much time.
pub(super) fn per_second(count: u64, nanos: u64) -> f64 {
    match nanos {
        0 => 0.0,
        nanos => to_f64(count) * 1e9 / to_f64(nanos),
    }
}
