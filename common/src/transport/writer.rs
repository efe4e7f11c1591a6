//! The sending end of a connector: its medium's capability, and notifications of its owner.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::chunk::Chunk;
use super::error::TransportError;

/// The sending end of a connector. One call carries one complete, self-contained chunk.
///
/// # Requirements
///
/// 1. [`offer`](Self::offer) never blocks. It takes the whole chunk or returns it.
/// 2. A chunk that was taken is answered exactly once, by its ticket, or stays unconfirmed until
///    the writer breaks. Confirmations of one lane come in the order of its offers if
///    [`Capability::order`] is `PerLane`.
/// 3. `Confirmed` means what [`Capability::durability`] promises, never less.
/// 4. After [`RejectReason::Broken`], or an error of [`delivery_reports`](Self::delivery_reports),
///    all unconfirmed chunks are in doubt: they may or may not arrive. The writer has forgotten
///    them. The owner calls [`reopen`](Self::reopen) and offers them again, in order (go-back-N).
/// 5. The writer calls the one [`Notify`] when a window opens, a confirmation arrives, or the
///    writer breaks. Spurious calls are allowed. It must not call it while it holds a lock that
///    `offer` or `delivery_reports` takes.
/// 6. There is no second unbounded queue. The capability's window limits the chunks in flight,
///    including the client library's own queues.
///
/// # Design
///
/// The collector owns the policies of retries and drops, so it must learn of failures and get
/// chunks back. Accepting and confirming are separate because media confirm late and in batches.
/// Waiting for each chunk would cost one round trip each (lapin: 22 us of CPU a message instead of
/// 4). The trait is synchronous and object-safe, so that neither the collector nor the application
/// needs a runtime.
///
/// A writer that wraps a writer forwards every method, including the ones with a default. The
/// outbox also counts the chunks in flight, but a writer must not rely on it.
pub trait ChunkWriter: Send {
    /// Returns the capability of the medium. It is constant while the writer is open; `reopen` may
    /// change it.
    fn capability(&self) -> &Capability;

    /// Offers a chunk. Never blocks.
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the chunk with the reason.
    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected>;

    /// Appends all reports on chunks since the last call. Never blocks.
    ///
    /// # Errors
    ///
    /// The writer broke; see point 4 above. Reports that were appended before still count.
    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError>;

    /// Sets the receiver of notifications about changes; replaces the previous one.
    fn set_notify(&mut self, notify: Arc<dyn Notify>);

    /// Passes the probes of the program, before the first [`reopen`](Self::reopen). The other end of
    /// some media switches them; by default the writer does not use them.
    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        drop(probes);
    }

    /// Sets whether the owner waits for confirmations. By default it does.
    ///
    /// If it does not wait, a writer need not notify of chunks that the medium took. It need not
    /// even learn of them before the next [`offer`](Self::offer) or
    /// [`delivery_reports`](Self::delivery_reports): a wake-up for each message can cost more than
    /// the message. It still notifies of everything else: a refusal within a second, a window that
    /// was full, a connection that broke. An owner that waits again gets everything that it missed.
    fn set_awaited(&mut self, awaited: bool) {
        // Notifying of everything is correct for every owner.
        let _ = awaited;
    }

    /// Connects again and forgets all unconfirmed chunks. May block until `by`.
    ///
    /// A writer starts closed: the owner calls this before the first offer.
    ///
    /// # Errors
    ///
    /// The medium cannot be reached; the owner tries again later unless the class is final.
    fn reopen(&mut self, by: Instant) -> Result<(), TransportError>;

    /// Returns the writer's figures of its medium beyond chunks and errors. Cheap; never blocks.
    fn stats(&self) -> WriterStats {
        WriterStats::default()
    }

    /// Flushes until `by` at most, then gives up the rest, and accounts for it.
    fn close(self: Box<Self>, by: Instant) -> CloseReport;
}

/// A writer's figures of its medium beyond chunks and errors.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WriterStats {
    /// Whether the medium asks to wait, as RabbitMQ does with `connection.blocked`.
    pub blocked: bool,
    /// The total time for which a quota of the medium held the writer back (Kafka's
    /// `throttle_time_ms`, KIP-219). Times of several brokers add up.
    pub throttled: Duration,
    /// Values of confirmed records that are not in the medium as they are in the records, because
    /// its format has no form for them.
    pub altered: u64,
    /// How often the medium turned out to have lost confirmed chunks: a topic was deleted and created
    /// again, or a replica without them became the leader.
    pub losses: u64,
    /// The chunks of these losses, as far as their number is known: also chunks of other writers, and
    /// chunks that were read before.
    pub lost_chunks: u64,
    /// Further counts of this medium, by name: partitions that were added, limits that were lowered.
    pub counts: Vec<(&'static str, u64)>,
    /// The backlog on local disk, if there is a spool.
    pub spool: SpoolStats,
}

