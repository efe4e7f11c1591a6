//! The receiving end of a connector.

use std::fmt;
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::chunk::{ChunkIdentity, ChunkMeta};
use super::error::TransportError;
use super::writer::Order;
use crate::non_zero;

/// The receiving end of a connector. Nothing is lost between `receive` and `settle`.
///
/// # Requirements
///
/// 1. A delivery that was not settled with [`Verdict::Ack`] or [`Verdict::Reject`] is delivered
///    again, to this reader or another. This happens after a [`Verdict::Retry`], a lost connection
///    or a restart, as far as the medium keeps chunks ([`ReaderCapability::redelivers`]).
/// 2. Deliveries of one lane of a producer come in the order in which they were written, if the capability
///    promises it.
/// 3. Offsets move along the contiguous watermark of each lane of the medium: never past a delivery
///    that is not settled, in whatever order the owner settles.
/// 4. "Nothing yet" and "never again" are states, not errors.
/// 5. At most [`set_demand`](Self::set_demand) chunks are delivered and not settled. Damage with a
///    token ([`Damaged::token`]) counts as a chunk.
///
/// # Design
///
/// The owner polls with a deadline, and settles after processing. This makes shutdown, backpressure
/// and tests simple. Kieker's readers push into the processor and acknowledge on receipt. That
/// loses the records in flight.
///
/// A reader that wraps a reader forwards every method, including the ones with a default.
pub trait ChunkReader: Send {
    /// Returns the capability of the medium.
    fn capability(&self) -> &ReaderCapability;

    /// Limits how many chunks are delivered and not settled. 0 pauses, but keeps the connection and
    /// the membership alive.
    fn set_demand(&mut self, chunks: usize);

    /// Waits for an event, until `by` at most.
    ///
    /// # Errors
    ///
    /// The medium failed. With a retryable class the reader recovers by itself: call again.
    fn receive(&mut self, by: Instant) -> Result<Received, TransportError>;

    /// Settles a delivery.
    ///
    /// # Errors
    ///
    /// The medium failed; the delivery will come again.
    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError>;

    /// Returns the reason why the reader is not at the end of its medium yet, after
    /// [`Received::Idle`], as a noun: `broker`, `partitions`; `None` at the end. Cheap; never
    /// blocks.
    ///
    /// "At the end" means: the medium can be reached, it has assigned this reader its part, and all
    /// of its chunks were delivered. Then [`Received::Idle`] means that nothing new was written.
    /// Before that, it only means "not yet". An owner that stops when idle counts from the end. A
    /// reader that cannot know the end is at the end as soon as the medium would deliver its
    /// chunks.
    fn waits_for(&self) -> Option<&'static str> {
        None
    }

    /// Returns the reader's figures of its medium beyond deliveries: lag, rebalances, reconnects.
    /// Cheap; never blocks.
    fn stats(&self) -> ReaderStats {
        ReaderStats::default()
    }

    /// Gives back unsettled deliveries and ends, before `by`.
    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport;
}

/// The capability of a reader's medium.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderCapability {
    /// The medium's name, as in its URI's scheme.
    pub medium: &'static str,
    /// The largest chunk it delivers, in bytes.
    pub max_chunk_bytes: NonZeroUsize,
    /// The order within a lane.
    pub order: Order,
    /// Whether unsettled deliveries come again.
    pub redelivers: bool,
    /// Whether it ends by itself after everything was read.
    pub ends: bool,
}

impl ReaderCapability {
    /// Returns a medium with chunks of up to 16 MiB that redelivers and never ends.
    pub fn new(medium: &'static str, order: Order) -> Self {
        let max_chunk_bytes = non_zero!(16 << 20);
        Self {
            medium,
            max_chunk_bytes,
            order,
            redelivers: true,
            ends: false,
        }
    }
}

/// The processes that read the chunks of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readership {
    /// Only one.
    OneProcess,
    /// Perhaps several: members of a group, or competing consumers of a queue.
    Shared,
}

/// A reader's figures of its medium beyond deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// The lag of the reader in each lane that it owns; empty if the medium does not report it.
    pub lag: Vec<LaneLag>,
    /// How often lanes were assigned or taken away, after the first assignment.
    pub rebalances: u64,
    /// How often the reader has connected again.
    pub reconnects: u64,
    /// Whether the medium can be reached now, if the reader knows.
    pub connected: Option<bool>,
    /// The total time for which a quota of the medium held the reader back; as with writers.
    pub throttled: Duration,
    /// Damaged connections that were only counted, because too many came at a time.
    pub unreported: u64,
    /// How often chunks were removed before this reader got them: by the limits of the medium, or
    /// because it was made anew. The reader goes on at the first chunk that is there, and reports
    /// each removal as a retryable error of [`ChunkReader::receive`].
    pub removals: u64,
    /// The removed chunks, as far as their number is known.
    pub removed: u64,
    /// Further counts of this medium, by name: lines that are too long, rotated files.
    pub counts: Vec<(&'static str, u64)>,
}

