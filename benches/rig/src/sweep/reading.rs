//! The reading process: it lives for many runs, since joining a group takes seconds.

use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::record::{BatchBuilder, Column, RecordBatch};
use baler_common::transport::{ChunkReader, Received, Verdict};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::load::run_of;
use super::pace::Bursts;
use super::program::Program;
use crate::checksum::Checksum;
use crate::failure::Failure;
use crate::lines::{listen, say};
use crate::plain_row;
use crate::time::now_ns;

/// To read runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) uri: String,
}

/// What it is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Told {
    /// Another run is about to begin.
    Begin {
        run: u32,
        /// Whether its messages are rows.
        plain: bool,
        /// So often it is to say how far it is, at most.
        say_every: Duration,
    },
    /// Records that were due in this time, or before and arrive in it, count for the latency.
    ///
    /// It counts from when their burst was due.
    Window {
        from_ns: i64,
        to_ns: i64,
        bursts: Bursts,
    },
    /// The run is over.
    Report,
}

/// What it says.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Said {
    /// It is open; where it waits for senders, if it does.
    Open { listens_on: Option<String> },
    /// It owns so many lanes now.
    Lanes(usize),
    /// It has begun another run: what arrives from now on is counted there.
    Begun,
    /// So many records of the run have arrived so far.
    Records(u64),
    /// What it found in the run.
    Report(Found),
}

/// What arrived of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) records: u64,
    pub(super) hash: u64,
    pub(super) messages: u64,
    /// Messages of other runs.
    pub(super) foreign: u64,
    /// How many records the latency is of.
    pub(super) timed: u64,
    pub(super) latency: Latency,
}

/// From the time at which a record was to be emitted to its being decoded, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Latency {
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
}

/// How long a call of receive may wait; what it is told waits as long.
const LOOK: Duration = Duration::from_millis(20);

/// How many chunks may be held and not settled.
const DEMAND: usize = 1_024;

/// So many rows are checked at a time.
const ROWS: usize = 512;

/// The longest latency that is told apart: ten minutes, in nanoseconds.
const LONGEST: u64 = 600_000_000_000;

/// Reads until there is nothing more to do.
///
/// # Errors
///
/// The medium cannot be read, or what comes out of it is nothing that was sent.
pub(super) fn read(task: &Reading, program: &dyn Program) -> Result<(), Failure> {
    let opened = program.reader(&task.uri)?;
    let mut reader = opened.reader;
    reader.set_demand(DEMAND);
    say(&Said::Open {
        listens_on: opened.listens_on.map(|address| address.to_string()),
    })?;
    let told = listen::<Told>();
    let mut run = Run::new(0, false, LOOK)?;
    let mut lanes = 0_usize;
    loop {
        match told.try_recv() {
            Ok(Told::Begin {
                run: number,
                plain,
                say_every,
            }) => {
                run = Run::new(number, plain, say_every)?;
                say(&Said::Begun)?;
            }
            Ok(Told::Window {
                from_ns,
                to_ns,
                bursts,
            }) => run.window = Some((from_ns, to_ns, bursts)),
            Ok(Told::Report) => say(&Said::Report(run.report()))?,
            Err(TryRecvError::Disconnected) => break,
            Err(TryRecvError::Empty) => {}
        }
        let received = match reader.receive(Instant::now() + run.say_every.min(LOOK)) {
            Err(error) if error.is_retryable() => continue,
            other => other.map_err(Failure::cannot("receive"))?,
        };
        match received {
            Received::Chunk(delivery) => {
                run.take(&delivery.bytes)?;
                let settled = reader.settle(delivery.token, Verdict::Ack);
                settled.map_err(Failure::cannot("settle"))?;
            }
            Received::Idle => run.check(),
            Received::Assigned { lanes: more } => {
                lanes += more.len();
                say(&Said::Lanes(lanes))?;
            }
            Received::Revoked { lanes: fewer, .. } => {
                lanes = lanes.saturating_sub(fewer.len());
                say(&Said::Lanes(lanes))?;
            }
            Received::Damaged(damaged) => {
                return Err(Failure::new(format!("damaged: {}", damaged.reason)));
            }
            Received::End => break,
        }
        run.tell()?;
    }
    close(reader);
    Ok(())
}

