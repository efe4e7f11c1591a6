//! The writing process.

use std::time::{Duration, Instant};

use baler_common::container::{Compression, NativeSerializer};
use baler_monitoring::{Controller, Overflow};
use serde::{Deserialize, Serialize};

use super::case::{Case, Way};
use super::load::{Load, Timing};
use super::pace::Bursts;
use super::program::{PlainWriter, Program, wait_for_end_of_input};
use super::sample::ClosedBy;
use crate::cpu::process_cpu_time;
use crate::failure::Failure;
use crate::lines::print_line;
use crate::plain_row::Rows;
use crate::time::{nanos, now_ns, whole};

/// How long the medium may take to open, and to confirm everything at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// Between opening and the first record of the load, so that the readers can be told of it.
const AHEAD: Duration = Duration::from_millis(50);

/// Due records are emitted once in this time. A thread that wakes up for each record, or a thousand
/// times a second, costs more than most of what is measured.
const BURST: Duration = Duration::from_millis(5);

/// Without a rate, records are timed as if this number were due a second.
const NOMINAL_RATE: f64 = 10_000_000.0;

/// Records that are made between two looks at the clock, ...
const AT_A_TIME: u64 = 256;

/// ... and where each of them is awaited.
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
    /// How long it is measured.
    pub(super) seconds: u32,
}

/// What the writing process reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum WriterEvent {
    /// The medium is open, and the load begins.
    Started(Schedule),
    /// The measured time begins, or has ended.
    Mark(Counters),
    /// Everything is confirmed; this number of records was emitted. The process ends when its input
    /// does.
    Done { emitted: u64 },
}

/// When records are due, and when they are measured.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Schedule {
    pub(super) timing: Timing,
    pub(super) bursts: Bursts,
    /// The measured time begins ...
    pub(super) from_ns: i64,
    /// ... and ends.
    pub(super) to_ns: i64,
}

/// The state of the writing process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// Records that were emitted.
    pub(super) emitted: u64,
    /// Records that are confirmed.
    pub(super) confirmed: u64,
    /// Messages that are confirmed.
    pub(super) messages: u64,
    /// CPU time of the process.
    pub(super) cpu_ns: u64,
    /// Time by the monotonic clock.
    pub(super) elapsed_ns: u64,
    pub(super) closed_by: ClosedBy,
}

/// A way to send records.
trait Sends {
    /// Emits the records from one position to before another.
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure>;
    /// What is confirmed.
    fn counters(&self) -> Counters;
    /// Waits until everything is confirmed.
    fn settle(&mut self) -> Result<(), Failure>;
}

/// Writes a run.
///
/// # Errors
///
/// The medium does not take it.
pub(super) fn write(task: &Writing, program: &dyn Program) -> Result<(), Failure> {
    let mut timing = Timing {
        first_ns: now_ns(),
        start_ns: now_ns(),
        interval_ns: 1e9 / task.case.rate.unwrap_or(NOMINAL_RATE),
    };
    let mut load = Load::new(task.seed, task.run, timing);
    let mut sends: Box<dyn Sends> = match task.case.way {
        Way::Auto | Way::Baler => Box::new(open_chunks(task, program)?),
        Way::Pacing => Box::new(Nothing(0)),
        way => Box::new(Plain {
            writer: program.plain(&task.uri, way == Way::Awaiting)?,
            rows: Vec::new(),
        }),
    };
    // The first record opens whatever is not open yet.
    timing.first_ns = now_ns();
    load.set_timing(timing);
    sends.emit(&mut load, 0, 1)?;
    sends.settle()?;
    timing.start_ns = now_ns().saturating_add_unsigned(nanos(AHEAD));
    load.set_timing(timing);
    let from_ns = timing.start_ns + whole(task.warm_up_seconds * 1e9);
    let schedule = Schedule {
        timing,
        bursts: Bursts::new(timing.start_ns, BURST),
        from_ns,
        to_ns: from_ns + i64::from(task.seconds) * 1_000_000_000,
    };
    print_line(&WriterEvent::Started(schedule))?;
    let emitted = run(task, &mut load, &mut *sends, &schedule)?;
    sends.settle()?;
    print_line(&WriterEvent::Done { emitted })?;
    // The parent looks at this process's sockets and memory before it ends.
    wait_for_end_of_input()
}

