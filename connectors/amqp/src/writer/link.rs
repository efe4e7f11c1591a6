//! What the owner of a writer and its thread share.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, Confirmation, Failure, Notify, NotifyCell, Outcome, Rejected, Window,
};

use super::counts::AmqpWriterCounts;

/// What the owner of a writer and its thread share.
#[derive(Debug)]
pub(super) struct Link {
    state: Mutex<State>,
    /// Wakes the thread: chunks were offered, or it is to stop.
    pub(super) work: tokio::sync::Notify,
    /// Wakes an owner that closes.
    answered: Condvar,
    notify: NotifyCell,
}

/// How long the broker may refuse everything at first.
const REFUSED_AT_MOST: Duration = Duration::from_secs(1);

/// What became of a published chunk.
#[derive(Debug)]
pub(super) enum Answer {
    Confirmed,
    Nacked,
    Returned(Box<str>),
    /// It was not published, since the one before it was refused.
    Behind,
}

#[derive(Debug)]
struct State {
    /// Why nothing can be offered.
    failure: Option<Failure>,
    /// Whether the connection never was.
    unopened: bool,
    /// Offered and not yet taken by the thread.
    queue: VecDeque<Chunk>,
    /// What was offered and not answered, `queue` included.
    window: Window,
    /// Answers that the owner has not fetched.
    answers: Vec<(u64, Answer)>,
    counts: AmqpWriterCounts,
    /// Whether the broker took a chunk on this connection.
    proven: bool,
    /// Since when the broker refuses everything on this connection.
    refused_since: Option<Instant>,
    /// How many connections in a row were given up for that.
    fruitless: u32,
    /// The thread is to end, and may say good-bye until then.
    stop: Option<Instant>,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            state: Mutex::new(State {
                failure: Some(Failure::retry("publish to", "it was not opened")),
                unopened: true,
                queue: VecDeque::new(),
                window: Window::default(),
                answers: Vec::new(),
                counts: AmqpWriterCounts::default(),
                proven: false,
                refused_since: None,
                fruitless: 0,
                stop: None,
            }),
            work: tokio::sync::Notify::new(),
            answered: Condvar::new(),
            notify: NotifyCell::default(),
        }
    }
}

impl Link {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets what was not confirmed: a new connection is about to be made.
    pub(super) fn reset(&self) {
        let mut state = self.lock();
        state.queue.clear();
        state.window.clear();
        state.answers.clear();
        state.stop = None;
        state.counts.is_blocked = false;
        state.proven = false;
        state.refused_since = None;
        state.failure = Some(Failure::retry("publish to", "it is being opened"));
    }

    /// The connection is made.
    pub(super) fn open(&self) {
        let mut state = self.lock();
        state.failure = None;
        state.unopened = false;
        state.counts.connections += 1;
    }

