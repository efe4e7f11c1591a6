//! The writing process.

use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::{Compression, NativeSerializer};
use baler_connector_kieker::container::KiekerSerializer;
use baler_monitoring::usage::process_cpu_time;
use baler_monitoring::{Controller, Overflow};
use serde::{Deserialize, Serialize};

use super::case::Way;
use super::load::{Load, LoadRecord, Material, Schedule};
use super::program::{PlainWriter, Program, Writing};
use super::reading::producer_of;
use super::user_records;
use crate::clock::{nanos, now_ns};
use crate::harness::Failure;
use crate::process::{from_parent, send_to_parent};

/// The time limit for the medium to open, and to confirm everything at the end.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between opening and the first record of the load, so that readers get the schedule in
/// time.
const AHEAD_NS: i64 = 50_000_000;

/// Without a rate, records are timed as if this number were due in a second.
const NOMINAL_RATE: f64 = 10_000_000.0;

/// Records that are made between two reads of the clock, ...
const AT_A_TIME: u64 = 256;

/// ... and the number if each of them is awaited.
const AWAITED_AT_A_TIME: u64 = 4;

/// A report of the writing process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum WriterEvent {
    /// The medium is open, and the load begins.
    Started(Schedule),
    /// The measured time begins, or has ended.
    Mark(Counters),
    /// Everything is confirmed; this number of records was emitted. The process ends when its input
    /// ends.
    Done { emitted: u64 },
}

/// The state of the writing process at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Counters {
    /// Records that are confirmed.
    pub(super) confirmed: u64,
    /// Messages that are confirmed.
    pub(super) messages: u64,
    /// CPU time of the process.
    pub(super) cpu_ns: u64,
    /// Time by the monotonic clock.
    pub(super) elapsed_ns: u64,
}

/// Writes a run.
///
/// # Errors
///
/// The medium does not take it.
pub(super) fn write(task: &Writing, program: &dyn Program) -> Result<(), Failure> {
    let arrived = from_parent::<u64>();
    let mut schedule = Schedule {
        first_ns: now_ns(),
        start_ns: now_ns(),
        interval_ns: 1e9 / task.case.rate.unwrap_or(NOMINAL_RATE),
        from_ns: 0,
        to_ns: 0,
    };
    let own = match &task.records {
        Some(file) => user_records::read(file)?,
        None => Vec::new(),
    };
    let material = Material {
        seed: task.seed,
        own: &own,
    };
    let mut load = Load::new(material, task.run, schedule);
    let mut sender = match task.case.way {
        Way::Auto | Way::Baler | Way::Kieker => Sender::Chunks(controller(task, program)?),
        Way::Pacing => Sender::Nothing(0),
        way => Sender::Plain(program.plain(&task.uri, way == Way::Awaiting)?, Vec::new()),
    };
    // The first record opens everything that is not open yet.
    schedule.first_ns = now_ns();
    load.set_schedule(schedule);
    sender.emit(&mut load, 0, 1)?;
    sender.settle()?;
    schedule.start_ns = now_ns() + AHEAD_NS;
    schedule.from_ns = schedule.start_ns + nanos(task.warm_up).cast_signed();
    schedule.to_ns = schedule.from_ns + i64::from(task.seconds) * 1_000_000_000;
    load.set_schedule(schedule);
    send_to_parent(&WriterEvent::Started(schedule))?;
    let emitted = emit_due(task, &mut load, &mut sender, &arrived)?;
    sender.settle()?;
    send_to_parent(&WriterEvent::Done { emitted })?;
    // The parent reads this process's sockets and memory before the process ends.
    while arrived.recv().is_ok() {}
    Ok(())
}

