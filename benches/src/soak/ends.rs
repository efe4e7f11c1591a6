//! The two child processes.

use std::sync::mpsc::TryRecvError;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_monitoring::{Controller, Overflow};
use baler_rig::lines::{listen, say};
use baler_rig::statistics::to_f64;
use baler_rig::time::now_ns;
use serde::{Deserialize, Serialize};

use crate::endpoint;
use crate::failure::Failure;
use crate::numbered::{Numbered, Seen, numbers};

/// To send numbered records at a steady rate until told to end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Sending {
    pub(super) uri: String,
    pub(super) per_second: u32,
    pub(super) seed: u64,
    /// So long, in seconds, records come in bursts of ten seconds' worth: buffers then have sizes
    /// that the steady rate does not reach, and what grows afterwards is no buffer.
    pub(super) bursts: u64,
}

/// To read numbered records until told to end.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Reading {
    pub(super) uri: String,
    /// How many there may be.
    pub(super) capacity: u64,
}

/// What a process is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// The sender: to end, and say a [`Sent`]. The reader: to wait for so many records, and say a
    /// [`Read`].
    End(u64),
    /// The reader: to close and open anew.
    Reopen,
    /// The reader: the broker is back.
    Returned,
}

/// How sending ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) emitted: u64,
    pub(super) delivered: u64,
    /// Whether the account adds up without a loss.
    pub(super) complete: bool,
    pub(super) told: String,
}

/// How reading ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Read {
    pub(super) distinct: u64,
    pub(super) repeated: u64,
    pub(super) missing: u64,
    pub(super) impossible: u64,
    /// How often the medium was away for the reader.
    pub(super) errors: u64,
    /// For each restart the time from the medium's return to the first chunk, in milliseconds.
    pub(super) first_ms: Vec<f64>,
    /// The same to the first record that was emitted after the return.
    pub(super) fresh_ms: Vec<f64>,
}

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often the sender catches up with its rate.
const TICK: Duration = Duration::from_millis(10);

/// How long the records of a burst would take at the steady rate.
const BURST_SECONDS: u64 = 10;

/// How many chunks the reader may hold.
const DEMAND: usize = 64;

/// Sends until it is told to end.
pub(crate) fn send(task: &Sending) -> Result<(), Failure> {
    let orders = listen::<Order>();
    let controller = Controller::builder(endpoint::writer(&task.uri)?)
        .metadata_record(false)
        .overflow(Overflow::Block)
        .start()
        .map_err(Failure::cannot("start a controller"))?;
    let mut numbered = Numbered::new(task.seed);
    let start = Instant::now();
    while orders.try_recv() == Err(TryRecvError::Empty) {
        let now = start.elapsed();
        let until = match now.as_secs() < task.bursts {
            true => Duration::from_secs(now.as_secs() / BURST_SECONDS * BURST_SECONDS),
            false => now,
        };
        let due = until.as_millis() * u128::from(task.per_second) / 1_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        let tin = now_ns();
        while numbered.count() < due {
            controller.emit(numbered.next(tin));
        }
        thread::park_timeout(TICK);
    }
    let report = controller.shutdown(PATIENCE);
    say(&Sent {
        emitted: numbered.count(),
        delivered: report.delivered(),
        complete: report.adds_up() && report.delivered() == numbered.count(),
        told: report.to_string(),
    })
}

/// Reads until it is told to end.
pub(crate) fn read(task: &Reading) -> Result<(), Failure> {
    let orders = listen::<Order>();
    let mut seen = Seen::new(task.capacity);
    let mut decoder = ChunkDecoder::default();
    let mut errors = 0;
    let mut reader = open(&task.uri)?;
    let mut end: Option<(u64, Instant)> = None;
    let mut arrivals = Arrivals::default();
    loop {
        match orders.try_recv() {
            Ok(Order::Reopen) => {
                reader.close(Instant::now() + PATIENCE);
                reader = open(&task.uri)?;
                arrivals.await_from(now_ns());
            }
            Ok(Order::Returned) => arrivals.await_from(now_ns()),
            Ok(Order::End(sent)) => end = Some((sent, Instant::now() + PATIENCE)),
            Err(TryRecvError::Empty) => {}
            // The parent is gone.
            Err(TryRecvError::Disconnected) => return Ok(()),
        }
        if let Some((sent, by)) = end
            && (seen.distinct >= sent || Instant::now() > by)
        {
            reader.close(Instant::now() + PATIENCE);
            return say(&Read {
                distinct: seen.distinct,
                repeated: seen.repeated,
                missing: seen.missing_below(sent),
                impossible: seen.impossible,
                errors,
                first_ms: arrivals.first_ms,
                fresh_ms: arrivals.fresh_ms,
            });
        }
        match reader.receive(Instant::now() + TICK) {
            Ok(Received::Chunk(delivery)) => {
                let decoded = decoder.decode(&delivery.bytes);
                let decoded = decoded.map_err(Failure::cannot("decode a chunk"))?;
                let mut youngest = i64::MIN;
                for (number, tin) in numbers(&decoded.batch) {
                    seen.add(number);
                    youngest = youngest.max(tin);
                }
                arrivals.add(youngest, now_ns());
                // What cannot be settled comes again.
                reader.settle(delivery.token, Verdict::Ack).ok();
            }
            Ok(Received::Damaged(damaged)) => {
                return Err(Failure::new(format!("damaged: {}", damaged.reason)));
            }
            Ok(_) => {}
            Err(error) if error.is_retryable() => errors += 1,
            Err(error) => return Err(Failure::cannot("receive")(error)),
        }
    }
}

/// How soon chunks arrive after the medium has come back.
#[derive(Debug, Default)]
struct Arrivals {
    /// When it came back, until a record arrives that was emitted afterwards.
    returned_ns: Option<i64>,
    has_first: bool,
    first_ms: Vec<f64>,
    fresh_ms: Vec<f64>,
}

impl Arrivals {
    fn await_from(&mut self, returned_ns: i64) {
        self.returned_ns = Some(returned_ns);
        self.has_first = false;
    }

    /// A chunk arrives now whose youngest record was emitted then.
    fn add(&mut self, youngest_ns: i64, now_ns: i64) {
        let Some(returned_ns) = self.returned_ns else {
            return;
        };
        let late = u64::try_from(now_ns.saturating_sub(returned_ns)).unwrap_or(0);
        let ms = to_f64(late) / 1e6;
        if !self.has_first {
            self.has_first = true;
            self.first_ms.push(ms);
        }
        if youngest_ns > returned_ns {
            self.fresh_ms.push(ms);
            self.returned_ns = None;
        }
    }
}

fn open(uri: &str) -> Result<Box<dyn ChunkReader>, Failure> {
    let mut reader = endpoint::reader(uri)?;
    reader.set_demand(DEMAND);
    Ok(reader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_chunk_after_a_return_and_the_first_fresh_record_are_timed() {
        let mut arrivals = Arrivals::default();
        arrivals.add(5, 10);
        arrivals.await_from(20_000_000);
        // A chunk from before the outage, then one with a new record, then more.
        arrivals.add(19_000_000, 25_000_000);
        arrivals.add(21_000_000, 27_000_000);
        arrivals.add(22_000_000, 28_000_000);
        assert_eq!(arrivals.first_ms, [5.0]);
        assert_eq!(arrivals.fresh_ms, [7.0]);
        arrivals.await_from(30_000_000);
        arrivals.add(31_000_000, 32_000_000);
        assert_eq!(
            (arrivals.first_ms, arrivals.fresh_ms),
            (vec![5.0, 2.0], vec![7.0, 2.0])
        );
    }
}
