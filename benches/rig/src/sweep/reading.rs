//! The reading processes, and their parent's view of them.
//!
//! They live for many runs, because joining a group takes seconds.

use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{Delivery, ProducerId, Received, Verdict};
use baler_connector_kieker::container;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::load::Schedule;
use super::plain_row;
use super::program::{Order, Program};
use crate::clock::now_ns;
use crate::harness::Failure;
use crate::process::{Child, from_parent, send_to_parent};
use crate::statistics::to_f64;
use crate::usage::busy_time_of;

/// The time limit for a reader to open, and for a group to share its partitions.
const PATIENCE: Duration = Duration::from_secs(60);

/// A group whose assignment has not changed for this long is stable.
const STABLE: Duration = Duration::from_millis(500);

/// A command to a reading process.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum ReaderCommand {
    /// Another run will begin; its messages are rows if `plain`.
    Begin { run: u32, plain: bool },
    /// The load begins with this schedule.
    Schedule(Schedule),
    /// The run is over.
    Report,
}

/// A report of a reading process.
#[derive(Debug, Clone, Serialize, Deserialize)]
enum ReaderEvent {
    /// It is open. The address on which it listens for senders, if it does.
    Open { listens_on: Option<String> },
    /// It owns this number of lanes now.
    Lanes(usize),
    /// It has begun another run: chunks that arrive from now on are counted for it.
    Begun,
    /// This number of records of the run have arrived so far.
    Records(u64),
    /// The run is over.
    Report(ReaderReport),
}

/// The arrived records of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ReaderReport {
    pub(super) records: u64,
    /// The number of records with a measured latency.
    pub(super) timed: u64,
    /// The time from the scheduled burst of a record to its decoding, in milliseconds: the median,
    /// 99 % and 99.9 %.
    pub(super) latency_ms: [f64; 3],
}

/// Readers that share the arriving chunks.
pub(super) struct Readers {
    readers: Vec<Reader>,
    /// The address on which they listen for senders, if they do.
    pub(super) listens_on: Option<String>,
}

/// A reading process and its last reports.
struct Reader {
    child: Child,
    records: u64,
    lanes: usize,
}

