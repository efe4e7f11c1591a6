//! Measures all cases, interleaved.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::uri::Uri;
use baler_monitoring::usage::Footprint;

use super::args::{SweepArgs, partitions};
use super::case::{Case, Way};
use super::cell::{
    BROKER_CPU, Cell, LATENCY_P50, LATENCY_P99, LATENCY_P999, MESSAGES, READER_CPU, Sample,
    WIRE_BYTES, WRITER_CPU, WRITER_MEMORY, cells, is_saturated,
};
use super::program::{Order, Program, Writing};
use super::reading::{ReaderCommand, ReaderReport, Readers};
use super::run_log::{FINISHED, FinishedRun, RunLog, fingerprint};
use super::user_records::{self, RecordsReport};
use super::writing::{Counters, WriterEvent};
use crate::harness::{Failure, Progress, Rounds, in_rounds};
use crate::process::{Child, to_line};
use crate::statistics::to_f64;
use crate::usage::busy_time_of;
use crate::wire::WireCounter;

/// The time limit for starting the embedded cluster, and for a run beyond its load.
const PATIENCE: Duration = Duration::from_secs(90);

/// Confirmed records that have not arrived are lost if nothing has arrived for this long: three
/// times the time in which a group replaces a killed reader.
const SILENCE: Duration = Duration::from_secs(30);

/// How often the parent reads the reports of the processes.
const LOOK: Duration = Duration::from_millis(10);

/// The embedded cluster answers a fetch that found nothing when its time is over, and not when a
/// message arrives. By default this is half a second.
const MOCK_FETCH: &str = "fetch.wait.max.ms=2";

/// Measures everything that an interrupted sweep with the same plan has not measured.
///
/// A case that fails has the reason in its cell; the others continue.
///
/// # Errors
///
/// The medium cannot be reached, `progress` requested a stop, or runs cannot be written.
pub(super) fn run(
    args: &SweepArgs,
    records: Option<&RecordsReport>,
    program: &dyn Program,
    progress: &mut Progress<'_>,
) -> Result<Vec<Cell>, Failure> {
    let (mut log, finished) = RunLog::open(&args.results, &fingerprint(args, records)?)?;
    let planned = args.cases();
    let rounds = Rounds {
        repetitions: args.repetitions.get(),
        seed: args.seed,
        finished,
    };
    let base = run_base();
    let mut medium: Option<Medium<'_>> = None;
    // The reason why no other run can be measured, either.
    let mut over: Option<Failure> = None;
    let all = in_rounds(&planned, rounds, progress, |number, case, go_on| {
        if let Some(over) = &over {
            return Err(over.clone());
        }
        let run = u32::try_from((base + number) & 0xf_ffff).expect("20 bits are left");
        let mut measure = || {
            let medium = match &mut medium {
                Some(medium) => medium,
                none => none.insert(Medium::start(args, records, program)?),
            };
            medium.measure(case, run, go_on)
        };
        let result = measure();
        if result.is_err() && !go_on() {
            return result;
        }
        if result.is_err() {
            // The next run gets new readers, whatever is wrong with these. Without a broker every
            // other run would also wait in vain.
            let reached = medium.as_mut().map(|medium| {
                medium.readers = None;
                program.reach(&medium.writer_uri)
            });
            over = reached.transpose().err();
        }
        if over.is_none() {
            let kept = FinishedRun {
                number,
                result: result.clone().map_err(|failure| failure.to_string()),
            };
            over = log.write(&to_line(&kept)?).err();
        }
        result
    })?;
    if let Some(over) = over {
        return Err(over);
    }
    log.write(FINISHED)?;
    Ok(cells(&planned, &all))
}

/// The first number of this sweep's runs. Another sweep may have left chunks in a queue, so its
/// runs should have other numbers.
fn run_base() -> usize {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let seconds = now.map_or(0, |since| since.as_secs());
    // A run's number has 20 bits; a sweep has some hundreds of runs.
    usize::try_from(seconds % 0x3ff).expect("10 bits are left") << 10
}

/// The medium, and the processes around it.
struct Medium<'a> {
    args: &'a SweepArgs,
    /// The user's records, which are in a file.
    records: Option<&'a RecordsReport>,
    program: &'a dyn Program,
    scheme: String,
    writer_uri: String,
    reader_uri: String,
    /// Ends with this value.
    cluster: Option<Child>,
    partitions: Option<u16>,
    readers: Option<Readers>,
}

