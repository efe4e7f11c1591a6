//! The sending end of a connector: what its medium can do, and how it wakes its owner.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::chunk::Chunk;
use super::error::TransportError;

/// The sending end of a connector. One call carries one complete, self-contained chunk.
///
/// # What an implementer promises
///
/// 1. [`offer`](Self::offer) never blocks. It takes the chunk whole or hands it back.
/// 2. A chunk that was taken is answered exactly once, by its ticket, or stays unconfirmed until
///    the writer breaks. Confirmations of one lane come in the order of its offers where
///    [`Capability::order`] is `PerLane`.
/// 3. `Confirmed` means what [`Capability::durability`] says, never less.
/// 4. After [`RejectReason::Broken`], or an error of
///    [`delivery_reports`](Self::delivery_reports), everything unconfirmed is in doubt: it may or may
///    not arrive. The owner calls [`reopen`](Self::reopen) and offers it again, in order
///    (go-back-N); the writer has forgotten it.
/// 5. The writer calls the one [`Notify`] when a window opens, a confirmation is there, or the writer
///    broke; spurious calls are fine. It must not be called while a lock is held that `offer`
///    or `confirmations` takes.
/// 6. Nothing waits in a second unbounded queue: what was taken and not confirmed is bounded by
///    the capability's window, the client library's own queues included.
///
/// # Why this shape
///
/// The collector owns retry and drop policy, so it must learn of failures and get chunks back.
/// Accepting and confirming are apart because media confirm late and in batches; waiting for each
/// chunk would cost a round trip each (lapin: 22 us of CPU a message instead of 4).
/// The trait is synchronous and object-safe, so that neither the collector nor the application
/// knows a runtime.
///
/// A writer around a writer forwards every method, also those that have a default. The outbox counts
/// what is in flight as well; a writer must not rely on it.
pub trait ChunkWriter: Send {
    /// What the medium can do; constant while the writer is open, may change in `reopen`.
    fn capability(&self) -> &Capability;

    /// Offers a chunk. Never blocks.
    ///
    /// # Errors
    ///
    /// [`Rejected`] hands the chunk back with the reason.
    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected>;

    /// Appends what became known of chunks since the last call. Never blocks.
    ///
    /// # Errors
    ///
    /// The writer broke; see point 4 above. What was appended before still counts.
    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError>;

    /// Sets the receiver of notifications that something changed; replaces the one before.
    fn set_notify(&mut self, notify: Arc<dyn Notify>);

    /// Says whether the owner waits for confirmations, as it does until this is called.
    ///
    /// While it does not, a writer need not notify of chunks that the medium took, nor learn of them
    /// before the next [`offer`](Self::offer) or [`delivery_reports`](Self::delivery_reports): a wake-up for
    /// each message can cost more than the message. It still notifies of everything else: a refusal within
    /// a second, a window that was full, a connection that broke.
    /// An owner that waits again gets everything that it missed.
    fn set_awaited(&mut self, awaited: bool) {
        // Notifying of everything is right for every owner.
        let _ = awaited;
    }

    /// Connects again and forgets what was unconfirmed. May block until `by`.
    ///
    /// A writer starts closed: the owner calls this before the first offer.
    ///
    /// # Errors
    ///
    /// The medium cannot be reached; the owner tries again later unless the class is final.
    fn reopen(&mut self, by: Instant) -> Result<(), TransportError>;

    /// What the writer knows of its medium beyond chunks and errors. Cheap; never blocks.
    fn stats(&self) -> WriterStats {
        WriterStats::default()
    }

    /// Flushes until `by` at most, then gives up the rest, and accounts for it.
    fn close(self: Box<Self>, by: Instant) -> CloseReport;
}

/// What a writer knows of its medium beyond chunks and errors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterStats {
    /// Whether the medium asks to wait, as RabbitMQ does with `connection.blocked`.
    pub blocked: bool,
    /// For how long the medium held the writer back because of a quota, all in all (Kafka's
    /// `throttle_time_ms`, KIP-219); several brokers that do so at a time all count.
    pub throttled: Duration,
    /// What waits on local disk, if a spool is in between.
    pub spool: SpoolStats,
}

/// What a spool did and holds. A chunk counts once a life of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpoolStats {
    /// Chunks put on disk in this life.
    pub spooled_chunks: u64,
    /// Records in them.
    pub spooled_records: u64,
    /// Chunks sent on from disk and confirmed by the medium in this life, those of earlier lives
    /// included.
    pub replayed_chunks: u64,
    /// Records in them.
    pub replayed_records: u64,
    /// Chunks on disk now, those of earlier lives included.
    pub waiting_chunks: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
}

/// A writer's report on an offered chunk.
#[derive(Debug)]
pub struct DeliveryReport {
    /// The chunk's ticket.
    pub ticket: u64,
    /// What became of it.
    pub outcome: Outcome,
}

/// What became of an offered chunk.
#[derive(Debug)]
pub enum Outcome {
    /// The medium has it, as durably as the capability says.
    Confirmed,
    /// The medium is away; the chunk was put on local disk, from where it is sent on later, in this
    /// life of the process or the next. Its own counts are in [`WriterStats::spool`].
    Spooled,
    /// The medium refused this chunk; its class says whether to offer it again. Other chunks are
    /// not concerned.
    Refused(TransportError),
}

