//! One run: a writing process, and what its parent sees of it and of the readers.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::case::Case;
use super::load::Load;
use super::program::{Order, Program};
use super::readers::Readers;
use super::reading::{Latency, ReaderCommand, ReaderReport};
use super::sample::{ClosedBy, Sample};
use super::writing::{Counters, Schedule, WriterEvent, Writing};
use crate::child::Child;
use crate::failure::Failure;
use crate::footprint::{Footprint, busy_time_of};
use crate::lines::parse_line;
use crate::statistics::to_f64;
use crate::wire::WireCounter;

/// How long a run may take beyond its load.
const PATIENCE: Duration = Duration::from_secs(90);

/// Confirmed records that have not arrived are lost if nothing arrived for this long: three times the
/// time in which a group replaces a reader that was killed.
const SILENCE: Duration = Duration::from_secs(30);

/// How often the parent looks what the processes report.
const LOOK: Duration = Duration::from_millis(10);

/// What all runs share.
pub(super) struct Measuring<'a> {
    pub(super) program: &'a dyn Program,
    pub(super) broker_pid: Option<u32>,
    pub(super) seed: u64,
    pub(super) warm_up_seconds: f64,
    pub(super) seconds: u32,
}

/// The state at the beginning or end of the measured time.
struct Mark {
    counters: Counters,
    wire_bytes: u64,
    reader_cpu: Duration,
    broker_cpu: Option<Duration>,
    arrived: u64,
    writer_memory_bytes: u64,
}

impl Measuring<'_> {
    /// Runs a case once.
    ///
    /// # Errors
    ///
    /// A process fails or reports nothing, or `go_on` says to stop.
    pub(super) fn run(
        &self,
        (case, run): (&Case, u32),
        writer_uri: String,
        readers: &mut Readers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Sample, Failure> {
        readers.begin(run, case.way.is_plain())?;
        let order = Order::Write(Writing {
            uri: writer_uri,
            case: case.clone(),
            run,
            seed: self.seed,
            warm_up_seconds: self.warm_up_seconds,
            seconds: self.seconds,
        });
        let child = order.start(self.program)?;
        let cannot_count = Failure::cannot("count bytes");
        let mut wire = WireCounter::of(child.pid()).map_err(&cannot_count)?;
        let load = Duration::try_from_secs_f64(self.warm_up_seconds + f64::from(self.seconds));
        let by = Instant::now() + PATIENCE + load.unwrap_or_default();
        let mut started: Option<(Schedule, u64)> = None;
        let mut marks = Vec::new();
        let emitted = loop {
            readers.listen()?;
            if !go_on() {
                return Err(Failure::new("stopped before everything was measured"));
            }
            let line = match child.line((Instant::now() + LOOK).min(by)) {
                Err(error) if error.kind() == ErrorKind::TimedOut && Instant::now() < by => {
                    continue;
                }
                line => line.map_err(Failure::cannot("hear of the writing process"))?,
            };
            match parse_line(&line)? {
                WriterEvent::Started(schedule) => {
                    // The load begins a little later.
                    let bytes = wire.look().map_err(&cannot_count)?;
                    readers.send(ReaderCommand::Schedule(schedule))?;
                    started = Some((schedule, bytes));
                }
                WriterEvent::Mark(counters) => {
                    marks.push(self.mark(counters, &child, &mut wire, readers)?);
                }
                WriterEvent::Done { emitted } => break emitted,
            }
        };
        let (Some((schedule, wire_before)), [first, last]) = (started, marks.as_slice()) else {
            return Err(Failure::new("the writing process measured nothing"));
        };
        let wire_bytes = wire.look().map_err(&cannot_count)?;
        let mut sample = between(first, last, case.is_read());
        sample.wire_bytes_of_run = wire_bytes.saturating_sub(wire_before);
        sample.emitted = emitted;
        if case.is_read() {
            let reports = arrived(readers, emitted, go_on)?;
            sample.arrived = reports.iter().map(|one| one.records).sum();
            sample.latency = case.rate.map(|_| latency(&reports));
            let mut load = Load::new(self.seed, run, schedule.timing);
            let expected = load.checksum(emitted)?;
            let hash = reports
                .iter()
                .fold(0, |sum: u64, one| sum.wrapping_add(one.hash));
            sample.unaltered = (sample.arrived, hash) == (expected.records, expected.hash);
        } else {
            sample.arrived = emitted;
            sample.unaltered = true;
        }
        // The run does not depend on whether it ends in time.
        child
            .end(Duration::from_secs(10))
            .map_err(Failure::cannot("end the writing process"))?;
        Ok(sample)
    }

    fn mark(
        &self,
        counters: Counters,
        child: &Child,
        wire: &mut WireCounter,
        readers: &Readers,
    ) -> Result<Mark, Failure> {
        let cannot_look = Failure::cannot("look at a process");
        let broker_cpu = self.broker_pid.map(busy_time_of).transpose();
        Ok(Mark {
            counters,
            wire_bytes: wire.look().map_err(&cannot_look)?,
            reader_cpu: readers.cpu_time().map_err(&cannot_look)?,
            broker_cpu: broker_cpu.map_err(Failure::cannot("look at the broker's process"))?,
            arrived: readers.records(),
            writer_memory_bytes: Footprint::of(child.pid())
                .map_err(&cannot_look)?
                .resident_bytes,
        })
    }
}

