//! One run: a writing process, and what is seen of it from outside.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use super::backlog::{Arrived, most_on_their_way};
use super::case::Case;
use super::load::Load;
use super::order::Order;
use super::program::Program;
use super::readers::Readers;
use super::reading::{Found, Latency, Told};
use super::sample::{Sample, SecondSample};
use super::writing::{Said, Second, Started, Writing, per_second};
use crate::child::Child;
use crate::failure::Failure;
use crate::footprint::{Footprint, Scheduling, busy_time_of, cpu_times_of};
use crate::lines::{line, understand};
use crate::statistics::to_f64;
use crate::wire::{Wire, WireCounter};

/// How long a run may take beyond its load.
const PATIENCE: Duration = Duration::from_secs(90);

/// What was confirmed and has not arrived is lost if nothing came for so long: three times what a
/// group takes to do without a reader that was killed.
const SILENCE: Duration = Duration::from_secs(30);

/// How often it is looked at what the processes say.
const LOOK: Duration = Duration::from_millis(10);

/// The same while the writer waits to hear what arrived.
const ANSWER: Duration = Duration::from_millis(2);

/// So often readers say how far they are, at most, where the load waits for that, ...
const SOON: Duration = Duration::from_millis(5);

/// ... and where it does not.
const LATER: Duration = Duration::from_millis(20);

/// What a run needs.
pub(super) struct Measuring<'a> {
    pub(super) program: &'a dyn Program,
    pub(super) writer_uri: String,
    pub(super) broker_pid: Option<u32>,
    pub(super) seed: u64,
    pub(super) warm_up_seconds: f64,
    pub(super) seconds: u32,
    pub(super) burst_seconds: f64,
    /// So many bytes of a partition the medium keeps, read or not; nothing: what was not read.
    pub(super) retained_bytes: Option<u64>,
}

/// What is known at the beginning or end of a second.
#[derive(Clone)]
struct Mark {
    second: Second,
    wire: Wire,
    reader_cpu: Duration,
    broker_cpu: Option<Duration>,
    lag_records: u64,
    writer_bytes: u64,
    writer_cpu: (Duration, Duration),
    scheduling: Scheduling,
}

impl Measuring<'_> {
    /// Runs a case once.
    ///
    /// # Errors
    ///
    /// A process fails or says nothing, or `go_on` says to stop.
    pub(super) fn run(
        &self,
        case: &Case,
        run: u32,
        readers: &mut Readers,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Sample, Failure> {
        let most = self.retained_bytes.filter(|_| case.is_read());
        let most_on_their_way = most
            .map(|bytes| most_on_their_way(case, bytes, self.seed))
            .transpose()?;
        // A load without a rate goes on as fast as it hears of what arrived.
        let is_awaited = most_on_their_way.is_some() && case.rate.is_none();
        readers.tell(Told::Begin {
            run,
            plain: case.way.is_plain(),
            say_every: if is_awaited { SOON } else { LATER },
        })?;
        let order = Order::Write(Writing {
            uri: self.writer_uri.clone(),
            case: case.clone(),
            run,
            seed: self.seed,
            warm_up_seconds: self.warm_up_seconds,
            seconds: self.seconds,
            burst_seconds: self.burst_seconds,
            most_on_their_way,
        });
        let mut child = order.start(self.program)?;
        let mut wire = WireCounter::of(child.pid()).map_err(Failure::cannot("count bytes"))?;
        let load_seconds = self.warm_up_seconds + f64::from(self.seconds);
        let by = Instant::now()
            + PATIENCE
            + Duration::try_from_secs_f64(load_seconds).unwrap_or_default();
        let mut started: Option<Started> = None;
        let mut wire_before = Wire::default();
        let mut marks = Vec::new();
        // The writer waits to hear that so many have arrived.
        let mut asked: Option<u64> = None;
        let emitted = loop {
            readers.listen()?;
            if asked.is_some_and(|awaited| readers.records() >= awaited) {
                asked = None;
                let line = line(&Arrived(readers.records()))?;
                let told = child.tell(&line);
                told.map_err(Failure::cannot("tell the writing process"))?;
            }
            if !go_on() {
                return Err(Failure::new("stopped before everything was measured"));
            }
            let look = if asked.is_some() { ANSWER } else { LOOK };
            let said = match child.line((Instant::now() + look).min(by)) {
                Err(error) if error.kind() == ErrorKind::TimedOut && Instant::now() < by => {
                    continue;
                }
                line => understand(&line.map_err(Failure::cannot("hear of the writing process"))?)?,
            };
            match said {
                Said::Started(told) => {
                    // The load begins a little later.
                    wire_before = wire.look().map_err(Failure::cannot("count bytes"))?;
                    readers.tell(Told::Window {
                        from_ns: told.from_ns,
                        to_ns: told.to_ns,
                        bursts: told.bursts,
                    })?;
                    started = Some(told);
                }
                Said::Second(second) => {
                    let mark = self.mark(second, &child, &mut wire, readers)?;
                    marks.push(mark);
                }
                Said::Asks { arrived } => asked = Some(arrived),
                Said::Done { emitted } => break emitted,
            }
        };
        let wire = wire.look().map_err(Failure::cannot("count bytes"))?;
        let started = started.ok_or_else(|| Failure::new("the writing process did not start"))?;
        let arriving = if case.is_read() { emitted } else { 0 };
        let found = arrived(readers, arriving, go_on)?;
        // Whether it says good-bye in time is not of the run.
        child
            .end(Duration::from_secs(10))
            .map_err(Failure::cannot("end the writing process"))?;
        let mut sample = self.sample(case, run, &started, emitted, &marks, &found)?;
        sample.wire = wire.since(wire_before);
        Ok(sample)
    }

    fn mark(
        &self,
        second: Second,
        child: &Child,
        wire: &mut WireCounter,
        readers: &Readers,
    ) -> Result<Mark, Failure> {
        let looked = Failure::cannot("look at a process");
        let pid = child.pid();
        let reader_cpu = readers
            .pids()
            .into_iter()
            .map(|pid| busy_time_of(pid).unwrap_or_default())
            .sum();
        let broker_cpu = self.broker_pid.map(busy_time_of).transpose();
        Ok(Mark {
            second,
            wire: wire.look().map_err(&looked)?,
            reader_cpu,
            broker_cpu: broker_cpu.map_err(Failure::cannot("look at the broker's process"))?,
            lag_records: second.emitted.saturating_sub(readers.records()),
            writer_bytes: Footprint::of(pid).map_err(&looked)?.resident_bytes,
            writer_cpu: cpu_times_of(pid).map_err(&looked)?,
            scheduling: Scheduling::of(pid).map_err(&looked)?,
        })
    }

    fn sample(
        &self,
        case: &Case,
        run: u32,
        started: &Started,
        emitted: u64,
        marks: &[Mark],
        found: &[Found],
    ) -> Result<Sample, Failure> {
        let (Some(first), Some(last)) = (marks.first(), marks.last()) else {
            return Err(Failure::new("the writing process measured nothing"));
        };
        let seconds: Vec<_> = marks
            .windows(2)
            .filter_map(|pair| match pair {
                [before, after] => Some(between(before, after)),
                _ => None,
            })
            .collect();
        let user = last.writer_cpu.0.saturating_sub(first.writer_cpu.0);
        let system = last.writer_cpu.1.saturating_sub(first.writer_cpu.1);
        let both = (user + system).as_secs_f64();
        let mut sample = Sample {
            seconds,
            user_share: if both > 0.0 {
                user.as_secs_f64() / both
            } else {
                1.0
            },
            closed_by: last.second.closed_by.since(first.second.closed_by),
            emitted,
            ..Sample::default()
        };
        if !case.is_read() {
            sample.arrived = emitted;
            sample.unaltered = true;
            return Ok(sample);
        }
        sample.arrived = found.iter().map(|one| one.records).sum();
        sample.foreign = found.iter().map(|one| one.foreign).sum();
        sample.latency = together(found);
        let mut load = Load::new(self.seed, run, started.timing);
        let expected = load.checksum(emitted)?;
        let hash = found
            .iter()
            .fold(0, |sum: u64, one| sum.wrapping_add(one.hash));
        sample.unaltered = (sample.arrived, hash) == (expected.records, expected.hash);
        Ok(sample)
    }
}