impl ReaderStats {
    /// Returns the chunks in all lanes that were written and not yet settled, if the medium reports
    /// them.
    pub fn total_lag(&self) -> Option<u64> {
        if self.lag.is_empty() {
            return None;
        }
        let sum = |total: u64, lane: &LaneLag| total.saturating_add(lane.chunks);
        Some(self.lag.iter().fold(0, sum))
    }
}

/// The lag of a reader in one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneLag {
    /// The medium's name of the lane: a partition, a queue.
    pub lane: LaneName,
    /// Chunks that were written and not yet settled, as the medium last reported.
    pub chunks: u64,
}

/// An event at a reader.
#[derive(Debug)]
pub enum Received {
    /// From now on this reader owns these lanes of the medium.
    Assigned {
        /// The lanes' names.
        lanes: Vec<LaneName>,
        /// The last chunk of each producer's lane that earlier readers settled in these lanes, if
        /// the medium keeps it. Lanes of producers may be missing.
        settled: Vec<ChunkIdentity>,
    },
    /// A chunk.
    Chunk(Delivery),
    /// Bytes that cannot be a chunk: a torn or foreign piece that the medium recognised. It is
    /// reported so that it can be counted and kept.
    Damaged(Damaged),
    /// Nothing will ever come again.
    End,
    /// Nothing yet.
    Idle,
    /// These lanes go to another reader: settle or give back the chunks in flight before `by`.
    Revoked {
        /// The lanes' names.
        lanes: Vec<LaneName>,
        /// When the medium stops waiting.
        by: Instant,
    },
}

/// The medium's name for a lane: a partition, a connection, a file.
pub type LaneName = Box<str>;

/// A received chunk.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Names the delivery when it is settled.
    pub token: Token,
    /// The container as it was sent.
    pub bytes: Bytes,
    /// The data that the medium carried beside it, if any.
    pub meta: Option<ChunkMeta>,
    /// Its lane and position, for messages and quarantine.
    pub origin: Origin,
    /// Whether the medium reports that it was delivered before.
    pub redelivered: bool,
    /// How many deliveries of it ended without a verdict, over all readers and their lives; 0 if
    /// the medium does not count them. Crashed consumers and broken connections both count.
    pub attempts: u32,
}

/// Bytes that the medium itself recognised as not being a chunk.
#[derive(Debug, Clone)]
pub struct Damaged {
    /// Names it when it is settled, as a delivery: [`Verdict::Reject`] when it is kept. `None` if the
    /// medium has skipped it already.
    pub token: Option<Token>,
    /// The bytes, as far as they are known.
    pub bytes: Bytes,
    /// Their origin.
    pub origin: Origin,
    /// The reason.
    pub reason: Box<str>,
    /// The peer, if a listener closed its connection because of these bytes. They never were data of
    /// a medium: one example of a kind is enough.
    pub peer: Option<IpAddr>,
}

/// The origin of a chunk: enough to find it again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    /// The endpoint, without credentials.
    pub endpoint: Box<str>,
    /// The medium's name of the lane.
    pub lane: LaneName,
    /// The position in the lane: an offset, a byte position, a count.
    pub position: u64,
}

impl Origin {
    /// The place of a chunk in a medium that has no lanes of its own: those of the chunk's producer.
    pub fn of_chunk(endpoint: &str, identity: &ChunkIdentity) -> Self {
        Self {
            endpoint: endpoint.into(),
            lane: format!("{}/{}", identity.producer, identity.lane).into(),
            position: identity.sequence,
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}@{}", self.endpoint, self.lane, self.position)
    }
}

/// Names a delivery towards its reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// The verdict on a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Processed; never deliver it again.
    Ack,
    /// Cannot be processed and is in quarantine; never deliver it again.
    Reject,
    /// Not processed; deliver it again.
    Retry,
}

/// The result of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done, or equivalent to done.
    Done,
    /// The delivery no longer belongs to this reader: it will be, or was, delivered again
    /// elsewhere. Not an error.
    Stale,
}

/// How a reader ended.
#[derive(Debug, Default)]
pub struct ReaderCloseReport {
    /// The number of deliveries that were not settled.
    pub unsettled: usize,
    /// Damaged connections that were still to be reported, beyond [`ReaderStats::unreported`].
    pub unreported: u64,
    /// The error, if any.
    pub error: Option<TransportError>,
}