impl Readers {
    /// Starts this number of readers and waits until all of them are open and, if `lanes` is set,
    /// share that number of lanes.
    pub(super) fn start(
        program: &dyn Program,
        uri: &str,
        count: u16,
        lanes: Option<u16>,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Failure> {
        let mut all = Self {
            readers: Vec::new(),
            listens_on: None,
        };
        for _ in 0..count {
            all.readers.push(Reader {
                child: Order::Read(uri.to_owned()).start(program)?,
                records: 0,
                lanes: 0,
            });
        }
        for reader in &all.readers {
            match reader.child.answer(PATIENCE, go_on)? {
                ReaderEvent::Open { listens_on } => all.listens_on = listens_on,
                other => return Err(Failure::new(format!("a reader reports {other:?}"))),
            }
        }
        if let Some(lanes) = lanes {
            all.wait_for_lanes(usize::from(lanes), go_on)?;
        }
        Ok(all)
    }

    /// Waits until every lane has an owner, every reader that could own a lane has one, and this is
    /// stable.
    fn wait_for_lanes(
        &mut self,
        lanes: usize,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), Failure> {
        let by = Instant::now() + PATIENCE;
        let mut since = Instant::now();
        let mut before = Vec::new();
        loop {
            self.listen()?;
            let owned: Vec<usize> = self.readers.iter().map(|reader| reader.lanes).collect();
            let owners = owned.iter().filter(|lanes| **lanes > 0).count();
            let shared =
                owned.iter().sum::<usize>() >= lanes && owners >= self.readers.len().min(lanes);
            if owned != before {
                before = owned;
                since = Instant::now();
            }
            if shared && (self.readers.len() == 1 || since.elapsed() >= STABLE) {
                return Ok(());
            }
            if Instant::now() > by || !go_on() {
                let reason = format!("the readers have not shared {lanes} lanes: {before:?}");
                return Err(Failure::new(reason));
            }
            std::thread::park_timeout(Duration::from_millis(10));
        }
    }

    pub(super) fn count(&self) -> usize {
        self.readers.len()
    }

    /// Returns the CPU time of all of them.
    pub(super) fn cpu_time(&self) -> Result<Duration, Failure> {
        let readers = self.readers.iter();
        readers.map(|it| busy_time_of(it.child.pid())).sum()
    }

    /// Begins another run. Returns when all readers have begun it, because a message that arrives
    /// before counts for the previous run.
    pub(super) fn begin(&mut self, run: u32, plain: bool) -> Result<(), Failure> {
        self.send(ReaderCommand::Begin { run, plain })?;
        for reader in &mut self.readers {
            loop {
                match reader.child.answer(PATIENCE, &mut || true)? {
                    ReaderEvent::Begun => break,
                    event => reader.note(&event),
                }
            }
            reader.records = 0;
        }
        Ok(())
    }

    /// Sends a command to all of them.
    pub(super) fn send(&mut self, command: ReaderCommand) -> Result<(), Failure> {
        let mut readers = self.readers.iter_mut();
        readers.try_for_each(|reader| reader.child.send(&command))
    }

    /// Processes all reports that have arrived.
    pub(super) fn listen(&mut self) -> Result<(), Failure> {
        for reader in &mut self.readers {
            while let Some(event) = reader.child.next(Instant::now())? {
                reader.note(&event);
            }
        }
        Ok(())
    }

    /// Returns how many records of the run have arrived, by the last reports.
    pub(super) fn records(&self) -> u64 {
        self.readers.iter().map(|reader| reader.records).sum()
    }

    /// Returns the arrived records of the run at all of them. Latencies are means, weighted by the
    /// number of records.
    pub(super) fn report(&mut self) -> Result<ReaderReport, Failure> {
        self.send(ReaderCommand::Report)?;
        let mut sum = ReaderReport::default();
        for reader in &self.readers {
            let report = loop {
                if let ReaderEvent::Report(report) = reader.child.answer(PATIENCE, &mut || true)? {
                    break report;
                }
            };
            sum.records += report.records;
            sum.timed += report.timed;
            for (sum, one) in sum.latency_ms.iter_mut().zip(report.latency_ms) {
                *sum += one * to_f64(report.timed);
            }
        }
        sum.latency_ms = sum.latency_ms.map(|it| it / to_f64(sum.timed.max(1)));
        Ok(sum)
    }
}

impl Reader {
    fn note(&mut self, event: &ReaderEvent) {
        match event {
            ReaderEvent::Records(records) => self.records = *records,
            ReaderEvent::Lanes(lanes) => self.lanes = *lanes,
            ReaderEvent::Begun | ReaderEvent::Open { .. } | ReaderEvent::Report(_) => {}
        }
    }
}

/// The longest wait of a call of receive, and so of commands. Also the interval of reports.
const LOOK: Duration = Duration::from_millis(20);

/// The most unsettled chunks.
const DEMAND: usize = 1_024;

/// The longest latency of the histogram: ten minutes, in nanoseconds.
const LONGEST: u64 = 600_000_000_000;

/// Reads until standard input ends.
///
/// # Errors
///
/// The medium cannot be read.
pub(super) fn read(uri: &str, program: &dyn Program) -> Result<(), Failure> {
    let opened = program.reader(uri)?;
    let mut reader = opened.reader;
    reader.set_demand(DEMAND);
    send_to_parent(&ReaderEvent::Open {
        listens_on: opened.listens_on.map(|address| address.to_string()),
    })?;
    let commands = from_parent::<ReaderCommand>();
    let mut run = Run::new(0, false)?;
    let mut lanes = 0_usize;
    loop {
        match commands.try_recv() {
            Ok(ReaderCommand::Begin { run: number, plain }) => {
                run = Run::new(number, plain)?;
                send_to_parent(&ReaderEvent::Begun)?;
            }
            Ok(ReaderCommand::Schedule(schedule)) => run.schedule = Some(schedule),
            Ok(ReaderCommand::Report) => send_to_parent(&ReaderEvent::Report(run.report()))?,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {}
        }
        let received = match reader.receive(Instant::now() + LOOK) {
            Err(error) if error.is_retryable() => continue,
            other => other.map_err(Failure::cannot("receive"))?,
        };
        match received {
            Received::Chunk(delivery) => {
                run.take(&delivery);
                let settled = reader.settle(delivery.token, Verdict::Ack);
                settled.map_err(Failure::cannot("settle"))?;
            }
            Received::Idle => {}
            Received::Assigned { lanes: more, .. } => {
                lanes += more.len();
                send_to_parent(&ReaderEvent::Lanes(lanes))?;
            }
            Received::Revoked { lanes: fewer, .. } => {
                let left = lanes.checked_sub(fewer.len());
                lanes = left.expect("a reader gives back only lanes that it got");
                send_to_parent(&ReaderEvent::Lanes(lanes))?;
            }
            Received::Damaged(damaged) => {
                return Err(Failure::new(format!("damaged: {}", damaged.reason)));
            }
            Received::End => break,
        }
        run.report_progress()?;
    }
    reader.close(Instant::now() + Duration::from_secs(5));
    Ok(())
}

/// The producer of the chunks of a run. Other programs have random ones.
pub(super) fn producer_of(run: u32) -> ProducerId {
    ProducerId::new(run.into())
}

/// The arrived records of the present run.
struct Run {
    number: u32,
    plain: bool,
    schedule: Option<Schedule>,
    decoder: ChunkDecoder,
    records: u64,
    latency: Histogram<u64>,
    /// The number of records in the last report of progress.
    reported: u64,
    last_report: Instant,
}

impl Run {
    fn new(number: u32, plain: bool) -> Result<Self, Failure> {
        let latency = Histogram::new_with_bounds(1_000, LONGEST, 3);
        Ok(Self {
            number,
            plain,
            schedule: None,
            decoder: container::decoder(),
            records: 0,
            latency: latency.map_err(Failure::cannot("make a histogram"))?,
            reported: 0,
            last_report: Instant::now(),
        })
    }