fn between(before: &Mark, after: &Mark) -> SecondSample {
    let nanos = after.second.elapsed_ns - before.second.elapsed_ns;
    let per = |of: fn(&Second) -> u64| {
        per_second(of(&after.second).saturating_sub(of(&before.second)), nanos)
    };
    let seconds = to_f64(nanos) / 1e9;
    let cpu = |after: Duration, before: Duration| {
        after.saturating_sub(before).as_secs_f64() / seconds.max(1e-9)
    };
    let wire = after.wire.since(before.wire);
    let counted = |of: fn(&Scheduling) -> u64| {
        let count = of(&after.scheduling).saturating_sub(of(&before.scheduling));
        per_second(count, nanos)
    };
    SecondSample {
        seconds,
        writer_cpu: per(|second| second.cpu_ns) / 1e9,
        emitting_cpu: per(|second| second.emitting_cpu_ns) / 1e9,
        reader_cpu: cpu(after.reader_cpu, before.reader_cpu),
        broker_cpu: after
            .broker_cpu
            .zip(before.broker_cpu)
            .map(|(after, before)| cpu(after, before)),
        emitted: per(|second| second.emitted),
        confirmed: per(|second| second.confirmed),
        messages: per(|second| second.messages),
        wire,
        lag_records: to_f64(after.lag_records),
        writer_bytes: after.writer_bytes,
        context_switches: counted(|it| it.context_switches),
        page_faults: counted(|it| it.page_faults),
        held_back: after
            .second
            .held_ns
            .zip(before.second.held_ns)
            .map(|(after, before)| per_second(after.saturating_sub(before), nanos) / 1e9),
    }
}

/// Waits until so many records have arrived, or no more come; yields what did.
fn arrived(
    readers: &mut Readers,
    records: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Vec<Found>, Failure> {
    let mut by = Instant::now() + SILENCE;
    let mut before = 0;
    loop {
        readers.listen()?;
        let now = readers.records();
        if now >= records {
            break;
        }
        if now > before {
            before = now;
            by = Instant::now() + SILENCE;
        }
        if Instant::now() > by {
            break;
        }
        if !go_on() {
            return Err(Failure::new("stopped before everything was measured"));
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
    readers.report()
}

/// The latencies of several readers: each counts by how many records it read.
fn together(found: &[Found]) -> Latency {
    let all = to_f64(found.iter().map(|one| one.timed).sum());
    let mean = |of: fn(&Latency) -> f64| {
        let sum: f64 = found
            .iter()
            .map(|one| of(&one.latency) * to_f64(one.timed))
            .sum();
        if all > 0.0 { sum / all } else { 0.0 }
    };
    Latency {
        mean_ms: mean(|latency| latency.mean_ms),
        p50_ms: mean(|latency| latency.p50_ms),
        p99_ms: mean(|latency| latency.p99_ms),
        p999_ms: mean(|latency| latency.p999_ms),
        max_ms: found
            .iter()
            .map(|one| one.latency.max_ms)
            .fold(0.0, f64::max),
    }
}