fn close(reader: Box<dyn ChunkReader>) {
    reader.close(Instant::now() + Duration::from_secs(5));
}

/// What arrived of the present run.
struct Run {
    number: i64,
    plain: bool,
    window: Option<(i64, i64, Bursts)>,
    decoder: ChunkDecoder,
    rows: BatchBuilder,
    checksum: Checksum,
    found: Found,
    latency: Histogram<u64>,
    say_every: Duration,
    told: (u64, Instant),
}

impl Run {
    fn new(number: u32, plain: bool, say_every: Duration) -> Result<Self, Failure> {
        let latency = Histogram::new_with_bounds(1_000, LONGEST, 3);
        Ok(Self {
            number: i64::from(number),
            plain,
            window: None,
            decoder: ChunkDecoder::default(),
            rows: BatchBuilder::new(),
            checksum: Checksum::default(),
            found: Found::default(),
            latency: latency.map_err(Failure::cannot("make a histogram"))?,
            say_every,
            told: (0, Instant::now()),
        })
    }

    /// Takes a message apart.
    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        if self.plain {
            // One of an earlier run is a chunk, and no row.
            if plain_row::read_into(bytes, &mut self.rows).is_err() {
                self.found.foreign += 1;
                return Ok(());
            }
            self.found.messages += 1;
            let now = now_ns();
            if let Some(due) = plain_row::end_of(bytes) {
                self.time(due, now);
            }
            if self.rows.len() >= ROWS {
                self.check();
            }
            return Ok(());
        }
        let Ok(decoded) = self.decoder.decode(bytes) else {
            self.found.foreign += 1;
            return Ok(());
        };
        if decoded.batch.is_empty() {
            return Ok(());
        }
        if !self.is_own(&decoded.batch) {
            self.found.foreign += 1;
            return Ok(());
        }
        self.found.messages += 1;
        let now = now_ns();
        for table in decoded.batch.tables() {
            for due in table.timestamps() {
                self.time(*due, now);
            }
        }
        self.checksum.add(&decoded.batch);
        Ok(())
    }

    fn time(&mut self, due: i64, now: i64) {
        // Whatever is due while it is measured, and what arrives then: of a load that is not kept up
        // with, all that arrives was due before.
        let Some((from, to, bursts)) = self.window else {
            return;
        };
        if due < to && now >= from {
            let late = u64::try_from(now.saturating_sub(bursts.of(due))).unwrap_or(0);
            self.latency.saturating_record(late);
        }
    }

    /// Whether the batch's first record is of this run: a chunk has no records of several.
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

    /// Checks the rows that wait for it.
    fn check(&mut self) {
        if self.rows.is_empty() {
            return;
        }
        let batch = self.rows.take();
        if self.is_own(&batch) {
            self.checksum.add(&batch);
        } else {
            self.found.foreign += 1;
        }
    }

    fn tell(&mut self) -> Result<(), Failure> {
        let (told, at) = self.told;
        if self.checksum.records != told && at.elapsed() >= self.say_every {
            say(&Said::Records(self.checksum.records))?;
            self.told = (self.checksum.records, Instant::now());
        }
        Ok(())
    }

    fn report(&mut self) -> Found {
        self.check();
        let ms = |nanos: u64| crate::statistics::to_f64(nanos) / 1e6;
        let at = |share: f64| ms(self.latency.value_at_quantile(share));
        Found {
            records: self.checksum.records.saturating_add(self.checksum.foreign),
            hash: self.checksum.hash,
            timed: self.latency.len(),
            latency: Latency {
                mean_ms: self.latency.mean() / 1e6,
                p50_ms: at(0.5),
                p99_ms: at(0.99),
                p999_ms: at(0.999),
                max_ms: ms(self.latency.max()),
            },
            ..self.found
        }
    }
}