/// Emits due records, burst by burst, until the end; yields how many there were.
fn run(
    task: &Writing,
    load: &mut Load,
    sends: &mut dyn Sends,
    schedule: &Schedule,
) -> Result<u64, Failure> {
    let since = Instant::now();
    let bursts = schedule.bursts;
    let mut position = 1_u64;
    let mut next_mark = schedule.from_ns;
    let at_a_time = match task.case.way {
        Way::Awaiting => AWAITED_AT_A_TIME,
        _ => AT_A_TIME,
    };
    loop {
        let now = now_ns();
        if now >= next_mark {
            print_line(&WriterEvent::Mark(Counters {
                emitted: position,
                cpu_ns: nanos(process_cpu_time()),
                elapsed_ns: nanos(since.elapsed()),
                ..sends.counters()
            }))?;
            if next_mark == schedule.to_ns {
                // Fills the last chunk: the bytes of a record are not those of a chunk that is cut short.
                let full = task.case.full_after(position);
                sends.emit(load, position, full)?;
                return Ok(full);
            }
            next_mark = schedule.to_ns;
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
        if task.case.rate.is_some() && load.due(position) >= bursts.before(now) {
            bursts.wait_after(now);
        }
    }
}

/// Baler: emit, queue, collector, encoding, connector.
struct Chunks(Controller);

fn open_chunks(task: &Writing, program: &dyn Program) -> Result<Chunks, Failure> {
    let cannot_compress = "compress";
    let compression = task.case.compression.as_deref().unwrap_or("none");
    let compression = compression.parse::<Compression>();
    let compression = compression.map_err(Failure::cannot(cannot_compress))?;
    let serializer = NativeSerializer::new(compression);
    let mut builder = Controller::builder(program.writer(&task.uri)?)
        // Only the records of the load are sent.
        .metadata_record(false)
        // Nothing may be lost, so the slower end sets the pace.
        .overflow(Overflow::Block)
        .serializer(serializer.map_err(Failure::cannot(cannot_compress))?);
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
    Ok(Chunks(
        controller.map_err(Failure::cannot("start a controller"))?,
    ))
}

impl Sends for Chunks {
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure> {
        for position in from..to {
            if !self.0.emit(load.record(position)) {
                return Err(Failure::new("the controller does not take a record"));
            }
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        let stats = self.0.stats();
        let closed_by = stats.closed_by;
        Counters {
            confirmed: stats.delivered,
            messages: stats.chunks_delivered,
            closed_by: ClosedBy {
                records: closed_by.records,
                age: closed_by.age,
                bytes: closed_by.bytes,
                flush: closed_by.flush,
            },
            ..Counters::default()
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        let flushed = self.0.flush(PATIENCE);
        flushed.map_err(Failure::cannot("deliver everything"))
    }
}

/// The client library alone.
struct Plain {
    writer: Box<dyn PlainWriter>,
    /// Memory that is used again.
    rows: Vec<Vec<u8>>,
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

    fn counters(&self) -> Counters {
        let confirmed = self.writer.confirmed();
        Counters {
            confirmed,
            messages: confirmed,
            ..Counters::default()
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.writer.settle(Instant::now() + PATIENCE)
    }
}

/// Nothing: the records are made, counted and thrown away.
struct Nothing(u64);

impl Sends for Nothing {
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure> {
        for position in from..to {
            std::hint::black_box(load.record(position));
            self.0 += 1;
        }
        Ok(())
    }

    fn counters(&self) -> Counters {
        Counters {
            confirmed: self.0,
            ..Counters::default()
        }
    }

    fn settle(&mut self) -> Result<(), Failure> {
        Ok(())
    }
}
