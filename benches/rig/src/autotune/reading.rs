//! The reading process: it lives for all runs.

use std::num::NonZeroU64;
use std::sync::mpsc::TryRecvError;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::record::{Column, RecordBatch};
use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_tcp::{TcpConfig, TcpReader};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use super::day::of_trace;
use crate::failure::Failure;
use crate::lines::{listen, say};
use crate::time::now_ns;

/// What it is told.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Told {
    /// Another run begins, with so many phases.
    Begin { run: u32, phases: usize },
    /// The run is over once so many records have come.
    Report { records: u64 },
}

/// What came of a phase.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Found {
    pub(super) records: u64,
    /// The sum of their trace ids and times.
    pub(super) sum: u64,
    /// From the time at which a record was due to its being decoded: nanoseconds, and how often.
    pub(super) latency: Vec<(u64, u64)>,
}

/// How long a call of receive may wait; what it is told waits as long.
const LOOK: Duration = Duration::from_millis(20);

/// How long what was sent may take to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The longest latency that is told apart: ten minutes, in nanoseconds.
const LONGEST: u64 = 600_000_000_000;

/// An empty histogram of latencies: two digits are enough to compare with a bound.
pub(super) fn histogram() -> Result<Histogram<u64>, Failure> {
    Histogram::new_with_bounds(10_000, LONGEST, 2).map_err(Failure::cannot("make a histogram"))
}

/// Reads until there is nothing more to do; says its port first.
///
/// # Errors
///
/// The medium cannot be read.
pub(super) fn read() -> Result<(), Failure> {
    let mut reader =
        TcpReader::bind(TcpConfig::new("127.0.0.1", 0)).map_err(Failure::cannot("listen"))?;
    reader.set_demand(1_024);
    say(&reader.local_addr().port())?;
    let told = listen::<Told>();
    let mut run = Run::new(0, 0)?;
    let mut report: Option<(u64, Instant)> = None;
    loop {
        match told.try_recv() {
            Ok(Told::Begin {
                run: number,
                phases,
            }) => run = Run::new(number, phases)?,
            Ok(Told::Report { records }) => report = Some((records, Instant::now() + PATIENCE)),
            Err(TryRecvError::Disconnected) => return Ok(()),
            Err(TryRecvError::Empty) => {}
        }
        if let Some((records, by)) = report
            && (run.records >= records || Instant::now() > by)
        {
            report = None;
            say(&run.found())?;
        }
        match reader.receive(Instant::now() + LOOK) {
            Ok(Received::Chunk(delivery)) => {
                run.take(&delivery.bytes)?;
                let settled = reader.settle(delivery.token, Verdict::Ack);
                settled.map_err(Failure::cannot("settle"))?;
            }
            Ok(_) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(Failure::cannot("receive")(error)),
        }
    }
}

/// What arrived of the present run.
struct Run {
    number: i64,
    records: u64,
    decoder: ChunkDecoder,
    phases: Vec<(Found, Histogram<u64>)>,
}

impl Run {
    fn new(number: u32, phases: usize) -> Result<Self, Failure> {
        let phases = (0..phases).map(|_| Ok((Found::default(), histogram()?)));
        Ok(Self {
            number: number.into(),
            records: 0,
            decoder: ChunkDecoder::default(),
            phases: phases.collect::<Result<_, Failure>>()?,
        })
    }

    fn take(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let decoded = self.decoder.decode(bytes);
        let decoded = decoded.map_err(Failure::cannot("decode a chunk"))?;
        let now = now_ns();
        self.count(&decoded.batch, now);
        Ok(())
    }

    fn count(&mut self, batch: &RecordBatch, now: i64) {
        for table in batch.tables() {
            let Some(Column::Signed(traces)) = table.column("traceId") else {
                continue;
            };
            for (trace, due) in traces.iter().zip(table.timestamps()) {
                let (run, phase) = of_trace(*trace);
                let phase = usize::try_from(phase).ok();
                let phase = phase.and_then(|phase| self.phases.get_mut(phase));
                if run == self.number
                    && let Some((found, latency)) = phase
                {
                    self.records += 1;
                    found.records += 1;
                    found.sum = found.sum.wrapping_add_signed(due.wrapping_add(*trace));
                    let late = u64::try_from(now.saturating_sub(*due)).unwrap_or(0);
                    latency.saturating_record(late);
                }
            }
        }
    }

    fn found(&self) -> Vec<Found> {
        let phases = self.phases.iter().map(|(found, latency)| Found {
            latency: latency
                .iter_recorded()
                .filter_map(|value| {
                    let count = NonZeroU64::new(value.count_since_last_iteration())?;
                    Some((value.value_iterated_to(), count.get()))
                })
                .collect(),
            ..*found
        });
        phases.collect()
    }
}
