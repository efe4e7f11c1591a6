//! The receiving end of a connector, and the seam to what keeps chunks that cannot be processed.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::chunk::{ChunkIdentity, ChunkMeta};
use super::error::TransportError;
use super::writer::Order;

/// The receiving end of a connector. Nothing is lost between `receive` and `settle`.
///
/// # What an implementer promises
///
/// 1. A delivery that was not settled with [`Verdict::Ack`] or [`Verdict::Reject`] is delivered
///    again, to this reader or another, after a [`Verdict::Retry`], a lost connection or a
///    restart, as far as the medium keeps chunks ([`ReaderCapability::redelivers`]).
/// 2. Deliveries of one lane come in the order in which they were written, where the capability
///    says so.
/// 3. Offsets of the medium move along the contiguous watermark of a lane: never past a delivery
///    that is not settled, in whatever order the owner settles.
/// 4. "Nothing yet" and "never again" are states, not errors.
/// 5. At most [`set_demand`](Self::set_demand) chunks are handed out and not settled.
///
/// # Why this shape
///
/// Pulling with a deadline, and settling after processing, makes shutdown, back-pressure and tests
/// simple; Kieker's readers push into the processor and acknowledge on receipt, which loses what
/// was in flight.
///
/// A reader around a reader forwards every method, also those that have a default.
pub trait ChunkReader: Send {
    /// What the medium can do.
    fn capability(&self) -> &ReaderCapability;

    /// Bounds how many chunks are handed out and not settled; 0 pauses, keeping the connection and
    /// membership alive.
    fn set_demand(&mut self, chunks: usize);

    /// Waits for something to happen, until `by` at most.
    ///
    /// # Errors
    ///
    /// The medium failed. With a retryable class the reader recovers by itself: call again.
    fn receive(&mut self, by: Instant) -> Result<Received, TransportError>;

    /// Says what became of a delivery.
    ///
    /// # Errors
    ///
    /// The medium failed; the delivery will come again.
    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError>;

    /// What the reader lacks before it is at the end of its medium, after [`Received::Idle`], as a
    /// noun: `broker`, `partitions`; `None` at the end. Cheap; never blocks.
    ///
    /// At the end means: the medium can be reached, it has dealt this reader its part, and all that
    /// it had was handed out. [`Received::Idle`] then means that nothing new was written, before
    /// that it only means "not yet": an owner that stops when it is idle counts from the end.
    /// A reader that cannot know the end is there as soon as the medium would hand out what it has.
    fn waits_for(&self) -> Option<&'static str> {
        None
    }

    /// What the reader knows of its medium beyond deliveries: lag, rebalances, reconnects. Cheap;
    /// never blocks.
    fn stats(&self) -> ReaderStats {
        ReaderStats::default()
    }

    /// Gives back what was not settled and ends, before `by`.
    fn close(self: Box<Self>, by: Instant) -> ReaderCloseReport;
}

/// What a reader's medium can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderCapability {
    /// The medium's name, as in its URI's scheme.
    pub medium: &'static str,
    /// The largest chunk it hands out, in bytes.
    pub max_chunk_bytes: NonZeroUsize,
    /// The order within a lane.
    pub order: Order,
    /// Whether deliveries that were not settled come again.
    pub redelivers: bool,
    /// Whether it ends by itself, when everything was read.
    pub ends: bool,
}

impl ReaderCapability {
    /// A medium with chunks of up to 16 MiB that redelivers and never ends.
    pub fn new(medium: &'static str, order: Order) -> Self {
        let max_chunk_bytes = NonZeroUsize::MIN.saturating_add((16 << 20) - 1);
        Self {
            medium,
            max_chunk_bytes,
            order,
            redelivers: true,
            ends: false,
        }
    }
}

/// Which processes read the chunks of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Readership {
    /// One alone.
    OneProcess,
    /// Perhaps several: members of a group, or competing consumers of a queue.
    Shared,
}

/// What a reader knows of its medium beyond deliveries.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// How far the reader is behind, lane by lane, for those it owns; empty where the medium does
    /// not say.
    pub lag: Vec<LaneLag>,
    /// How often lanes were assigned or taken away, after the first assignment.
    pub rebalances: u64,
    /// How often the reader connected again after the first time.
    pub reconnects: u64,
    /// Whether the medium can be reached now, where the reader knows.
    pub connected: Option<bool>,
    /// For how long the medium held the reader back because of a quota, all in all; as with writers.
    pub throttled: Duration,
}

