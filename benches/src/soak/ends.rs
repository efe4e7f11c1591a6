//! The two child processes.

use std::sync::mpsc::TryRecvError;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_common::transport::{ChunkReader, Received, Verdict};
use baler_monitoring::{Controller, Overflow};
use baler_rig::clock::now_ns;
use baler_rig::process::{CHILD, Child, from_parent, order, parse_line, tell_parent};
use baler_rig::workload::{Executions, Workload};
use serde::{Deserialize, Serialize};

use super::medium;
use super::seen::{Arrivals, Seen, numbers};
use crate::{Failure, Outcome};

/// The task of a child process.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Task {
    /// To read numbered records until [`Order::End`].
    Read {
        uri: String,
        /// The number of records at most.
        capacity: u64,
    },
    /// To send numbered records at a steady rate until [`Order::End`].
    Send {
        uri: String,
        per_second: u32,
        /// For this many seconds records come in bursts of ten seconds' worth. Buffers then have sizes
        /// that the steady rate does not reach, and later growth is not of a buffer.
        bursts: u64,
    },
}

impl Task {
    /// Starts a process for it.
    pub(super) fn start(&self) -> Result<Child, Failure> {
        Child::with_order(&[CHILD], self)
    }
}

/// Carries out the parent's task, if this is a child process of `soak`; else `None`.
pub fn child() -> Option<Result<Outcome, Failure>> {
    let task = parse_line(&order()?);
    let done = task.and_then(|task| match task {
        Task::Read { uri, capacity } => read(&uri, capacity),
        Task::Send {
            uri,
            per_second,
            bursts,
        } => send(&uri, per_second, bursts),
    });
    Some(done.map(|()| Outcome::silent()))
}

/// An order to a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Order {
    /// The sender ends and answers [`Sent`]. The reader waits for this number of records and answers
    /// [`Read`].
    End(u64),
    /// The reader closes and opens again.
    Reopen,
    /// The broker is back.
    Returned,
}

/// How sending ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Sent {
    pub(super) emitted: u64,
    /// Whether the account adds up without a loss.
    pub(super) complete: bool,
}

/// How reading ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Read {
    pub(super) repeated: u64,
    pub(super) missing: u64,
    pub(super) impossible: u64,
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

/// Sends until [`Order::End`].
fn send(uri: &str, per_second: u32, bursts: u64) -> Result<(), Failure> {
    let orders = from_parent::<Order>();
    let controller = Controller::builder(medium::writer(uri)?)
        .metadata_record(false)
        .overflow(Overflow::Block)
        .start()
        .map_err(Failure::cannot("start a controller"))?;
    let workload = Workload::new(1);
    let mut executions = Executions::new(workload.names());
    // Records of the workload whose trace ids count up from 0.
    let mut calls = (0_i64..).zip(workload);
    let mut emitted = 0;
    let start = Instant::now();
    while orders.try_recv() == Err(TryRecvError::Empty) {
        let now = start.elapsed();
        let until = match now.as_secs() < bursts {
            true => Duration::from_secs(now.as_secs() / BURST_SECONDS * BURST_SECONDS),
            false => now,
        };
        let due = until.as_millis() * u128::from(per_second) / 1_000;
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        let tin = now_ns();
        while emitted < due
            && let Some((number, mut call)) = calls.next()
        {
            call.tout = tin.saturating_add(call.tout - call.tin);
            call.tin = tin;
            call.trace_id = number;
            controller.emit(executions.of(&call));
            emitted += 1;
        }
        thread::park_timeout(TICK);
    }
    let report = controller.shutdown(PATIENCE);
    tell_parent(&Sent {
        emitted,
        complete: report.adds_up() && report.delivered() == emitted,
    })
}

/// Reads until [`Order::End`].
fn read(uri: &str, capacity: u64) -> Result<(), Failure> {
    let orders = from_parent::<Order>();
    let mut seen = Seen::new(capacity);
    let mut decoder = ChunkDecoder::default();
    let mut reader = open(uri)?;
    let mut end: Option<(u64, Instant)> = None;
    let mut arrivals = Arrivals::default();
    loop {
        match orders.try_recv() {
            Ok(Order::Reopen) => {
                reader.close(Instant::now() + PATIENCE);
                reader = open(uri)?;
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
            return tell_parent(&Read {
                repeated: seen.repeated,
                missing: seen.missing_of(sent),
                impossible: seen.impossible,
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
                // A chunk that cannot be settled comes again.
                reader.settle(delivery.token, Verdict::Ack).ok();
            }
            Ok(Received::Damaged(damaged)) => {
                return Err(Failure::new(format!("damaged: {}", damaged.reason)));
            }
            Ok(_) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(Failure::cannot("receive")(error)),
        }
    }
}

fn open(uri: &str) -> Result<Box<dyn ChunkReader>, Failure> {
    let mut reader = medium::reader(uri)?;
    reader.set_demand(DEMAND);
    Ok(reader)
}
