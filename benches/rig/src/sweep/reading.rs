//! The reading process: it lives for many runs, since joining a group takes seconds.

use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::record::{BatchBuilder, Column, RecordBatch};
use baler_common::transport::{Received, Verdict};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::load::run_of;
use super::program::Program;
use super::writing::Schedule;
use crate::checksum::Checksum;
use crate::failure::Failure;
use crate::lines::{listen, print_line};
use crate::plain_row;
use crate::statistics::to_f64;
use crate::time::now_ns;

/// To read runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) uri: String,
}

/// A command to a reading process.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum ReaderCommand {
    /// Another run is about to begin.
    Begin {
        run: u32,
        /// Whether its messages are rows.
        plain: bool,
    },
    /// The load begins with this schedule.
    Schedule(Schedule),
    /// The run is over.
    Report,
}

/// What a reading process reports.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum ReaderEvent {
    /// It is open; the address where it waits for senders, if it does.
    Open { listens_on: Option<String> },
    /// It owns this number of lanes now.
    Lanes(usize),
    /// It has begun another run: chunks that arrive from now on are counted there.
    Begun,
    /// This number of records of the run have arrived so far.
    Records(u64),
    /// The run is over.
    Report(ReaderReport),
}

/// What arrived of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct ReaderReport {
    pub(super) records: u64,
    pub(super) hash: u64,
    /// How many records the latency is of.
    pub(super) timed: u64,
    pub(super) latency: Latency,
}

/// From the burst in which a record was to be emitted to its being decoded, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Latency {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
}

/// How long a call of receive may wait; commands wait as long. Also how often arrivals are reported.
const LOOK: Duration = Duration::from_millis(20);

/// How many chunks may be unsettled.
const DEMAND: usize = 1_024;

/// The number of rows that are checked at a time.
const ROWS: usize = 512;

/// The longest latency that is told apart: ten minutes, in nanoseconds.
const LONGEST: u64 = 600_000_000_000;

/// Reads until standard input ends.
///
/// # Errors
///
/// The medium cannot be read.
pub(super) fn read(task: &Reading, program: &dyn Program) -> Result<(), Failure> {
    let opened = program.reader(&task.uri)?;
    let mut reader = opened.reader;
    reader.set_demand(DEMAND);
    print_line(&ReaderEvent::Open {
        listens_on: opened.listens_on.map(|address| address.to_string()),
    })?;
    let commands = listen::<ReaderCommand>();
    let mut run = Run::new(0, false)?;
    let mut lanes = 0_usize;
    loop {
        match commands.try_recv() {
            Ok(ReaderCommand::Begin { run: number, plain }) => {
                run = Run::new(number, plain)?;
                print_line(&ReaderEvent::Begun)?;
            }
            Ok(ReaderCommand::Schedule(schedule)) => run.schedule = Some(schedule),
            Ok(ReaderCommand::Report) => print_line(&ReaderEvent::Report(run.report()))?,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {}
        }
        let received = match reader.receive(Instant::now() + LOOK) {
            Err(error) if error.is_retryable() => continue,
            other => other.map_err(Failure::cannot("receive"))?,
        };
        match received {
            Received::Chunk(delivery) => {
                run.take(&delivery.bytes);
                let settled = reader.settle(delivery.token, Verdict::Ack);
                settled.map_err(Failure::cannot("settle"))?;
            }
            Received::Idle => run.check_rows(),
            Received::Assigned { lanes: more } => {
                lanes += more.len();
                print_line(&ReaderEvent::Lanes(lanes))?;
            }
            Received::Revoked { lanes: fewer, .. } => {
                lanes = lanes.saturating_sub(fewer.len());
                print_line(&ReaderEvent::Lanes(lanes))?;
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

/// What arrived of the present run.
struct Run {
    number: i64,
    plain: bool,
    schedule: Option<Schedule>,
    decoder: ChunkDecoder,
    rows: BatchBuilder,
    checksum: Checksum,
    latency: Histogram<u64>,
    /// The number of records in the last report of progress, and its time.
    reported: (u64, Instant),
}

impl Run {
    fn new(number: u32, plain: bool) -> Result<Self, Failure> {
        let latency = Histogram::new_with_bounds(1_000, LONGEST, 3);
        Ok(Self {
            number: i64::from(number),
            plain,
            schedule: None,
            decoder: ChunkDecoder::default(),
            rows: BatchBuilder::new(),
            checksum: Checksum::default(),
            latency: latency.map_err(Failure::cannot("make a histogram"))?,
            reported: (0, Instant::now()),
        })
    }

    /// Decodes a message. Messages of other runs and of other programs are skipped.
    fn take(&mut self, bytes: &[u8]) {
        if self.plain {
            if plain_row::read_into(bytes, &mut self.rows).is_ok() {
                if let Some(due) = plain_row::end_of(bytes) {
                    self.time(due, now_ns());
                }
                if self.rows.len() >= ROWS {
                    self.check_rows();
                }
            }
            return;
        }
        let Ok(decoded) = self.decoder.decode(bytes) else {
            return;
        };
        if !self.is_own(&decoded.batch) {
            return;
        }
        let now = now_ns();
        for table in decoded.batch.tables() {
            for due in table.timestamps() {
                self.time(*due, now);
            }
        }
        self.checksum.add(&decoded.batch);
    }

    /// Counts a record that was due in the measured time, or before it and arrives in it: of a load that
    /// the medium cannot keep up with, all that arrives was due before.
    fn time(&mut self, due: i64, now: i64) {
        let Some(schedule) = self.schedule else {
            return;
        };
        if due < schedule.to_ns && now >= schedule.from_ns {
            let late = now.saturating_sub(schedule.bursts.of(due));
            self.latency
                .saturating_record(u64::try_from(late).unwrap_or(0));
        }
    }

    /// Whether the batch's first record is of this run: no chunk has records of several runs.
    fn is_own(&self, batch: &RecordBatch) -> bool {
        let column = batch
            .tables()
            .first()
            .and_then(|table| table.column("traceId"));
        match column {
            Some(Column::Signed(values)) => values
                .first()
                .is_some_and(|trace| run_of(*trace) == self.number),
            _ => false,
        }
    }

    /// Checks the rows that were read since the last check.
    fn check_rows(&mut self) {
        let batch = self.rows.take();
        if self.is_own(&batch) {
            self.checksum.add(&batch);
        }
    }

    fn report_progress(&mut self) -> Result<(), Failure> {
        let (records, at) = self.reported;
        if self.checksum.records != records && at.elapsed() >= LOOK {
            print_line(&ReaderEvent::Records(self.checksum.records))?;
            self.reported = (self.checksum.records, Instant::now());
        }
        Ok(())
    }

    fn report(&mut self) -> ReaderReport {
        self.check_rows();
        let at = |share: f64| to_f64(self.latency.value_at_quantile(share)) / 1e6;
        ReaderReport {
            records: self.checksum.records.saturating_add(self.checksum.foreign),
            hash: self.checksum.hash,
            timed: self.latency.len(),
            latency: Latency {
                p50_ms: at(0.5),
                p99_ms: at(0.99),
                p999_ms: at(0.999),
            },
        }
    }
}
