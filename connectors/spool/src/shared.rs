//! What the owner's side and the spool's thread share.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, Confirmation, Notify, NotifyCell, TransportError,
};

use crate::watch::SpoolWatch;

/// What the owner's side and the thread share. While chunks go straight through, nothing here is
/// touched.
pub(crate) struct SpoolState {
    state: Mutex<State>,
    /// Something to do for the thread.
    work: Condvar,
    /// Something that the owner waits for in `reopen` or `close`.
    changed: Condvar,
    pub(crate) owner: Arc<NotifyCell>,
    /// The owner's side is to look whether the medium stalls.
    pub(crate) look: AtomicBool,
    pub(crate) watch: SpoolWatch,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) rung: bool,
    /// Counts the owner's reopenings: what was taken before is forgotten.
    pub(crate) generation: u64,
    /// Taken and without an outcome, in order.
    pub(crate) pending: VecDeque<Chunk>,
    pub(crate) pending_bytes: usize,
    pub(crate) outcomes: Vec<Confirmation>,
    /// The medium's writer, on its way to the thread.
    pub(crate) diverted: Option<Diverted>,
    /// The medium's writer, opened or not by the thread that tried.
    pub(crate) opened: Option<(Box<dyn ChunkWriter>, Result<(), TransportError>)>,
    /// The medium's writer, on its way back to the owner's side: chunks go straight through.
    pub(crate) returned: Option<Box<dyn ChunkWriter>>,
    /// Whether chunks are taken on the detour; none while that is being found out.
    pub(crate) verdict: Option<Result<(), Arc<TransportError>>>,
    /// The owner asks to try the disk and the medium now.
    pub(crate) attempt: bool,
    /// What the medium can do, as it said when it was opened last.
    pub(crate) capability: Option<Capability>,
    pub(crate) blocked: bool,
    pub(crate) stop: Stop,
    pub(crate) ended: bool,
    /// What went wrong while the thread ended.
    pub(crate) end_error: Option<TransportError>,
}

/// A writer that is not open any more, or was never.
pub(crate) struct Diverted {
    pub(crate) inner: Box<dyn ChunkWriter>,
    pub(crate) since: Instant,
    pub(crate) error: Option<TransportError>,
    /// Whether it confirmed anything since it was opened.
    pub(crate) worked: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stop {
    #[default]
    No,
    /// Put what is pending on disk, send on what can be, and end.
    Close(Instant),
    /// End now.
    Drop,
}

impl SpoolState {
    pub(crate) fn new(watch: SpoolWatch) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            work: Condvar::new(),
            changed: Condvar::new(),
            owner: Arc::default(),
            look: AtomicBool::new(false),
            watch,
        })
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and wakes the thread.
    pub(crate) fn order<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        state.rung = true;
        drop(state);
        self.work.notify_one();
        result
    }

    /// Changes the state and tells the owner.
    pub(crate) fn tell<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        self.owner.notify();
        result
    }

    /// Waits until the thread is wanted, or this time has come.
    pub(crate) fn wait_for_work(&self, until: Option<Instant>) {
        let mut state = self.lock();
        while !state.rung {
            let Some(until) = until else {
                let waited = self.work.wait(state);
                state = waited.unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            let waited = self.work.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.rung = false;
    }

    /// Waits until the state is as wanted, until `by` at most; hands it out either way.
    pub(crate) fn wait(
        &self,
        by: Instant,
        wanted: impl Fn(&State) -> bool,
    ) -> MutexGuard<'_, State> {
        let left = by.saturating_duration_since(Instant::now());
        let waited = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !wanted(state));
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl State {
    pub(crate) fn push(&mut self, chunk: Chunk) {
        self.pending_bytes = self.pending_bytes.saturating_add(chunk.bytes.len());
        self.pending.push_back(chunk);
    }

    pub(crate) fn pop(&mut self) -> Option<Chunk> {
        let chunk = self.pending.pop_front()?;
        self.pending_bytes = self.pending_bytes.saturating_sub(chunk.bytes.len());
        Some(chunk)
    }

    pub(crate) fn take_pending(&mut self) -> VecDeque<Chunk> {
        self.pending_bytes = 0;
        std::mem::take(&mut self.pending)
    }
}

/// Wakes the spool's thread.
pub(crate) struct SpoolNotification(pub(crate) Weak<SpoolState>);

impl Notify for SpoolNotification {
    fn notify(&self) {
        if let Some(shared) = self.0.upgrade() {
            shared.order(|_| ());
        }
    }
}