impl<'a> Medium<'a> {
    fn start(
        args: &'a SweepArgs,
        records: Option<&'a RecordsReport>,
        program: &'a dyn Program,
    ) -> Result<Self, Failure> {
        let uri = Uri::parse(&args.to).map_err(Failure::cannot("use the URI"))?;
        let scheme = uri.scheme().to_owned();
        let mut medium = Self {
            args,
            records,
            program,
            writer_uri: args.to.clone(),
            reader_uri: args.from.clone().unwrap_or_else(|| args.to.clone()),
            cluster: None,
            partitions: (scheme == "kafka").then_some(1),
            readers: None,
            scheme,
        };
        if medium.scheme == "kafka+mock" {
            let topic = uri.path().trim_matches('/').to_owned();
            let partitions = partitions(&args.cases());
            let order = Order::Cluster {
                topic: topic.clone(),
                partitions,
            };
            let cluster = order.start(program)?;
            let address: String = cluster.answer(PATIENCE, &mut || true)?;
            medium.writer_uri = with(&format!("kafka://{address}/{topic}"), settings(&args.to));
            medium.reader_uri = with(&medium.writer_uri, MOCK_FETCH);
            medium.partitions = Some(partitions);
            medium.cluster = Some(cluster);
        }
        Ok(medium)
    }

