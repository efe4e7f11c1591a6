//! The owner's half of a writer whose medium a thread or a client's callbacks serve.
//!
//! ```text
//! owner:  offer -> queue, window -+                        +-> medium
//!                                 | thread, or callbacks   |
//! owner:  delivery reports <------+                        +<- answers
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::chunk::Chunk;
use super::error::{Failure, TransportError};
use super::window::Window;
use super::writer::{
    Capability, CloseReport, DeliveryReport, Notify as _, NotifyCell, Outcome, RejectReason,
    Rejected,
};

/// The state that the owner of a writer shares with the thread, or the callbacks, of its medium.
///
/// It keeps the promises of [`ChunkWriter`](super::ChunkWriter) that are the same for each medium:
///
/// - A chunk is taken only while the writer is open and the window has room.
/// - Each taken chunk has one report at most, or is unconfirmed at the close.
/// - The first failure stays until the writer is opened again. A waiting owner learns of it at once.
/// - The owner is notified of answers that it waits for, and without the lock.
///
/// A connector adds the state of its medium, `M`, under the same lock. It starts its thread, wakes
/// it after an offer, and ends it. A panic of the thread is a [`fail`](Self::fail) with the failure
/// of [`Failure::catching`].
pub struct WriterState<M> {
    endpoint: Box<str>,
    notify: Arc<NotifyCell>,
    state: Mutex<Sending<M>>,
    /// Wakes an owner that waits.
    changed: Condvar,
}

/// The part of a [`WriterState`] behind its lock.
#[derive(Debug)]
pub struct Sending<M> {
    connection: Connection,
    /// Chunks that were offered and not passed to the medium yet.
    pub queue: VecDeque<Chunk>,
    /// Chunks that were offered and not answered, `queue` included.
    pub window: Window,
    /// Reports that the owner has not fetched.
    reports: Vec<DeliveryReport>,
    /// Whether the last offer was refused because there was no room.
    lacks_room: bool,
    /// Whether the medium asks to wait. Then the window counts as full.
    pub is_blocked: bool,
    /// The state of the medium.
    pub medium: M,
}

#[derive(Debug)]
enum Connection {
    Broken(TransportError),
    Closed,
    Open,
}

impl<M> Sending<M> {
    /// Returns the reason why the writer is broken, if it is.
    pub fn failure(&self) -> Option<&TransportError> {
        match &self.connection {
            Connection::Broken(error) => Some(error),
            Connection::Closed | Connection::Open => None,
        }
    }

    /// Whether the writer waits for its medium to be opened, or was never opened.
    pub fn is_closed(&self) -> bool {
        matches!(self.connection, Connection::Closed)
    }

    /// Whether nothing more will be answered: all chunks are, or the writer is broken.
    fn is_settled(&self) -> bool {
        self.window.is_empty() || self.failure().is_some()
    }

    /// Reports the outcome of the chunk that was offered first; returns whether there was one.
    pub fn answer_oldest(&mut self, outcome: Outcome) -> bool {
        let oldest = self.window.remove_oldest();
        let report = oldest.map(|ticket| DeliveryReport { ticket, outcome });
        self.reports.extend(report);
        oldest.is_some()
    }

    /// Reports the outcome of a chunk, unless it has one; returns whether it had none.
    pub fn answer(&mut self, ticket: u64, outcome: Outcome) -> bool {
        let is_there = self.window.remove(ticket);
        if is_there {
            self.reports.push(DeliveryReport { ticket, outcome });
        }
        is_there
    }

    /// Forgets a chunk that has room in the window, but not in the client's own queue.
    pub fn give_back(&mut self, ticket: u64) {
        self.window.remove(ticket);
        self.lacks_room = true;
    }
}

impl<M> WriterState<M> {
    /// Creates the state of a closed writer.
    pub fn new(endpoint: impl Into<Box<str>>, notify: Arc<NotifyCell>, medium: M) -> Self {
        Self {
            endpoint: endpoint.into(),
            notify,
            state: Mutex::new(Sending {
                connection: Connection::Closed,
                queue: VecDeque::new(),
                window: Window::default(),
                reports: Vec::new(),
                lacks_room: false,
                is_blocked: false,
                medium,
            }),
            changed: Condvar::new(),
        }
    }

    /// Returns the endpoint for errors, without credentials.
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// Returns the notification of the owner.
    pub fn notify(&self) -> &Arc<NotifyCell> {
        &self.notify
    }

    /// Locks the state.
    pub fn lock(&self) -> MutexGuard<'_, Sending<M>> {
        // No code that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes an owner that waits.
    pub fn update<T>(&self, change: impl FnOnce(&mut Sending<M>) -> T) -> T {
        let result = change(&mut self.lock());
        self.changed.notify_all();
        result
    }

    /// Closes the writer and forgets all chunks and reports, before the medium is opened again.
    pub fn reset(&self) {
        let mut state = self.lock();
        state.connection = Connection::Closed;
        state.queue.clear();
        state.window.clear();
        state.reports.clear();
        state.lacks_room = false;
        state.is_blocked = false;
    }

    /// Opens the writer, unless it broke while the medium was opened.
    pub fn open(&self) {
        self.update(|state| {
            if state.is_closed() {
                state.connection = Connection::Open;
            }
        });
    }