/// The figures of a spool. A chunk counts once in a life of the process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpoolStats {
    /// Chunks put on disk in this life.
    pub spooled_chunks: u64,
    /// The number of their records.
    pub spooled_records: u64,
    /// Chunks that were sent on from disk and confirmed by the medium in this life, including
    /// chunks of earlier lives.
    pub replayed_chunks: u64,
    /// The number of their records.
    pub replayed_records: u64,
    /// Chunks on disk now, including chunks of earlier lives.
    pub waiting_chunks: u64,
    /// Their bytes.
    pub waiting_bytes: u64,
}

/// A writer's report on an offered chunk.
#[derive(Debug)]
pub struct DeliveryReport {
    /// The chunk's ticket.
    pub ticket: u64,
    /// The outcome.
    pub outcome: Outcome,
}

/// The outcome of an offered chunk.
#[derive(Debug)]
pub enum Outcome {
    /// The medium has it, with the durability of the capability.
    Confirmed,
    /// The medium is away, and the chunk was stored on local disk. It is sent on later, in this
    /// life of the process or the next. The spool's figures are in [`WriterStats::spool`].
    Spooled,
    /// The medium refused this chunk; the error's class says whether to offer it again. Other
    /// chunks are not affected.
    Refused(TransportError),
}

/// A chunk that was not taken.
#[derive(Debug)]
pub struct Rejected {
    /// The chunk, unchanged.
    pub chunk: Chunk,
    /// The reason.
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
    /// The medium never takes such a large chunk: split it.
    TooLarge {
        /// The largest chunk it takes, in bytes.
        max_chunk_bytes: usize,
    },
}

/// How a writer ended.
#[derive(Debug, Default)]
pub struct CloseReport {
    /// Reports that arrived while closing.
    pub delivery_reports: Vec<DeliveryReport>,
    /// Tickets that were taken and never confirmed, in order: they may or may not have arrived.
    pub unconfirmed: Vec<u64>,
    /// The error, if any.
    pub error: Option<TransportError>,
}

/// Wakes the owner of a writer. Called from any thread; must not block.
pub trait Notify: Send + Sync {
    /// Something changed.
    fn notify(&self);
}

/// The probes of a program, for a writer whose other end switches them.
///
/// The slot of a probe is its number, from 0 on, in the order in which the probes became known. It
/// never changes.
pub trait Probes: fmt::Debug + Send + Sync {
    /// Returns the name of the program, for operators.
    fn application(&self) -> &str;

    /// Returns the signatures from this slot on. Cheap if there are none.
    fn signatures(&self, from: usize) -> Vec<&'static str>;

    /// Sets for known slots whether their probes may record; the last value of a slot counts. After
    /// it has returned, no new call of a probe that may not is recorded.
    fn switch(&self, verdicts: &[(usize, bool)]);
}

/// Holds the [`Notify`] that `set_notify` of a [`ChunkWriter`](super::ChunkWriter) sets. The
/// writer's threads call it.
#[derive(Default)]
pub struct NotifyCell {
    notify: Mutex<Option<Arc<dyn Notify>>>,
    is_unawaited: AtomicBool,
}

impl NotifyCell {
    /// Sets the receiver of notifications; replaces the previous one.
    pub fn set(&self, notify: Arc<dyn Notify>) {
        *self.notify.lock().unwrap_or_else(PoisonError::into_inner) = Some(notify);
    }

    /// Stores the value of `set_awaited` of a [`ChunkWriter`](super::ChunkWriter). An owner that
    /// begins to wait is notified at once, because a confirmation may be there already.
    pub fn set_awaited(&self, awaited: bool) {
        let was_unawaited = self.is_unawaited.swap(!awaited, Ordering::SeqCst);
        if awaited && was_unawaited {
            self.notify();
        }
    }

    /// Whether the owner waits for confirmations. A writer asks this after it has stored the
    /// confirmation for [`delivery_reports`](super::ChunkWriter::delivery_reports).
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

/// The capability of a writer's medium.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capability {
    /// The medium's name, as in its URI's scheme.
    pub medium: &'static str,
    /// The largest chunk the medium takes, in bytes.
    pub max_chunk_bytes: NonZeroUsize,
    /// The most chunks in flight.
    pub window_chunks: NonZeroUsize,
    /// The most bytes in flight. A single chunk up to `max_chunk_bytes` is taken even if it alone
    /// exceeds this.
    pub window_bytes: NonZeroUsize,
    /// The order in which a reader gets the chunks of one lane.
    pub order: Order,
    /// The meaning of a confirmation.
    pub durability: Durability,
    /// Whether a reader of the same crate can read written chunks again.
    pub readable: bool,
}

impl Capability {
    /// Returns a medium with ample limits: 16 MiB chunks, 64 chunks and 64 MiB in flight.
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
    /// In the order of the offers; a chunk that is sent again may appear again later.
    PerLane,
    /// No order is promised.
    Unordered,
}

/// The meaning of a confirmation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// Nothing: the chunk is discarded or merely handed to the operating system.
    None,
    /// Another process has the chunk in memory, or has processed it.
    Received,
    /// The chunk survives a crash of the process that holds it, but not of the machine.
    Process,
    /// The chunk was forced to stable storage.
    Disk,
    /// A quorum of nodes has the chunk.
    Replicated,
}

#[cfg(test)]
pub(super) mod tests;