/// Emits due records, burst by burst, until the end; returns their number.
fn emit_due(
    task: &Writing,
    load: &mut Load,
    sender: &mut Sender,
    arrived: &Receiver<u64>,
) -> Result<u64, Failure> {
    let since = Instant::now();
    let schedule = load.schedule();
    let mut position = 1_u64;
    let mut has_arrived = 1_u64;
    let mut next_mark = schedule.from_ns;
    let at_a_time = match task.case.way {
        Way::Awaiting => AWAITED_AT_A_TIME,
        _ => AT_A_TIME,
    };
    loop {
        let now = now_ns();
        if now >= next_mark {
            send_to_parent(&WriterEvent::Mark(Counters {
                cpu_ns: nanos(process_cpu_time()),
                elapsed_ns: nanos(since.elapsed()),
                ..sender.confirmed()
            }))?;
            if next_mark == schedule.to_ns {
                // Fill the last chunk: its bytes for each record must not come from a chunk that is
                // cut short.
                let full = task.case.full_after(position);
                sender.emit(load, position, full)?;
                return Ok(full);
            }
            next_mark = schedule.to_ns;
        }
        if let Some(max) = task.max_under_way {
            has_arrived = arrived.try_iter().last().unwrap_or(has_arrived);
            if position > has_arrived + max {
                thread::park_timeout(Duration::from_millis(1));
                continue;
            }
        }
        let mut end = position;
        if task.case.rate.is_some() {
            let burst = schedule.burst_before(now);
            while end < position + at_a_time && load.due(end) < burst {
                end += 1;
            }
        } else if now >= load.due(1) {
            end += at_a_time;
        }
        if end > position {
            sender.emit(load, position, end)?;
            position = end;
        }
        if task.case.rate.is_some() && load.due(position) >= schedule.burst_before(now) {
            schedule.wait_for_burst_after(now);
        }
    }
}

fn controller(task: &Writing, program: &dyn Program) -> Result<Controller, Failure> {
    let mut builder = Controller::builder(program.writer(&task.uri)?)
        // Only the records of the load are sent.
        .metadata_record(false)
        .producer(producer_of(task.run))
        // Nothing may be lost, so the slower end sets the pace.
        .overflow(Overflow::Block);
    builder = match task.case.way {
        Way::Kieker => builder.serializer(KiekerSerializer::default()),
        _ => {
            let cannot_compress = "compress";
            let compression = task.case.compression.as_deref().unwrap_or("none");
            let compression = compression.parse::<Compression>();
            let compression = compression.map_err(Failure::cannot(cannot_compress))?;
            let serializer = NativeSerializer::new(compression);
            builder.serializer(serializer.map_err(Failure::cannot(cannot_compress))?)
        }
    };
    if let Some(records) = task.case.chunk_records {
        builder = builder.chunk_records(records as usize);
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
    controller.map_err(Failure::cannot("start a controller"))
}

/// A way to send records.
enum Sender {
    /// Baler: emit, queue, collector, encoding, connector.
    Chunks(Controller),
    /// The client library alone, and rows whose memory is reused.
    Plain(Box<dyn PlainWriter>, Vec<Vec<u8>>),
    /// Records are made, counted and thrown away.
    Nothing(u64),
}

impl Sender {
    /// Emits the records from one position to before another.
    fn emit(&mut self, load: &mut Load, from: u64, to: u64) -> Result<(), Failure> {
        match self {
            Self::Chunks(controller) => {
                for position in from..to {
                    let taken = match load.record(position) {
                        LoadRecord::Call(record) => controller.emit(record),
                        LoadRecord::Own(record) => controller.emit_as_is(record),
                    };
                    if !taken {
                        return Err(Failure::new("the controller does not take a record"));
                    }
                }
                Ok(())
            }
            Self::Plain(writer, rows) => {
                let count = usize::try_from(to - from).expect("a burst is in memory");
                if rows.len() < count {
                    rows.resize_with(count, Vec::new);
                }
                for (position, row) in (from..to).zip(&mut *rows) {
                    load.write_row(position, row);
                }
                writer.publish(&rows[..count])
            }
            Self::Nothing(count) => {
                for position in from..to {
                    std::hint::black_box(load.record(position));
                }
                *count = to;
                Ok(())
            }
        }
    }

    /// The confirmed records and messages.
    fn confirmed(&self) -> Counters {
        let (confirmed, messages) = match self {
            Self::Chunks(controller) => {
                let stats = controller.stats();
                (stats.delivered, stats.chunks_delivered)
            }
            Self::Plain(writer, _) => (writer.confirmed(), writer.confirmed()),
            Self::Nothing(count) => (*count, 0),
        };
        Counters {
            confirmed,
            messages,
            ..Counters::default()
        }
    }

    /// Waits until everything is confirmed.
    fn settle(&mut self) -> Result<(), Failure> {
        match self {
            Self::Chunks(controller) => {
                let flushed = controller.flush(PATIENCE);
                flushed.map_err(Failure::cannot("deliver everything"))
            }
            Self::Plain(writer, _) => writer.settle(Instant::now() + PATIENCE),
            Self::Nothing(_) => Ok(()),
        }
    }
}