    /// Waits until the writer is open, until `by` at most.
    ///
    /// # Errors
    ///
    /// It is broken, or not open in time.
    pub fn opened(&self, by: Instant, now: Instant) -> Result<(), TransportError> {
        let state = self.wait(by, now, |state| !state.is_closed());
        match state.is_closed() {
            true => Err(Failure::retry("open", "no answer in time").at(&self.endpoint)),
            false => self.check(&state),
        }
    }

    /// Takes a chunk into the window, or says why not.
    ///
    /// # Errors
    ///
    /// See [`ChunkWriter::offer`](super::ChunkWriter::offer).
    pub fn take(&self, chunk: &Chunk, capability: &Capability) -> Result<(), RejectReason> {
        self.take_into(&mut self.lock(), chunk, capability)
    }

    /// Takes a chunk into the window and the queue. Then the caller wakes its thread.
    ///
    /// # Errors
    ///
    /// See [`ChunkWriter::offer`](super::ChunkWriter::offer).
    pub fn offer(&self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        let mut state = self.lock();
        match self.take_into(&mut state, &chunk, capability) {
            Ok(()) => {
                state.queue.push_back(chunk);
                Ok(())
            }
            Err(reason) => Err(Rejected { chunk, reason }),
        }
    }

    fn take_into(
        &self,
        state: &mut Sending<M>,
        chunk: &Chunk,
        capability: &Capability,
    ) -> Result<(), RejectReason> {
        self.check(state)
            .map_err(|error| RejectReason::Broken(Box::new(error)))?;
        let max_chunk_bytes = capability.max_chunk_bytes.get();
        if chunk.bytes.len() > max_chunk_bytes {
            return Err(RejectReason::TooLarge { max_chunk_bytes });
        }
        state.lacks_room = state.is_blocked || !state.window.take(chunk, capability);
        match state.lacks_room {
            true => Err(RejectReason::Full),
            false => Ok(()),
        }
    }

    fn check(&self, state: &Sending<M>) -> Result<(), TransportError> {
        match &state.connection {
            Connection::Broken(error) => Err(error.again()),
            Connection::Closed => {
                Err(Failure::retry("write to", "it was not opened").at(&self.endpoint))
            }
            Connection::Open => Ok(()),
        }
    }

    /// Appends the reports since the last call.
    ///
    /// # Errors
    ///
    /// The writer is broken or was never opened.
    pub fn delivery_reports(&self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        let mut state = self.lock();
        out.append(&mut state.reports);
        self.check(&state)
    }

    /// Wakes the owner after answers, and notifies it if it waits for them: because it awaits
    /// confirmations or room, or because an answer `is_urgent`, such as a refusal.
    pub fn answered(&self, state: MutexGuard<'_, Sending<M>>, is_urgent: bool) {
        let notifies = is_urgent || state.lacks_room || self.notify.is_awaited();
        drop(state);
        self.changed.notify_all();
        if notifies {
            self.notify.notify();
        }
    }

    /// Notifies an owner whose last offer was refused for lack of room that it may try again.
    pub fn notify_of_room(&self) {
        let lacks_room = self.lock().lacks_room;
        if lacks_room {
            self.notify.notify();
        }
    }

    /// Breaks the writer: all chunks without a report are in doubt. The first failure stays.
    pub fn fail(&self, failure: Failure) {
        self.fail_with(failure.at(&self.endpoint));
    }

    /// Breaks the writer, as [`fail`](Self::fail), by an error with its own endpoint.
    pub fn fail_with(&self, error: TransportError) {
        let mut state = self.lock();
        if state.failure().is_some() {
            return;
        }
        state.connection = Connection::Broken(error);
        // They belong to the owner again.
        state.queue.clear();
        state.is_blocked = false;
        drop(state);
        self.changed.notify_all();
        self.notify.notify();
    }

    /// Waits until `wanted` accepts the state, until `by` at most. Returns the state in either case.
    pub fn wait(
        &self,
        by: Instant,
        now: Instant,
        wanted: impl Fn(&Sending<M>) -> bool,
    ) -> MutexGuard<'_, Sending<M>> {
        let left = by.saturating_duration_since(now);
        let waits = |state: &mut Sending<M>| !wanted(state);
        let waited = self.changed.wait_timeout_while(self.lock(), left, waits);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }

    /// Waits until all chunks are answered or the writer is broken, until `by` at most. Returns the
    /// reason why chunks are unanswered, and breaks the writer then.
    pub fn drain(&self, by: Instant, now: Instant) -> Option<TransportError> {
        let mut state = self.wait(by, now, Sending::is_settled);
        if state.window.is_empty() {
            return None;
        }
        if state.failure().is_none() {
            let message = match state.is_blocked {
                true => "the medium asks to wait",
                false => "not everything was confirmed in time",
            };
            // A later answer would come too late for the owner.
            let error = Failure::retry("close", message).at(&self.endpoint);
            state.connection = Connection::Broken(error);
        }
        state.failure().map(TransportError::again)
    }

    /// Returns the reports that the owner has not fetched, the chunks without one, and this error.
    pub fn close_report(&self, error: Option<TransportError>) -> CloseReport {
        let mut state = self.lock();
        CloseReport {
            delivery_reports: std::mem::take(&mut state.reports),
            unconfirmed: state.window.tickets().collect(),
            error,
        }
    }
}

impl<M: fmt::Debug> fmt::Debug for WriterState<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterState")
            .field("endpoint", &self.endpoint)
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
