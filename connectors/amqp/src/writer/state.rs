//! Where a writer's connection and its chunks stand: no thread, no lock.

use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

use baler_common::transport::{Capability, Chunk, Confirmation, Failure, Rejected, Window};

use super::answer::Answer;
use super::counts::AmqpWriterCounts;
use super::line::Line;
use super::link::Next;
use crate::error;

/// How long the broker may refuse everything at first.
const REFUSED_AT_MOST: Duration = Duration::from_secs(1);

/// How often the thread looks after a connection that is used while nobody waits for answers.
///
/// An owner that offers again takes the answers to what it offered before.
/// One that does not is told of a refusal after twice this time at most.
const WATCH_EVERY: Duration = Duration::from_millis(200);

/// The same where chunks follow each other: an owner that has offered all the time takes the answers
/// all the time. Each look takes as much CPU time as a hundred records.
const WATCH_BUSY_EVERY: Duration = Duration::from_secs(1);

/// How many chunks are offered in this time where they follow each other.
const BUSY_OFFERS: u32 = 5;

/// Where a writer's connection and its chunks stand.
pub(super) struct State {
    /// Why nothing can be offered.
    pub(super) failure: Option<Failure>,
    /// Whether the connection never was.
    pub(super) unopened: bool,
    /// What was published, while there is a connection.
    pub(super) line: Option<Line>,
    /// Offered and not yet published: they wait for the answer to the first chunk.
    queue: VecDeque<Chunk>,
    /// What was offered and not answered, `queue` included.
    pub(super) window: Window,
    /// Answers that the owner has not fetched.
    answers: Vec<(u64, Answer)>,
    /// Whether there are some that it was not told of.
    pub(super) is_untold: bool,
    pub(super) counts: AmqpWriterCounts,
    /// Whether the broker took a chunk on this connection.
    proven: bool,
    /// Since when the broker refuses everything on this connection.
    refused_since: Option<Instant>,
    /// How many connections in a row were given up for that.
    fruitless: u32,
    /// While it is blocked nothing is confirmed, and that is no fault of the connection.
    unblocked_at: Option<Instant>,
    /// Whether the owner waits for confirmations.
    pub(super) awaited: bool,
    /// Whether an offer was handed back since the window was full.
    pub(super) lacks_room: bool,
    watch: Watch,
    /// The thread is to end, and may say good-bye until then.
    pub(super) stop: Option<Instant>,
}

/// How the thread looks after a connection.
#[derive(Debug, Default)]
struct Watch {
    /// Whether it does: not while nothing happens.
    is_on: bool,
    /// When it looks next.
    due: Option<Instant>,
    /// Chunks that were offered since it looked last.
    offers: u32,
    /// Whether it waits for answers, since nobody else would take them.
    looks: bool,
    /// Whether chunks are offered so fast that each is soon followed by another.
    is_fast: bool,
    /// Whether they have been for longer.
    is_busy: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            failure: Some(Failure::retry("publish to", "it was not opened")),
            unopened: true,
            line: None,
            queue: VecDeque::new(),
            window: Window::default(),
            answers: Vec::new(),
            is_untold: false,
            counts: AmqpWriterCounts::default(),
            proven: false,
            refused_since: None,
            fruitless: 0,
            unblocked_at: None,
            awaited: true,
            lacks_room: false,
            watch: Watch::default(),
            stop: None,
        }
    }
}

impl State {
    pub(super) fn reset(&mut self) {
        self.line = None;
        self.queue.clear();
        self.window.clear();
        self.answers.clear();
        self.is_untold = false;
        self.stop = None;
        self.counts.is_blocked = false;
        self.proven = false;
        self.refused_since = None;
        self.unblocked_at = None;
        self.lacks_room = false;
        self.watch = Watch::default();
        self.failure = Some(Failure::retry("publish to", "it is being opened"));
    }

    pub(super) fn open(&mut self, line: Line) {
        self.line = Some(line);
        self.failure = None;
        self.unopened = false;
        self.counts.connections += 1;
    }

    /// Takes a chunk unless the window is full or the broker blocks, or hands it back. Yields whether
    /// the thread has to be woken, to look after the connection.
    ///
    /// The first chunk of a connection goes alone. A queue may have no leader yet, after a restart
    /// or while somebody else declares it: the broker then refuses some chunks and takes those that
    /// follow, which would have overtaken them.
    pub(super) fn offer(
        &mut self,
        chunk: Chunk,
        capability: &Capability,
    ) -> Result<bool, Rejected> {
        let alone = self.window.is_empty();
        if self.counts.is_blocked || !self.window.take(&chunk, capability) {
            self.lacks_room = true;
            return Err(Rejected::full(chunk));
        }
        self.lacks_room = false;
        if self.proven || alone {
            self.publish(chunk);
        } else {
            self.queue.push_back(chunk);
        }
        self.watch.offers = self.watch.offers.saturating_add(1);
        Ok(!std::mem::replace(&mut self.watch.is_on, true))
    }

    fn publish(&mut self, chunk: Chunk) {
        if let Some(line) = &mut self.line {
            self.counts.published = self.counts.published.saturating_add(1);
            line.publish(chunk);
        }
    }

    /// Takes the answers that are there; whether a chunk was refused, or the connection was given up.
    pub(super) fn collect(&mut self) -> bool {
        let mut refused = false;
        let mut found = false;
        while self.failure.is_none()
            && let Some(result) = self.line.as_mut().and_then(Line::next_answer)
        {
            found = true;
            match result {
                Ok(Answer::Returned(why)) => {
                    self.counts.returned += 1;
                    let message = format!(
                        "no queue takes the chunk ({why}); it is sent again, until a queue is \
                         declared or bound"
                    );
                    self.fail(Failure::retry("publish to", message));
                }
                Ok(answer) => {
                    refused |= !matches!(answer, Answer::Confirmed);
                    self.settle(answer);
                }
                Err(error) => self.fail(error::of_use("publish to", &error)),
            }
        }
        self.is_untold |= found;
        if found
            && self.failure.is_none()
            && let Some(time) = self.refused_too_long()
        {
            let message = format!("the broker refused everything for {time:?} (basic.nack)");
            self.fail(Failure::retry("publish to", message));
        }
        refused || self.failure.is_some()
    }