    /// Decodes a chunk, or reads the beginning of a row. Messages of other runs and of other
    /// programs are skipped.
    fn take(&mut self, delivery: &Delivery) {
        if self.plain {
            let own = plain_row::read(&delivery.bytes).filter(|(run, _)| *run == self.number);
            if let Some((_, due)) = own {
                self.time(due, now_ns());
                self.records += 1;
            }
            return;
        }
        let Ok(decoded) = self.decoder.decode(&delivery.bytes) else {
            return;
        };
        // A native container holds it, for others the medium carries it.
        let carried = delivery.meta.map(|it| it.identity);
        let producer = decoded.summary.identity().or(carried);
        let producer = producer.map(|it| it.producer);
        if producer != Some(producer_of(self.number)) {
            return;
        }
        let now = now_ns();
        for table in decoded.batch.tables() {
            for due in table.timestamps() {
                self.time(*due, now);
            }
        }
        self.records += decoded.batch.len() as u64;
    }

    /// Counts a record that was due in the measured time, or was due before it and arrives in it.
    /// If the medium cannot keep up with the load, all arriving records were due before.
    fn time(&mut self, due: i64, now: i64) {
        let Some(schedule) = self.schedule else {
            return;
        };
        // A row of another program may have any time.
        let is_due = (schedule.first_ns..schedule.to_ns).contains(&due);
        if is_due && now >= schedule.from_ns {
            // Readings of two processes' clocks: a record may seem to arrive early.
            let late = (now - schedule.burst_of(due)).max(0);
            self.latency.saturating_record(late.cast_unsigned());
        }
    }

    fn report_progress(&mut self) -> Result<(), Failure> {
        if self.records != self.reported && self.last_report.elapsed() >= LOOK {
            send_to_parent(&ReaderEvent::Records(self.records))?;
            self.reported = self.records;
            self.last_report = Instant::now();
        }
        Ok(())
    }

    fn report(&self) -> ReaderReport {
        let quantile_ms = |share: f64| to_f64(self.latency.value_at_quantile(share)) / 1e6;
        ReaderReport {
            records: self.records,
            timed: self.latency.len(),
            latency_ms: [0.5, 0.99, 0.999].map(quantile_ms),
        }
    }
}
