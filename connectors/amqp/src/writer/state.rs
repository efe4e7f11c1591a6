//! The state of a writer's connection and its chunks. The owner and the thread share it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::number::to_u64;
use baler_common::transport::{
    Capability, Chunk, DeliveryReport, Failure, Notify as _, NotifyCell, Outcome, Rejected, Window,
};
use lapin::Confirmation as Answer;

use super::publish::InFlight;
use crate::config::AmqpConfig;
use crate::error;

/// How long a first connection lasts on which the broker refuses all chunks.
const REFUSED_AT_MOST: Duration = Duration::from_secs(1);

/// The state that the owner and the thread share.
#[derive(Debug)]
pub(super) struct WriterState {
    state: Mutex<State>,
    /// Wakes the thread: there is a new chunk, or it must end.
    pub(super) work: tokio::sync::Notify,
    /// Wakes an owner that closes.
    answered: Condvar,
    pub(super) notify: NotifyCell,
}

/// A connection and its chunks: no thread, no I/O.
#[derive(Debug, Default)]
pub(super) struct State {
    /// The reason why no chunk can be offered.
    pub(super) failure: Option<Failure>,
    /// Whether there was a connection.
    was_opened: bool,
    /// Offered and not published.
    outgoing: VecDeque<Chunk>,
    /// Offered and not answered, `outgoing` included.
    pub(super) window: Window,
    /// The reports that the owner has not fetched.
    pub(super) delivery_reports: Vec<DeliveryReport>,
    pub(super) counts: AmqpWriterCounts,
    /// Whether the broker took a chunk on this connection.
    pub(super) is_proven: bool,
    /// The first refusal on this connection since the last confirmed chunk.
    refused_since: Option<Instant>,
    /// The number of connections in a row that were given up because the broker refused all chunks.
    refused_connections: u32,
    /// The end of the last block. The confirm timeout begins again then.
    unblocked_at: Option<Instant>,
    /// Whether the last offer was refused because the window was full.
    lacks_room: bool,
    /// The thread must end, and may close the connection until then.
    pub(super) stop: Option<Instant>,
}

/// Events at a writer since it was made, over all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmqpWriterCounts {
    /// Connections that were made, with all declarations on them.
    pub connections: u64,
    /// Chunks that were published, repetitions included.
    pub published: u64,
    /// Chunks that the broker confirmed.
    pub confirmed: u64,
    /// Chunks that the broker refused (`basic.nack`). Their owner offers them again.
    pub nacked: u64,
    /// Chunks that no queue took (`basic.return`). Each ended its connection.
    pub returned: u64,
    /// How often the broker blocked the connection, because it was short of memory or disk.
    pub blocked: u64,
    /// Whether the connection is blocked now. Then the window counts as full.
    pub is_blocked: bool,
}

impl WriterState {
    /// A state without a connection.
    pub(super) fn unopened() -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                failure: Some(Failure::retry("publish to", "it was not opened")),
                ..State::default()
            }),
            work: tokio::sync::Notify::new(),
            answered: Condvar::new(),
            notify: NotifyCell::default(),
        })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the outcome of the oldest chunks by this answer and all further ones, and notifies the
    /// owner.
    pub(super) fn take_answers(
        &self,
        first: Option<lapin::Result<Answer>>,
        in_flight: &mut InFlight,
        endpoint: &str,
    ) -> Result<(), Failure> {
        let mut state = self.lock();
        let refused_before = state.counts.nacked;
        let mut settled = Ok(());
        let mut next = first;
        while settled.is_ok()
            && let Some(answer) = next.take().or_else(|| in_flight.answer())
        {
            settled = state.take_answer(answer, endpoint);
        }
        let settled = settled.and_then(|()| state.refused_too_long());
        let is_urgent = state.lacks_room || state.counts.nacked > refused_before;
        drop(state);
        self.answered.notify_all();
        if is_urgent || self.notify.is_awaited() {
            self.notify.notify();
        }
        settled
    }

    /// Notes whether the broker blocks the connection.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        let mut state = self.lock();
        let counts = &mut state.counts;
        counts.blocked += u64::from(is_blocked && !counts.is_blocked);
        counts.is_blocked = is_blocked;
        if !is_blocked {
            state.unblocked_at = Some(Instant::now());
        }
        drop(state);
        self.notify.notify();
    }

    /// Reports that the connection is lost or could not be made.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        state.failure = Some(failure);
        state.counts.is_blocked = false;
        drop(state);
        self.answered.notify_all();
        self.notify.notify();
    }

    /// Waits until all chunks are answered or the connection is lost, until `by` at most. Returns the
    /// reason why chunks are unanswered.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        let waits = |state: &mut State| state.failure.is_none() && !state.window.is_empty();
        let left = by.saturating_duration_since(Instant::now());
        let waited = self.answered.wait_timeout_while(self.lock(), left, waits);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        match &state.failure {
            Some(_) if !state.was_opened => None,
            Some(failure) => Some(failure.clone()),
            None if state.window.is_empty() => None,
            None if state.counts.is_blocked => {
                Some(Failure::retry("close", "the broker blocks the connection"))
            }
            None => Some(Failure::retry(
                "close",
                "not everything was confirmed in time",
            )),
        }
    }
}

