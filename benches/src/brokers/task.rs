//! What the writing process is told to do, and what it answers.

use serde::{Deserialize, Serialize};

use super::case::{Broker, Way};

/// Records to write.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Writing {
    pub(super) broker: Broker,
    pub(super) way: Way,
    /// `host:port`.
    pub(super) address: String,
    /// The queue or topic; it exists.
    pub(super) name: String,
    /// RabbitMQ's `x-queue-type`.
    pub(super) queue_type: String,
    /// So many, after the warm-up.
    pub(super) records: u64,
    /// So many first, which are not measured.
    pub(super) warm_up: u64,
    pub(super) seed: u64,
}

/// What writing cost, the warm-up left out.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Written {
    pub(super) wall_seconds: f64,
    /// User and system time of all threads of the writing process.
    pub(super) cpu_seconds: f64,
    /// Records that the broker confirmed.
    pub(super) records: u64,
    /// Messages that the broker confirmed.
    pub(super) messages: u64,
    /// All messages of the process: those of the warm-up and the last one, which says that it ends.
    pub(super) all_messages: u64,
    /// Their bytes, without what the protocol puts around them.
    pub(super) payload_bytes: u64,
}