    /// Why nothing can be offered.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.lock().failure.clone()
    }

    pub(super) fn counts(&self) -> AmqpWriterCounts {
        self.lock().counts
    }

    /// Takes a chunk unless the window is full or the broker blocks, or hands it back.
    pub(super) fn offer(&self, chunk: Chunk, capability: &Capability) -> Result<(), Rejected> {
        let mut state = self.lock();
        if state.counts.is_blocked || !state.window.take(&chunk, capability) {
            return Err(Rejected::full(chunk));
        }
        state.queue.push_back(chunk);
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// Takes what is to be published into `chunks`, which is empty; yields until when to say
    /// good-bye once the thread is to end.
    ///
    /// The first chunk of a connection goes alone. A queue may have no leader yet, after a restart
    /// or while somebody else declares it: the broker then refuses some chunks and takes those that
    /// follow, which would have overtaken them.
    pub(super) fn take(&self, chunks: &mut VecDeque<Chunk>) -> Option<Instant> {
        let mut state = self.lock();
        if state.proven {
            std::mem::swap(chunks, &mut state.queue);
        } else if state.queue.len() == state.window.len() {
            chunks.extend(state.queue.pop_front());
        }
        let taken = u64::try_from(chunks.len()).unwrap_or(u64::MAX);
        state.counts.published = state.counts.published.saturating_add(taken);
        state.stop
    }

    /// The oldest chunks are answered, in order. [`Link::tell`] follows.
    pub(super) fn answer(&self, answers: &mut Vec<Answer>) {
        let mut state = self.lock();
        let was_proven = state.proven;
        for answer in answers.drain(..) {
            let Some(ticket) = state.window.remove_oldest() else {
                break;
            };
            let refused = matches!(answer, Answer::Nacked);
            match answer {
                Answer::Confirmed => {
                    state.counts.confirmed += 1;
                    state.refused_since = None;
                    state.fruitless = 0;
                }
                Answer::Nacked => {
                    state.counts.nacked += 1;
                    state.refused_since.get_or_insert_with(Instant::now);
                }
                Answer::Returned(_) => state.counts.returned += 1,
                Answer::Behind => {}
            }
            state.answers.push((ticket, answer));
            if !state.proven && refused {
                // Else what waits behind it would go first.
                state.queue.clear();
                while let Some(ticket) = state.window.remove_oldest() {
                    state.answers.push((ticket, Answer::Behind));
                }
            }
            state.proven |= !refused;
        }
        let others_wait = !was_proven && state.proven;
        drop(state);
        if others_wait {
            self.work.notify_one();
        }
        self.answered.notify_all();
    }

    /// Whether the broker has refused everything on this connection for so long that another one
    /// should be tried; yields for how long.
    ///
    /// A channel of RabbitMQ 3.10 that was opened while a quorum queue had no leader can go on
    /// refusing for ever, although the queue has long had one and takes chunks from other channels.
    /// A queue that is full refuses as well, so the patience grows from connection to connection.
    pub(super) fn refused_too_long(&self) -> Option<Duration> {
        let mut state = self.lock();
        let refused = state.refused_since?.elapsed();
        let patience = REFUSED_AT_MOST.saturating_mul(1 << state.fruitless.min(5));
        if refused < patience {
            return None;
        }
        state.fruitless = state.fruitless.saturating_add(1);
        Some(refused)
    }

    /// The broker blocks the connection, or does so no longer.
    pub(super) fn set_blocked(&self, blocked: bool) {
        let mut state = self.lock();
        let counts = &mut state.counts;
        counts.blocked += u64::from(blocked && !counts.is_blocked);
        counts.is_blocked = blocked;
        drop(state);
        self.tell();
    }

    /// Appends what was answered; yields why the connection is gone, if it is.
    pub(super) fn confirmations(
        &self,
        out: &mut Vec<Confirmation>,
        endpoint: &str,
    ) -> Option<Failure> {
        let mut state = self.lock();
        out.extend(
            state
                .answers
                .drain(..)
                .map(|(ticket, answer)| Confirmation {
                    ticket,
                    outcome: answer.outcome(endpoint),
                }),
        );
        state.failure.clone()
    }

    pub(super) fn set_notify(&self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    /// Tells the owner that something changed. Called without the lock of the state.
    pub(super) fn tell(&self) {
        self.notify.notify();
    }

    /// The connection is gone, or could not be made. Of a connection the first reason stays.
    pub(super) fn fail(&self, failure: Failure) {
        let mut state = self.lock();
        if state.failure.is_none() || state.unopened || state.window.is_empty() {
            state.failure = Some(failure);
        }
        state.counts.is_blocked = false;
        drop(state);
        self.answered.notify_all();
        self.tell();
    }

    /// The thread is to end, and may say good-bye until `by`.
    pub(super) fn stop(&self, by: Instant) {
        let mut state = self.lock();
        state.stop = Some(by);
        if state.failure.is_none() {
            state.failure = Some(Failure::retry("publish to", "it was closed"));
        }
        drop(state);
        self.work.notify_one();
    }

    /// Waits until everything is answered, the connection is gone, or `by`; yields why not
    /// everything was answered.
    pub(super) fn drain(&self, by: Instant) -> Option<Failure> {
        let mut state = self.lock();
        if state.unopened {
            return None;
        }
        loop {
            if state.failure.is_some() {
                return state.failure.clone();
            }
            if state.window.is_empty() {
                return None;
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let why = if state.counts.is_blocked {
                    "the broker blocks the connection"
                } else {
                    "not everything was confirmed in time"
                };
                return Some(Failure::retry("close", why));
            }
            let waited = self.answered.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Tickets that are not answered, in order.
    pub(super) fn unconfirmed(&self) -> Vec<u64> {
        self.lock().window.tickets().collect()
    }
}

impl Answer {
    fn outcome(self, endpoint: &str) -> Outcome {
        let refusal = match self {
            Self::Confirmed => return Outcome::Confirmed,
            Self::Nacked => Failure::retry("publish to", "the broker refused it (basic.nack)"),
            Self::Behind => Failure::retry(
                "publish to",
                "the broker refused one before it (basic.nack)",
            ),
            Self::Returned(why) => Failure::last("publish to", format!("no queue takes it: {why}")),
        };
        Outcome::Refused(refusal.at(endpoint))
    }
}

#[cfg(test)]
mod tests {
    use baler_common::transport::{Durability, Order};
    use baler_connector_testkit::ChunkSource;

    use super::*;

    #[test]
    fn first_chunk_of_a_connection_goes_alone_and_nothing_overtakes_it() {
        let capability = Capability::new("amqp", Order::PerLane, Durability::Disk);
        let link = Link::default();
        link.reset();
        link.open();
        let offer = || {
            for chunk in ChunkSource::new(1).take(3) {
                link.offer(chunk, &capability).unwrap();
            }
        };
        let take = || {
            let mut chunks = VecDeque::new();
            link.take(&mut chunks);
            let tickets = chunks.iter().map(|chunk| chunk.ticket);
            tickets.collect::<Vec<_>>()
        };
        let told = || {
            let mut told = Vec::new();
            assert!(link.confirmations(&mut told, "there").is_none());
            told
        };
        offer();
        assert_eq!(take(), [0]);
        assert!(take().is_empty(), "the others wait for its answer");
        link.answer(&mut vec![Answer::Nacked]);
        let refused = told();
        let tickets: Vec<_> = refused.iter().map(|it| it.ticket).collect();
        assert_eq!(tickets, [0, 1, 2]);
        for Confirmation { outcome, .. } in refused {
            assert!(matches!(outcome, Outcome::Refused(error) if error.is_retryable()));
        }
        assert!(take().is_empty());
        offer();
        assert_eq!(take(), [0]);
        link.answer(&mut vec![Answer::Confirmed]);
        assert_eq!(take(), [1, 2]);
        assert_eq!(told().len(), 1);
        let counts = link.counts();
        assert_eq!(
            (counts.published, counts.nacked, counts.confirmed),
            (4, 1, 1)
        );
        // The next connection begins anew.
        link.reset();
        link.open();
        offer();
        assert_eq!(take(), [0]);
    }
}
