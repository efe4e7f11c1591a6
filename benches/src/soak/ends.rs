//! The two child processes.

use std::io::{self, BufRead as _};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_monitoring::{Controller, Overflow};
use baler_rig::lines::{say, understand};
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
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Read {
    pub(super) distinct: u64,
    pub(super) repeated: u64,
    pub(super) missing: u64,
    pub(super) impossible: u64,
    /// How often the medium was away for the reader.
    pub(super) errors: u64,
}

/// How long an end may take.
const PATIENCE: Duration = Duration::from_secs(90);

/// How often the sender catches up with its rate.
const TICK: Duration = Duration::from_millis(10);

/// How long the records of a burst would take at the steady rate.
const BURST_SECONDS: u64 = 10;

/// How many chunks the reader may hold.
const DEMAND: usize = 64;

/// Orders as they come; its end is the parent's.
fn orders() -> Receiver<Order> {
    let (told, orders) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = understand(&line) else { break };
            if told.send(order).is_err() {
                break;
            }
        }
    });
    orders
}

/// Sends until it is told to end.
pub(crate) fn send(task: &Sending) -> Result<(), Failure> {
    let orders = orders();
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
        let tin = i64::try_from(now.as_nanos()).unwrap_or(i64::MAX);
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
    let orders = orders();
    let mut seen = Seen::new(task.capacity);
    let mut decoder = ChunkDecoder::default();
    let mut errors = 0;
    let mut reader = open(&task.uri)?;
    let mut end: Option<(u64, Instant)> = None;
    loop {
        match orders.try_recv() {
            Ok(Order::Reopen) => {
                reader.close(Instant::now() + PATIENCE);
                reader = open(&task.uri)?;
            }
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
            });
        }
        match reader.receive(Instant::now() + TICK) {
            Ok(Received::Chunk(delivery)) => {
                let decoded = decoder.decode(&delivery.bytes);
                let decoded = decoded.map_err(Failure::cannot("decode a chunk"))?;
                for (number, _) in numbers(&decoded.batch) {
                    seen.add(number);
                }
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

fn open(uri: &str) -> Result<Box<dyn ChunkReader>, Failure> {
    let mut reader = endpoint::reader(uri)?;
    reader.set_demand(DEMAND);
    Ok(reader)
}
