//! The messages between the processes of a run: JSON, one message a line.
//!
//! A process writes events to its standard output, and reads orders from its standard input. A pipe
//! keeps the bytes of a killed process, so the oracle gets all events up to the kill. A process
//! writes an event before the event takes effect. So a line that the kill cut short is an event
//! that did not happen.

use std::collections::BTreeMap;
use std::io::{self, BufRead as _};
use std::thread;
use std::time::Duration;

use baler_rig::process::send_to_parent;
use serde::{Deserialize, Serialize};

use super::records::Run;
use crate::exit::Failure;

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Role {
    Consumer,
    Producer,
}

/// One life of a producer or a consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Life {
    pub(super) role: Role,
    pub(super) number: u16,
    pub(super) life: u16,
}

/// Something happened in a producer or a consumer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Event {
    /// The process is connected or listening, as far as it can know.
    Ready,
    /// A producer offers a chunk to the medium for the first time.
    Offered { chunk: u64, runs: Vec<Run> },
    /// The medium confirmed a chunk, or a spool took it.
    Acknowledged { chunk: u64, spooled: bool },
    /// The medium refused a chunk for good.
    Refused { chunk: u64 },
    /// The medium confirmed foreign bytes.
    Poisoned { bytes: Vec<u8> },
    /// A producer ends: the number of records that its threads made, and its controller's counts.
    Produced {
        issued: u64,
        account: ProducerAccount,
    },
    /// A consumer processed a chunk and is about to settle it.
    Processed {
        /// The chunk's identity, where it has one.
        chunk: Option<String>,
        /// Whether the medium marked the chunk as delivered before.
        redelivered: bool,
        /// The unaltered records of the chunk, in order.
        runs: Vec<Run>,
        /// Records with another content, or of another type.
        altered: u64,
    },
    /// A consumer puts foreign bytes aside.
    Quarantined { bytes: Vec<u8> },
    /// A consumer holds a chunk that it processed, and does not settle it.
    Holding,
    /// The resource that a consumer [waits for](baler_common::transport::ChunkReader::waits_for);
    /// empty at the end of its medium.
    WaitsFor { what: String },
    /// A consumer ends: the number of copies of chunks that it recognised and did not process.
    Consumed { duplicates: u64 },
}

/// The figures in a producer's [`Report`](crate::shipping::Report).
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct ProducerAccount {
    pub(super) emitted: u64,
    pub(super) delivered: u64,
    pub(super) spooled: u64,
    pub(super) dropped: BTreeMap<String, u64>,
    pub(super) retries: u64,
}

/// An order to a process.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Order {
    /// A producer: make records, spread over a time.
    Emit { records: u64, over: Duration },
    /// A producer: send pieces of foreign bytes, from this number on.
    Poison { first: u64, count: u64 },
    /// Deliver or process what there is, and end.
    Finish,
    /// A consumer: process the next chunk, and do not settle it until the end.
    Hold,
    /// A consumer: take this long for each chunk.
    Slow { chunk: Duration },
    /// A producer: let no file grow beyond this length; 0 is no limit.
    LimitFiles { bytes: u64 },
}

/// Writes an event. If the parent no longer reads, the process has no purpose and ends.
pub(super) fn tell(event: &Event) {
    if send_to_parent(event).is_err() {
        std::process::exit(1);
    }
}

/// Passes each order to `each`, on a thread of its own, until [`Order::Finish`].
///
/// If standard input ends before that, no order to finish can come, and the process ends at once.
///
/// # Errors
///
/// The thread cannot be started.
pub(super) fn follow_orders(mut each: impl FnMut(Order) + Send + 'static) -> Result<(), Failure> {
    let listen = move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            let Ok(order) = serde_json::from_str(&line) else {
                break;
            };
            each(order);
            if matches!(order, Order::Finish) {
                return;
            }
        }
        std::process::exit(1);
    };
    let thread = thread::Builder::new().name("baler-orders".to_owned());
    thread.spawn(listen).map(drop).map_err(Failure::thread)
}
