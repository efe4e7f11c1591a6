//! The state of a writer's connection and its chunks. The owner and the thread share it.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::number::to_u64;
use baler_common::transport::{Chunk, Failure, Notify as _, Outcome, Sending, WriterState};
use lapin::Confirmation as Answer;
use tokio::sync::Notify;

use super::publish::InFlight;
use crate::config::AmqpConfig;
use crate::error;

/// How long a first connection lasts on which the broker refuses all chunks.
const REFUSED_AT_MOST: Duration = Duration::from_secs(1);

/// The state that the owner and the thread share.
#[derive(Debug)]
pub(super) struct ConnectionState {
    pub(super) writer: WriterState<Broker>,
    /// Wakes the thread: there is a new chunk, or it must end.
    pub(super) work: Notify,
}

/// What the broker did on a connection, and on the connections before.
#[derive(Debug, Default)]
pub(super) struct Broker {
    /// Its `is_blocked` is the one of [`Sending`].
    pub(super) counts: AmqpWriterCounts,
    /// Whether the broker took a chunk on this connection.
    pub(super) is_proven: bool,
    /// The first refusal on this connection since the last confirmed chunk.
    refused_since: Option<Instant>,
    /// The number of connections in a row that were given up because the broker refused all chunks.
    refused_connections: u32,
    /// The end of the last block. The confirm timeout begins again then.
    unblocked_at: Option<Instant>,
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

impl ConnectionState {
    /// A state without a connection.
    pub(super) fn unopened(endpoint: String) -> Self {
        Self {
            writer: WriterState::new(endpoint, Arc::default(), Broker::default()),
            work: Notify::new(),
        }
    }

    /// The events so far.
    pub(super) fn counts(&self) -> AmqpWriterCounts {
        let state = self.writer.lock();
        AmqpWriterCounts {
            is_blocked: state.is_blocked,
            ..state.medium.counts
        }
    }

    /// Forgets the unconfirmed chunks before a new connection is made.
    pub(super) fn reset(&self) {
        self.writer.reset();
        let medium = &mut self.writer.lock().medium;
        *medium = Broker {
            counts: medium.counts,
            refused_connections: medium.refused_connections,
            ..Broker::default()
        };
    }

    pub(super) fn open(&self) {
        // First, because the owner reads on as soon as the writer is open.
        self.writer.lock().medium.counts.connections += 1;
        self.writer.open();
    }

    /// Ends the connection. The thread may close it until `by`.
    pub(super) fn stop(&self, by: Instant) {
        self.writer.lock().medium.stop = Some(by);
        let closed = Failure::retry("publish to", "it was closed");
        self.writer.fail(closed);
        self.work.notify_one();
    }

    /// Reports the outcome of the oldest chunks by this answer and all further ones, and notifies the
    /// owner.
    pub(super) fn take_answers(
        &self,
        first: Option<lapin::Result<Answer>>,
        in_flight: &mut InFlight,
    ) -> Result<(), Failure> {
        let mut state = self.writer.lock();
        let refused_before = state.medium.counts.nacked;
        let mut settled = Ok(());
        let mut next = first;
        while settled.is_ok()
            && let Some(answer) = next.take().or_else(|| in_flight.answer())
        {
            settled = take_answer(&mut state, answer, self.writer.endpoint());
        }
        let settled = settled.and_then(|()| state.medium.refused_too_long());
        let is_urgent = state.medium.counts.nacked > refused_before;
        self.writer.answered(state, is_urgent);
        settled
    }

    /// Notes whether the broker blocks the connection.
    pub(super) fn set_blocked(&self, is_blocked: bool) {
        self.writer.update(|state| {
            let was_blocked = std::mem::replace(&mut state.is_blocked, is_blocked);
            state.medium.counts.blocked += u64::from(is_blocked && !was_blocked);
            if !is_blocked {
                state.medium.unblocked_at = Some(Instant::now());
            }
        });
        self.writer.notify().notify();
    }
}

impl Broker {
    /// Gives up a connection on which the broker has refused all chunks for too long.
    ///
    /// In RabbitMQ 3.10 a channel can refuse for ever if it was opened while a quorum queue had no
    /// leader, although other channels work. A full queue refuses as well, so the patience grows from
    /// connection to connection.
    fn refused_too_long(&mut self) -> Result<(), Failure> {
        let patience = REFUSED_AT_MOST * (1_u32 << self.refused_connections.min(5));
        match self.refused_since.map(|since| since.elapsed()) {
            Some(refused) if refused >= patience => {
                self.refused_connections += 1;
                let message = format!("the broker refused everything for {refused:?} (basic.nack)");
                Err(Failure::retry("publish to", message))
            }
            _ => Ok(()),
        }
    }
}

/// Takes the chunks that may be published now.
///
/// The first chunk of a connection goes alone. A queue may have no leader yet, after a restart or
/// during its declaration. Then the broker refuses some chunks and accepts later ones, which would
/// overtake them.
pub(super) fn take_outgoing(state: &mut Sending<Broker>) -> VecDeque<Chunk> {
    let chunks = match state.medium.is_proven {
        true => std::mem::take(&mut state.queue),
        false if state.queue.len() == state.window.len() => {
            state.queue.drain(..state.queue.len().min(1)).collect()
        }
        false => VecDeque::new(),
    };
    let count = to_u64(chunks.len());
    state.medium.counts.published += count;
    chunks
}

/// Takes the answer to the oldest published chunk.
///
/// # Errors
///
/// The connection is of no use any more: it is lost, or no queue takes the chunk.
pub(super) fn take_answer(
    state: &mut Sending<Broker>,
    answer: lapin::Result<Answer>,
    endpoint: &str,
) -> Result<(), Failure> {
    match answer.map_err(|error| error::of_use("publish to", &error))? {
        Answer::Ack(None) => {
            state.medium.counts.confirmed += 1;
            state.medium.is_proven = true;
            state.medium.refused_since = None;
            state.medium.refused_connections = 0;
            state.answer_oldest(Outcome::Confirmed);
        }
        // The broker returns an unroutable message and then confirms it. The queue is missing for
        // all chunks. The next connection declares it again.
        Answer::Ack(Some(returned)) | Answer::Nack(Some(returned)) => {
            state.medium.counts.returned += 1;
            let message = format!(
                "no queue takes the chunk ({} {}); it is sent again, until a queue is declared \
                 or bound",
                returned.reply_code, returned.reply_text
            );
            return Err(Failure::retry("publish to", message));
        }
        // Without confirms the outcome is unknown. It must never count as confirmed.
        Answer::Nack(None) | Answer::NotRequested => {
            state.medium.counts.nacked += 1;
            state.medium.refused_since.get_or_insert_with(Instant::now);
            let refused = |message| Failure::retry("publish to", message).at(endpoint);
            state.answer_oldest(Outcome::Refused(refused(
                "the broker refused it (basic.nack)",
            )));
            if !state.medium.is_proven {
                // Otherwise the waiting chunks would overtake it.
                state.queue.clear();
                let message = "the broker refused one before it (basic.nack)";
                while state.answer_oldest(Outcome::Refused(refused(message))) {}
            }
        }
    }
    Ok(())
}

/// The time at which the connection counts as lost because its oldest message has no answer.
pub(super) fn overdue_at(
    state: &Sending<Broker>,
    oldest: Option<Instant>,
    config: &AmqpConfig,
) -> Option<Instant> {
    let since = oldest.filter(|_| !state.is_blocked)?;
    let since = state.medium.unblocked_at.map_or(since, |at| since.max(at));
    since.checked_add(config.confirm_timeout)
}
