//! The state that the owner's side and the spool's thread share: pending chunks, orders and status.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, DeliveryReport, Notify, NotifyCell, SpoolStats, TransportError,
    Waiting, Window, WriterStats,
};

/// The time that the disk gets at a close, whatever the deadline.
pub(crate) const DISK_GRACE: Duration = Duration::from_millis(500);

/// The state that the owner's side and the spool's thread share.
///
/// It is no [`WriterState`](baler_common::transport::WriterState): a spool takes chunks while its
/// medium is closed, and keeps each until the medium or the disk has it, also after a failure.
pub(crate) struct SpoolState {
    state: Mutex<State>,
    /// Notified when there is work for the thread.
    work: Condvar,
    /// Notified of changes that the owner waits for in `reopen` or `close`.
    changed: Condvar,
    pub(crate) owner: NotifyCell,
    pub(crate) watch: SpoolWatch,
}

#[derive(Default)]
pub(crate) struct State {
    /// Whether the thread was woken since its last look.
    is_woken: bool,
    /// The number of the owner's reopenings. Chunks of earlier generations are forgotten.
    pub(crate) generation: u64,
    /// Accepted chunks without an outcome, in order.
    pub(crate) pending: VecDeque<Chunk>,
    /// Tickets and bytes of `pending`.
    pub(crate) window: Window,
    pub(crate) outcomes: Vec<DeliveryReport>,
    /// The medium's writer before the thread takes it, or after an attempt to open it.
    pub(crate) opened: Option<(Box<dyn ChunkWriter>, Result<(), TransportError>)>,
    /// Whether chunks are accepted; none while this is undecided.
    pub(crate) verdict: Option<Result<(), Arc<TransportError>>>,
    /// Whether the owner orders an attempt at the disk and the medium now.
    pub(crate) attempt: bool,
    /// The medium's capability when it was last opened.
    pub(crate) capability: Option<Capability>,
    /// The figures of the medium's writer at the thread's last look.
    pub(crate) stats: WriterStats,
    pub(crate) stop: Stop,
    pub(crate) ended: bool,
    /// The error with which the thread ended.
    pub(crate) end_error: Option<TransportError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stop {
    #[default]
    No,
    /// Send on all chunks that can be sent, put the rest on disk, and end.
    Close(Instant),
    /// End now.
    Drop,
}

impl SpoolState {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            work: Condvar::new(),
            changed: Condvar::new(),
            owner: NotifyCell::default(),
            watch: SpoolWatch::default(),
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // No code that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the thread.
    pub(crate) fn order<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        state.is_woken = true;
        drop(state);
        self.work.notify_one();
        result
    }

    /// Changes the state and notifies the owner.
    pub(crate) fn tell<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.owner.notify();
        result
    }

    /// Waits until the thread is woken, until this time at most.
    pub(crate) fn wait_for_work(&self, until: Instant) {
        let left = time_left(until);
        let sleeps = |state: &mut State| !state.is_woken;
        let waited = self.work.wait_timeout_while(self.lock(), left, sleeps);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_woken = false;
    }

    /// Waits until `wanted` accepts the state, until `by` at most. Returns the state in either
    /// case.
    pub(crate) fn wait(
        &self,
        by: Instant,
        wanted: impl Fn(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), time_left(by), |state| !wanted(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    /// Adds the outcome of a chunk, if the chunk is pending. Returns whether it was pending.
    pub(crate) fn conclude(&mut self, confirmation: DeliveryReport) -> bool {
        let ticket = confirmation.ticket;
        // It is nearly always the oldest chunk.
        let place = self.pending.iter().position(|it| it.ticket == ticket);
        let removed = place.and_then(|place| self.pending.remove(place));
        if removed.is_some() {
            self.window.remove(ticket);
            self.outcomes.push(confirmation);
        }
        removed.is_some()
    }

    /// Forgets the accepted chunks. Returns their tickets.
    pub(crate) fn forget(&mut self) -> Vec<u64> {
        self.window.clear();
        self.pending.drain(..).map(|chunk| chunk.ticket).collect()
    }
}

/// Wakes the spool's thread.
pub(crate) struct SpoolNotification(pub(crate) Weak<SpoolState>);

impl Notify for SpoolNotification {
    fn notify(&self) {
        if let Some(state) = self.0.upgrade() {
            state.order(|_| ());
        }
    }
}

/// The route of the chunks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SpoolRoute {
    /// The spool is not open.
    #[default]
    Closed,
    /// Chunks go straight to the medium.
    Direct,
    /// The medium is away. Chunks go to disk once that lasts.
    Away,
    /// Chunks go from disk to the medium, in order; new chunks follow them.
    Replaying,
}

impl SpoolRoute {
    /// Returns the name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Direct => "direct",
            Self::Away => "away",
            Self::Replaying => "replaying",
        }
    }
}

/// The route of chunks, counts and errors of a spool.
///
/// `found` and `spooled` together are `replayed`, `refused`, `lost` and `waiting`, in chunks.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct SpoolStatus {
    /// The route of the chunks.
    pub route: SpoolRoute,
    /// The chunks that were spooled, that were replayed, and that wait.
    pub stats: SpoolStats,
    /// Records that wait on disk.
    pub waiting_records: u64,
    /// Chunks that an earlier life left on disk.
    pub found_chunks: u64,
    /// Records in these chunks.
    pub found_records: u64,
    /// Chunks from disk that the medium refused for good; they are in the folder `refused`.
    pub refused_chunks: u64,
    /// Records in these chunks.
    pub refused_records: u64,
    /// Chunks that were on disk and could not be read back. Their damaged bytes are in `refused`,
    /// or in `damaged` of the chunks' folder.
    pub lost_chunks: u64,
    /// Records in these chunks; known once no chunk is left on disk.
    pub lost_records: u64,
    /// Damaged pieces found on disk.
    pub damaged_pieces: u64,
    /// The number of times that the disk did not accept a chunk: full, at the limit, forbidden.
    pub disk_failures: u64,
    /// The medium's last error, while it is away.
    pub medium_error: Option<Arc<TransportError>>,
    /// The wait for a medium that is away or accepts no chunk from disk.
    pub waiting: Waiting,
    /// The disk's last error, until it works again.
    pub disk_error: Option<Arc<TransportError>>,
}

impl SpoolStatus {
    /// Counts a chunk that is on disk now.
    pub(crate) fn add_spooled(&mut self, records: u64, bytes: usize) {
        self.stats.spooled_chunks += 1;
        self.stats.spooled_records += records;
        self.stats.waiting_chunks += 1;
        self.stats.waiting_bytes += bytes as u64;
        self.waiting_records += records;
    }
}

/// Reads a spool's status while the spool has another owner. Cheap, and usable from any thread.
#[derive(Debug, Clone, Default)]
pub struct SpoolWatch {
    status: Arc<Mutex<SpoolStatus>>,
}

impl SpoolWatch {
    /// Returns the current status.
    pub fn status(&self) -> SpoolStatus {
        self.lock().clone()
    }

    pub(crate) fn stats(&self) -> SpoolStats {
        self.lock().stats
    }

    pub(crate) fn update(&self, change: impl FnOnce(&mut SpoolStatus)) {
        change(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, SpoolStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the time until this one; none if it has passed.
pub(crate) fn time_left(by: Instant) -> Duration {
    by.saturating_duration_since(Instant::now())
}

/// Lowers a figure of what waits on disk, to 0 at least. A chunk that a failed write left behind
/// was never counted, but may leave in place of a smaller one that was.
pub(crate) fn take(count: &mut u64, less: u64) {
    *count = count.saturating_sub(less);
}