impl State {
    /// Forgets the unconfirmed chunks before a new connection is made.
    pub(super) fn reset(&mut self) {
        *self = Self {
            failure: Some(Failure::retry("publish to", "it is being opened")),
            was_opened: self.was_opened,
            counts: self.counts,
            refused_connections: self.refused_connections,
            ..Self::default()
        };
        self.counts.is_blocked = false;
    }

    pub(super) fn open(&mut self) {
        // The owner has set `stop` if it gave up waiting.
        if self.stop.is_none() {
            self.failure = None;
        }
        self.was_opened = true;
        self.counts.connections += 1;
    }

    /// Takes a chunk, or returns it if the window is full or the broker blocks the connection.
    pub(super) fn offer(&mut self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        self.lacks_room = self.counts.is_blocked || !self.window.take(&chunk, capability);
        if self.lacks_room {
            return Err(Rejected::full(chunk));
        }
        self.outgoing.push_back(chunk);
        Ok(())
    }

    /// Takes the chunks that may be published now.
    ///
    /// The first chunk of a connection goes alone. A queue may have no leader yet, after a restart or
    /// during its declaration. Then the broker refuses some chunks and accepts later ones, which would
    /// overtake them.
    pub(super) fn take_outgoing(&mut self) -> VecDeque<Chunk> {
        let chunks = match self.is_proven {
            true => std::mem::take(&mut self.outgoing),
            false if self.outgoing.len() == self.window.len() => {
                self.outgoing.drain(..self.outgoing.len().min(1)).collect()
            }
            false => VecDeque::new(),
        };
        let count = to_u64(chunks.len());
        self.counts.published += count;
        chunks
    }

    /// Takes the answer to the oldest published chunk.
    ///
    /// # Errors
    ///
    /// The connection is of no use any more: it is lost, or no queue takes the chunk.
    pub(super) fn take_answer(
        &mut self,
        answer: lapin::Result<Answer>,
        endpoint: &str,
    ) -> Result<(), Failure> {
        match answer.map_err(|error| error::of_use("publish to", &error))? {
            Answer::Ack(None) => {
                self.counts.confirmed += 1;
                self.is_proven = true;
                self.refused_since = None;
                self.refused_connections = 0;
                self.answer(Outcome::Confirmed);
            }
            // The broker returns an unroutable message and then confirms it. The queue is missing for
            // all chunks. The next connection declares it again.
            Answer::Ack(Some(returned)) | Answer::Nack(Some(returned)) => {
                self.counts.returned += 1;
                let message = format!(
                    "no queue takes the chunk ({} {}); it is sent again, until a queue is declared \
                     or bound",
                    returned.reply_code, returned.reply_text
                );
                return Err(Failure::retry("publish to", message));
            }
            // Without confirms the outcome is unknown. It must never count as confirmed.
            Answer::Nack(None) | Answer::NotRequested => {
                self.counts.nacked += 1;
                self.refused_since.get_or_insert_with(Instant::now);
                let refused = |message| Failure::retry("publish to", message).at(endpoint);
                self.answer(Outcome::Refused(refused(
                    "the broker refused it (basic.nack)",
                )));
                if !self.is_proven {
                    // Otherwise the waiting chunks would overtake it.
                    self.outgoing.clear();
                    let message = "the broker refused one before it (basic.nack)";
                    while self.answer(Outcome::Refused(refused(message))) {}
                }
            }
        }
        Ok(())
    }

    /// Reports the outcome of the oldest chunk, if there is one.
    fn answer(&mut self, outcome: Outcome) -> bool {
        let Some(ticket) = self.window.remove_oldest() else {
            return false;
        };
        self.delivery_reports
            .push(DeliveryReport { ticket, outcome });
        true
    }

    /// Gives up a connection on which the broker has refused all chunks for too long.
    ///
    /// In RabbitMQ 3.10 a channel can refuse for ever if it was opened while a quorum queue had no
    /// leader, although other channels work. A full queue refuses as well, so the patience grows from
    /// connection to connection.
    fn refused_too_long(&mut self) -> Result<(), Failure> {
        let patience = REFUSED_AT_MOST.saturating_mul(1 << self.refused_connections.min(5));
        match self.refused_since.map(|since| since.elapsed()) {
            Some(refused) if refused >= patience => {
                self.refused_connections += 1;
                let message = format!("the broker refused everything for {refused:?} (basic.nack)");
                Err(Failure::retry("publish to", message))
            }
            _ => Ok(()),
        }
    }

    /// The time at which the connection counts as lost because its oldest message has no answer.
    pub(super) fn overdue_at(
        &self,
        oldest: Option<Instant>,
        config: &AmqpConfig,
    ) -> Option<Instant> {
        let since = oldest.filter(|_| !self.counts.is_blocked)?;
        let since = self.unblocked_at.map_or(since, |at| since.max(at));
        since.checked_add(config.confirm_timeout)
    }
}