/// The figures of the measured time.
fn between(first: &Mark, last: &Mark, is_read: bool) -> Sample {
    let (before, after) = (&first.counters, &last.counters);
    let seconds = to_f64(after.elapsed_ns.saturating_sub(before.elapsed_ns)) / 1e9;
    let per_second =
        |after: u64, before: u64| to_f64(after.saturating_sub(before)) / seconds.max(1e-9);
    let cpu = |after: Duration, before: Duration| {
        after.saturating_sub(before).as_secs_f64() / seconds.max(1e-9)
    };
    let broker_cpu = last.broker_cpu.zip(first.broker_cpu);
    let mut closed_by = ClosedBy::default();
    closed_by.add(after.closed_by, before.closed_by);
    Sample {
        seconds,
        writer_cpu: per_second(after.cpu_ns, before.cpu_ns) / 1e9,
        reader_cpu: is_read.then(|| cpu(last.reader_cpu, first.reader_cpu)),
        broker_cpu: broker_cpu.map(|(after, before)| cpu(after, before)),
        confirmed: per_second(after.confirmed, before.confirmed),
        messages: per_second(after.messages, before.messages),
        wire_bytes: per_second(last.wire_bytes, first.wire_bytes),
        lag_records: is_read.then(|| to_f64(after.emitted.saturating_sub(last.arrived))),
        writer_memory_bytes: last.writer_memory_bytes,
        closed_by,
        ..Sample::default()
    }
}

/// Waits until this number of records have arrived, or no more come; yields what arrived.
fn arrived(
    readers: &mut Readers,
    records: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<ReaderReport>, Failure> {
    let mut by = Instant::now() + SILENCE;
    let mut before = 0;
    loop {
        readers.listen()?;
        let now = readers.records();
        if now > before {
            before = now;
            by = Instant::now() + SILENCE;
        }
        if now >= records || Instant::now() > by {
            return readers.report();
        }
        if !go_on() {
            return Err(Failure::new("stopped before everything was measured"));
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// The mean of several readers' latencies, weighted by the number of records of each.
fn latency(reports: &[ReaderReport]) -> Latency {
    let all = to_f64(reports.iter().map(|one| one.timed).sum()).max(1.0);
    let mean = |of: fn(&Latency) -> f64| {
        let weighted = reports.iter().map(|it| of(&it.latency) * to_f64(it.timed));
        weighted.sum::<f64>() / all
    };
    Latency {
        p50_ms: mean(|latency| latency.p50_ms),
        p99_ms: mean(|latency| latency.p99_ms),
        p999_ms: mean(|latency| latency.p999_ms),
    }
}