/// A chunk that was not taken.
#[derive(Debug)]
pub struct Rejected {
    /// The chunk, unchanged.
    pub chunk: Chunk,
    /// Why.
    pub reason: RejectReason,
}

impl Rejected {
    /// The connection is gone, or was never made.
    pub fn broken(chunk: Chunk, error: TransportError) -> Self {
        let reason = RejectReason::Broken(Box::new(error));
        Self { chunk, reason }
    }

    /// The window is full.
    pub const fn full(chunk: Chunk) -> Self {
        let reason = RejectReason::Full;
        Self { chunk, reason }
    }

    /// The chunk is above the medium's limit.
    pub const fn too_large(chunk: Chunk, capability: &Capability) -> Self {
        let max_chunk_bytes = capability.max_chunk_bytes.get();
        let reason = RejectReason::TooLarge { max_chunk_bytes };
        Self { chunk, reason }
    }
}

/// Why a chunk was not taken.
#[derive(Debug)]
pub enum RejectReason {
    /// The connection is gone, or was never made: reopen.
    Broken(Box<TransportError>),
    /// The window is full: wait for a notification.
    Full,
    /// The medium never takes so large a chunk: split it.
    TooLarge {
        /// The largest chunk it takes, in bytes.
        max_chunk_bytes: usize,
    },
}

/// How a writer ended.
#[derive(Debug, Default)]
pub struct CloseReport {
    /// What became known while closing.
    pub delivery_reports: Vec<DeliveryReport>,
    /// Tickets taken and never confirmed, in order: they may or may not have arrived.
    pub unconfirmed: Vec<u64>,
    /// What went wrong, if anything did.
    pub error: Option<TransportError>,
}

/// Wakes the owner of a writer. Called from any thread; must not block.
pub trait Notify: Send + Sync {
    /// Something changed.
    fn notify(&self);
}

/// The [`Notify`] that `set_notify` of a [`ChunkWriter`](super::ChunkWriter) sets and the writer's
/// threads call.
#[derive(Default)]
pub struct NotifyCell {
    notify: Mutex<Option<Arc<dyn Notify>>>,
    is_unawaited: AtomicBool,
}

impl NotifyCell {
    /// Sets what to notify; replaces the one before.
    pub fn set(&self, notify: Arc<dyn Notify>) {
        *self.notify.lock().unwrap_or_else(PoisonError::into_inner) = Some(notify);
    }

    /// Notes what `set_awaited` of a [`ChunkWriter`](super::ChunkWriter) says. An owner that begins
    /// to wait is notified at once, since a confirmation may be there already.
    pub fn set_awaited(&self, awaited: bool) {
        let was_unawaited = self.is_unawaited.swap(!awaited, Ordering::SeqCst);
        if awaited && was_unawaited {
            self.notify();
        }
    }

    /// Whether the owner waits for confirmations. A writer asks this after it has put the
    /// confirmation where [`delivery_reports`](super::ChunkWriter::delivery_reports) finds it.
    pub fn is_awaited(&self) -> bool {
        !self.is_unawaited.load(Ordering::SeqCst)
    }
}

impl Notify for NotifyCell {
    /// Wakes the owner, if there is one. No lock is held meanwhile.
    fn notify(&self) {
        let guard = self.notify.lock().unwrap_or_else(PoisonError::into_inner);
        let notify = guard.clone();
        drop(guard);
        if let Some(notify) = notify {
            notify.notify();
        }
    }
}

impl fmt::Debug for NotifyCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NotifyCell")
    }
}

/// What a writer's medium can do.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The medium's name, as in its URI's scheme.
    pub medium: &'static str,
    /// The largest chunk the medium takes, in bytes.
    pub max_chunk_bytes: NonZeroUsize,
    /// How many chunks may be offered and not yet confirmed.
    pub window_chunks: NonZeroUsize,
    /// How many bytes may be offered and not yet confirmed. A single chunk up to
    /// `max_chunk_bytes` is taken even if it alone exceeds this.
    pub window_bytes: NonZeroUsize,
    /// The order in which a reader gets the chunks of one lane.
    pub order: Order,
    /// What a confirmation means.
    pub durability: Durability,
    /// Whether what was written can be read again by a reader of the same crate.
    pub readable: bool,
}

impl Capability {
    /// A medium with ample limits: 16 MiB chunks, 64 chunks and 64 MiB in flight.
    pub fn new(medium: &'static str, order: Order, durability: Durability) -> Self {
        let nonzero = |value: usize| NonZeroUsize::new(value).unwrap_or(NonZeroUsize::MIN);
        Self {
            medium,
            max_chunk_bytes: nonzero(16 << 20),
            window_chunks: nonzero(64),
            window_bytes: nonzero(64 << 20),
            order,
            durability,
            readable: true,
        }
    }
}

/// The order in which a reader gets the chunks of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they were offered; a chunk sent again may appear again later.
    PerLane,
    /// None is promised.
    Unordered,
}

/// What a confirmation means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the chunk is discarded or merely handed to the operating system.
    None,
    /// Another process has the chunk in memory, or has processed it.
    Received,
    /// The chunk survives a crash of the process that holds it, not of the machine.
    Process,
    /// The chunk was forced to stable storage.
    Disk,
    /// A quorum of nodes has the chunk.
    Replicated,
}

#[cfg(test)]
mod tests;