    /// Measures a case once, with as many readers as it has consumers.
    fn measure(
        &mut self,
        case: &Case,
        run: u32,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Sample, Failure> {
        let open = self.readers.take();
        let readers = match open.filter(|open| open.count() == usize::from(case.consumers)) {
            Some(readers) => readers,
            None => {
                let lanes = self.partitions.filter(|_| case.consumers > 0);
                let uri = &self.reader_uri;
                Readers::start(self.program, uri, case.consumers, lanes, go_on)?
            }
        };
        let uri = self.writer_uri(case.consumers, readers.listens_on.as_deref());
        let readers = self.readers.insert(readers);
        readers.begin(run, case.way.is_plain())?;
        let max_under_way = match self.scheme.as_str() {
            "kafka+mock" if case.is_read() && case.rate.is_none() => {
                Some(max_under_way(case, self.records))
            }
            _ => None,
        };
        let order = Order::Write(Writing {
            uri,
            case: case.clone(),
            run,
            seed: self.args.seed,
            records: self.records.map(|_| user_records::file(&self.args.results)),
            warm_up: self.args.warm_up,
            seconds: self.args.seconds.get(),
            max_under_way,
        });
        let mut child = order.start(self.program)?;
        let mut wire = WireCounter::of(child.pid())?;
        let load = self.args.warm_up + Duration::from_secs(self.args.seconds.get().into());
        let by = Instant::now() + PATIENCE + load;
        let broker_pid = self.args.broker_pid.map(NonZeroU32::get);
        let broker_pid = broker_pid.or_else(|| self.cluster.as_ref().map(Child::pid));
        let mut started = None;
        let mut marks = Vec::new();
        let emitted = loop {
            readers.listen()?;
            if max_under_way.is_some() && started.is_some() {
                child.send(&readers.records())?;
            }
            if !go_on() {
                return Err(Failure::stopped());
            }
            match child.next(Instant::now() + LOOK)? {
                None if Instant::now() < by => {}
                None => return Err(Failure::new("the writing process does not end its run")),
                Some(WriterEvent::Started(schedule)) => {
                    // The load begins a little later.
                    readers.send(ReaderCommand::Schedule(schedule))?;
                    started = Some(wire.look()?);
                }
                Some(WriterEvent::Mark(counters)) => marks.push(Mark {
                    counters,
                    wire_bytes: wire.look()?,
                    reader_cpu: readers.cpu_time()?,
                    broker_cpu: broker_pid.map(busy_time_of).transpose()?,
                }),
                Some(WriterEvent::Done { emitted }) => break emitted,
            }
        };
        let (Some(wire_before), [first, last]) = (started, marks.as_slice()) else {
            return Err(Failure::new("the writing process measured nothing"));
        };
        let wire_bytes = wire.look()? - wire_before;
        let mut sample = between(case, first, last, emitted, wire_bytes);
        let mut note = |name: &str, value| sample.figures.insert(name.to_owned(), value);
        let footprint = Footprint::of(child.pid()).map_err(Failure::cannot("look at a process"))?;
        note(WRITER_MEMORY, to_f64(footprint.resident_bytes));
        if case.is_read() {
            let report = arrived(readers, emitted, go_on)?;
            if case.rate.is_some() {
                let names = [LATENCY_P50, LATENCY_P99, LATENCY_P999];
                for (name, ms) in names.into_iter().zip(report.latency_ms) {
                    note(name, ms);
                }
            }
            sample.lost = emitted.abs_diff(report.records);
        }
        // The figures do not depend on how it ends.
        child.end(Duration::from_secs(10)).ok();
        Ok(sample)
    }

    /// Returns the URI of the writer: for TCP it has the port on which the receiver listens.
    fn writer_uri(&self, consumers: u16, listens_on: Option<&str>) -> String {
        match listens_on {
            Some(address) if self.scheme == "tcp" => {
                with(&format!("tcp://{address}"), settings(&self.writer_uri))
            }
            // Otherwise all chunks of a producer go to one partition.
            _ if consumers > 1 && self.scheme == "kafka+mock" => {
                with(&self.writer_uri, "partition_by=round_robin")
            }
            _ => self.writer_uri.clone(),
        }
    }
}

/// The embedded cluster keeps 5 MiB for each partition and drops older messages, read or not. So
/// without a rate the load waits for the readers.
fn max_under_way(case: &Case, own: Option<&RecordsReport>) -> u64 {
    let size = u64::from(case.chunk_records.unwrap_or(1));
    match own {
        // With its framing, a single record has up to 200 bytes more than its row.
        Some(records) => ((3 << 20) / (records.row_bytes() + 200)).max(size * 2),
        None if case.way == Way::Auto => 50_000,
        // A message with one record has up to 400 bytes with its framing; a large chunk has 20 a
        // record.
        None => (size * 4).max(8_000),
    }
}

/// Returns the settings of a URI, if it has some.
fn settings(uri: &str) -> &str {
    uri.split_once('?').map_or("", |(_, settings)| settings)
}

/// Returns a URI with another setting. A setting that it already has stays.
fn with(uri: &str, setting: &str) -> String {
    let name = setting.split_once('=').map_or(setting, |(name, _)| name);
    if setting.is_empty() || uri.contains(&format!("{name}=")) {
        return uri.to_owned();
    }
    let joint = if uri.contains('?') { '&' } else { '?' };
    format!("{uri}{joint}{setting}")
}

/// The state at the start or the end of the measured time.
struct Mark {
    counters: Counters,
    wire_bytes: u64,
    reader_cpu: Duration,
    broker_cpu: Option<Duration>,
}

/// Returns the figures of the measured time. `wire_bytes` are the bytes of the whole run.
///
/// The measured time begins and ends in the middle of a chunk, and sent chunks are not yet
/// confirmed. So if a case kept up with its rate, bytes and messages a second are the values for
/// one record times the rate: bytes of the whole run, and messages of the confirmed records.
fn between(case: &Case, first: &Mark, last: &Mark, emitted: u64, wire_bytes: u64) -> Sample {
    let (before, after) = (&first.counters, &last.counters);
    let seconds = to_f64(after.elapsed_ns - before.elapsed_ns).max(1.0) / 1e9;
    let per_second = |after: u64, before: u64| to_f64(after - before) / seconds;
    // A thread that ended meanwhile counts no more.
    let cpu =
        |after: Duration, before: Duration| after.saturating_sub(before).as_secs_f64() / seconds;
    let confirmed = per_second(after.confirmed, before.confirmed);
    let has_kept_up = case.way != Way::Pacing && !is_saturated(case, confirmed, seconds);
    let due = case.rate.filter(|_| has_kept_up);
    let messages = per_second(after.messages, before.messages);
    // The first record was sent before the load.
    let records = to_f64(emitted - 1).max(1.0);
    let mut figures = BTreeMap::new();
    let mut note = |name: &str, value: f64| figures.insert(name.to_owned(), value);
    note(WRITER_CPU, per_second(after.cpu_ns, before.cpu_ns) / 1e9);
    if case.is_read() {
        note(READER_CPU, cpu(last.reader_cpu, first.reader_cpu));
    }
    if let Some((after, before)) = last.broker_cpu.zip(first.broker_cpu) {
        note(BROKER_CPU, cpu(after, before));
    }
    let bytes = match due {
        Some(rate) if wire_bytes > 0 => to_f64(wire_bytes) / records * rate,
        _ => per_second(last.wire_bytes, first.wire_bytes),
    };
    note(WIRE_BYTES, bytes);
    let messages = match due {
        Some(rate) if confirmed > 0.0 => messages * rate / confirmed,
        _ => messages,
    };
    note(MESSAGES, messages);
    Sample {
        seconds,
        confirmed,
        figures,
        lost: 0,
    }
}

/// Waits until this number of records have arrived, or no more arrive; returns the arrived records.
fn arrived(
    readers: &mut Readers,
    records: u64,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<ReaderReport, Failure> {
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
            return Err(Failure::stopped());
        }
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests;