impl ReaderStats {
    /// Chunks in all lanes that were written and not yet settled, where the medium says.
    pub fn total_lag(&self) -> Option<u64> {
        if self.lag.is_empty() {
            return None;
        }
        let sum = |total: u64, lane: &LaneLag| total.saturating_add(lane.chunks);
        Some(self.lag.iter().fold(0, sum))
    }
}

/// How far a reader is behind in one lane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LaneLag {
    /// The medium's name of the lane: a partition, a queue.
    pub lane: LaneName,
    /// Chunks that were written and not yet settled, as the medium last said.
    pub chunks: u64,
}

/// What happened at a reader.
#[derive(Debug)]
pub enum Received {
    /// From now on this reader owns these lanes of the medium.
    Assigned {
        /// The lanes' names.
        lanes: Vec<LaneName>,
    },
    /// A chunk.
    Chunk(Delivery),
    /// Bytes that cannot be a chunk: a torn or foreign piece that the medium recognized. It is
    /// already out of the way; it is reported so that it can be counted and kept.
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

/// A chunk, received.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// Settle with it.
    pub token: Token,
    /// The container, as sent.
    pub bytes: Bytes,
    /// What the medium carried beside it, if it did.
    pub meta: Option<ChunkMeta>,
    /// Where it was: lane and position, for messages and quarantine.
    pub origin: Origin,
    /// Whether the medium says that it was delivered before.
    pub redelivered: bool,
    /// How many deliveries of it ended without a verdict, over all readers and their lives; 0 where
    /// the medium does not count them. Consumers that die and connections that break both count.
    pub attempts: u32,
}

/// Bytes that the medium itself recognized as no chunk.
#[derive(Debug, Clone)]
pub struct Damaged {
    /// The bytes, as far as they are known.
    pub bytes: Bytes,
    /// Where they were.
    pub origin: Origin,
    /// What is wrong with them.
    pub reason: Box<str>,
}

/// Where a chunk was: enough to find it again.
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

/// What became of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Processed; never deliver it again.
    Ack,
    /// Cannot be processed and was put aside; never deliver it again.
    Reject,
    /// Not processed; deliver it again.
    Retry,
}

/// What became of a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    /// Done, or as good as done.
    Done,
    /// The delivery is no longer this reader's: it will be, or was, delivered again elsewhere. Not
    /// an error.
    Stale,
}

/// How a reader ended.
#[derive(Debug, Default)]
pub struct ReaderCloseReport {
    /// How many deliveries were handed out and not settled.
    pub unsettled: usize,
    /// What went wrong, if anything did.
    pub error: Option<TransportError>,
}

/// A chunk that cannot be processed, or not be delivered.
#[derive(Debug, Clone, Copy)]
pub struct Poison<'a> {
    /// The bytes as they were received.
    pub bytes: &'a [u8],
    /// Where they were.
    pub origin: &'a Origin,
    /// The identity and the contents of the chunk, as far as the medium or the chunk names them.
    pub meta: Option<ChunkMeta>,
    /// What is wrong with it.
    pub reason: &'a str,
    /// Whether it may be a sound chunk: one that crashed its consumer, was refused, or has the
    /// identity of another one. Such a chunk must not be discarded.
    pub is_sound: bool,
}

/// Keeps what cannot be processed.
///
/// Calls may block for as long as the disk or the medium takes.
pub trait Quarantine: Send {
    /// Puts a chunk aside. It must be safe when this returns: it is then rejected at the medium.
    ///
    /// # Errors
    ///
    /// It could not be kept; the chunk is given back to the medium.
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()>;

    /// Puts several chunks aside, oldest first, and says of each whether it is safe.
    ///
    /// One by one unless a quarantine knows better: what makes a chunk safe (a disk's flush, a
    /// broker's confirmation) costs for a group little more than for one.
    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        group.iter().map(|poison| self.put_aside(*poison)).collect()
    }
}

impl<Q: Quarantine + ?Sized> Quarantine for Box<Q> {
    fn put_aside(&mut self, poison: Poison<'_>) -> io::Result<()> {
        (**self).put_aside(poison)
    }

    fn put_group_aside(&mut self, group: &[Poison<'_>]) -> Vec<io::Result<()>> {
        (**self).put_group_aside(group)
    }
}