    /// The oldest chunk is answered.
    fn settle(&mut self, answer: Answer) {
        let Some(ticket) = self.window.remove_oldest() else {
            return;
        };
        let refused = matches!(answer, Answer::Nacked);
        match answer {
            Answer::Confirmed => {
                self.counts.confirmed += 1;
                self.refused_since = None;
                self.fruitless = 0;
            }
            Answer::Nacked => {
                self.counts.nacked += 1;
                self.refused_since.get_or_insert_with(Instant::now);
            }
            Answer::Returned(_) | Answer::Behind => {}
        }
        self.answers.push((ticket, answer));
        if self.proven {
            return;
        }
        if refused {
            // Else what waits behind it would go first.
            self.queue.clear();
            while let Some(ticket) = self.window.remove_oldest() {
                self.answers.push((ticket, Answer::Behind));
            }
        } else {
            self.proven = true;
            while let Some(chunk) = self.queue.pop_front() {
                self.publish(chunk);
            }
        }
    }

    /// Whether the broker has refused everything on this connection for so long that another one
    /// should be tried; yields for how long.
    ///
    /// A channel of RabbitMQ 3.10 that was opened while a quorum queue had no leader can go on
    /// refusing for ever, although the queue has long had one and takes chunks from other channels.
    /// A queue that is full refuses as well, so the patience grows from connection to connection.
    fn refused_too_long(&mut self) -> Option<Duration> {
        let refused = self.refused_since?.elapsed();
        let patience = REFUSED_AT_MOST.saturating_mul(1 << self.fruitless.min(5));
        if refused < patience {
            return None;
        }
        self.fruitless = self.fruitless.saturating_add(1);
        Some(refused)
    }

    pub(super) fn set_blocked(&mut self, blocked: bool) {
        let counts = &mut self.counts;
        counts.blocked += u64::from(blocked && !counts.is_blocked);
        counts.is_blocked = blocked;
        if !blocked {
            self.unblocked_at = Some(Instant::now());
        }
    }

    /// Hands the answers to the owner.
    pub(super) fn hand_out(&mut self, out: &mut Vec<Confirmation>, endpoint: &str) {
        self.is_untold = false;
        let answers = self.answers.drain(..);
        out.extend(answers.map(|(ticket, answer)| Confirmation {
            ticket,
            outcome: answer.outcome(endpoint),
        }));
    }

    /// The connection is gone, or could not be made. Of a connection the first reason stays.
    pub(super) fn fail(&mut self, failure: Failure) {
        if self.failure.is_none() || self.unopened || self.window.is_empty() {
            self.failure = Some(failure);
        }
        self.counts.is_blocked = false;
    }

    /// Whether the owner is to be told of answers at once.
    pub(super) fn has_waiter(&self) -> bool {
        self.awaited || self.lacks_room || self.stop.is_some()
    }

    /// Whether the thread is to be woken for answers.
    pub(super) fn wants_answers(&self) -> bool {
        self.has_waiter() || self.watch.looks || !self.proven || self.refused_since.is_some()
    }

    /// Whether the socket need not be watched: what comes on it is read with the next chunk, or when
    /// the thread looks.
    pub(super) fn needs_no_watching(&self) -> bool {
        self.watch.is_fast && !self.wants_answers() && !self.counts.is_blocked
    }

    /// The thread looks after the connection: where chunks were published, and nobody takes the
    /// answers, it does.
    pub(super) fn watch(&mut self, now: Instant) {
        let is_idle = self.line.as_ref().is_none_or(Line::is_empty);
        let watch = &mut self.watch;
        if !watch.is_on {
            return;
        }
        watch.looks &= !is_idle;
        match watch.due {
            Some(due) if due > now => {}
            None => watch.due = Some(now + WATCH_EVERY),
            Some(_) if watch.offers == 0 && is_idle => *watch = Watch::default(),
            Some(_) => {
                let is_fast = watch.offers >= if watch.is_busy { BUSY_OFFERS } else { 1 };
                watch.is_busy = watch.is_fast && is_fast;
                watch.is_fast = is_fast;
                watch.looks = watch.offers == 0;
                watch.offers = 0;
                let every = if watch.is_busy {
                    WATCH_BUSY_EVERY
                } else {
                    WATCH_EVERY
                };
                watch.due = Some(now + every);
            }
        }
    }

    /// What the thread does next.
    pub(super) fn next(&self, now: Instant, confirm_timeout: Duration) -> Next {
        if let Some(by) = self.stop {
            return Next::Stop(by);
        }
        if let Some(failure) = &self.failure {
            return Next::Fail(failure.clone());
        }
        let oldest = self.line.as_ref().and_then(Line::oldest);
        let overdue = oldest
            .filter(|_| !self.counts.is_blocked)
            .map(|since| self.unblocked_at.map_or(since, |at| since.max(at)) + confirm_timeout);
        if overdue.is_some_and(|overdue| overdue <= now) {
            let message = format!("nothing was confirmed for {confirm_timeout:?}");
            return Next::Fail(Failure::retry("publish to", message));
        }
        Next::Wait(overdue.into_iter().chain(self.watch.due).min())
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("State")
            .field("failure", &self.failure)
            .field("counts", &self.counts)
            .finish_non_exhaustive()
    }
}
