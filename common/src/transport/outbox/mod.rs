//! Delivering chunks in order over a writer that fails: go-back-N.
//!
//! ```text
//! push -> [unconfirmed, in order] -> offer ~~ writer ~~ confirmations -> Fate
//!              ^ resend everything after a reopen |
//! ```

mod entry;
mod fate;
mod guarded;
mod recovery;
mod settings;
mod stats;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use entry::Entry;
pub use fate::{End, Fate};
pub use guarded::guarded;
pub use settings::OutboxSettings;
pub use stats::{Connection, OutboxStats};

use super::chunk::Chunk;
use super::error::{RetryClass, TransportError};
use super::notify::Notify;
use super::waiting::Waiting;
use super::writer::{ChunkWriter, Confirmation, Outcome, RejectReason};

/// Drives one writer so that every chunk ends with exactly one [`Fate`], in order where the medium
/// has an order.
///
/// A pure state machine: it has no thread and no clock, the owner calls [`drive`](Self::drive) when
/// the writer's [`Notify`] was told or the returned time has come.
/// Only the writer's own calls may block, and of these only `reopen` and `close`.
///
/// After a failure everything unconfirmed is offered again in order, before anything new
/// (go-back-N): chunks may arrive twice, and first arrivals keep their order.
/// A chunk that the medium refused for now is offered again before any later chunk that was not
/// yet offered; those already offered may overtake it.
///
/// A panic of the writer counts as a broken connection.
pub struct Outbox {
    writer: Box<dyn ChunkWriter>,
    settings: OutboxSettings,
    /// What has no fate yet, by ascending ticket.
    unconfirmed: VecDeque<Entry>,
    /// Every entry before this position was offered: with a large window most were, and looking
    /// through them for each chunk would cost more than the chunk.
    offered_to: usize,
    bytes: usize,
    in_flight_chunks: usize,
    in_flight_bytes: usize,
    link: Link,
    last_error: Option<Arc<TransportError>>,
    waiting: Waiting,
    /// Whether the medium took, spooled or refused a chunk for good since the last look.
    moved: bool,
    /// Failures since the last confirmation.
    failures: u32,
    draws: u64,
    counts: Counts,
    confirmations: Vec<Confirmation>,
    /// Whether the last offers left chunks behind.
    held_up: bool,
    /// Whether the owner waits for fates.
    awaited: bool,
    /// What the writer was told of that.
    told_awaited: bool,
}

#[derive(Debug, Clone)]
enum Link {
    /// To be reopened at this time, or at once.
    Closed(Option<Instant>),
    Open,
    /// Opening failed for good.
    Failed(Arc<TransportError>),
}

#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    retries: u64,
    opened: u64,
    broken: u64,
}

/// For how long chunks may be in flight before their fates are asked for, whether anybody waits for
/// them or not. One wake-up a second at most costs nothing that could be measured.
const OVERDUE: Duration = Duration::from_secs(1);

impl Outbox {
    /// An outbox over a writer that is not open yet; `notify` is told when to call
    /// [`drive`](Self::drive).
    pub fn new(
        mut writer: Box<dyn ChunkWriter>,
        settings: OutboxSettings,
        notify: Arc<dyn Notify>,
    ) -> Self {
        writer.set_notify(notify);
        Self {
            writer,
            settings,
            unconfirmed: VecDeque::new(),
            offered_to: 0,
            bytes: 0,
            in_flight_chunks: 0,
            in_flight_bytes: 0,
            link: Link::Closed(None),
            last_error: None,
            waiting: Waiting::default(),
            moved: false,
            failures: 0,
            draws: 0,
            counts: Counts::default(),
            confirmations: Vec::new(),
            held_up: false,
            awaited: true,
            told_awaited: true,
        }
    }

    /// Says whether the owner waits for fates, as it does until this is called.
    ///
    /// While it does not, those of chunks that the medium took may become known no sooner than at the
    /// second next [`drive`](Self::drive), which nothing may ask for; see
    /// [`ChunkWriter::set_awaited`]. Refusals and failures are told of as ever, and so is everything
    /// while chunks wait that the writer does not take, or there is no room for more.
    pub fn set_awaited(&mut self, awaited: bool) {
        self.awaited = awaited;
        self.tell_awaited(false);
    }

    fn tell_awaited(&mut self, is_overdue: bool) {
        let awaited = self.awaited
            || self.is_held_up()
            || !self.has_room()
            || self.failures > 0
            || is_overdue;
        if awaited != std::mem::replace(&mut self.told_awaited, awaited) {
            let medium = self.writer.capability().medium;
            // A writer that panics here does so again where that is noticed.
            guarded("write to", medium, || self.writer.set_awaited(awaited)).unwrap_or_default();
        }
    }

    /// What the writer's medium can do; it may change when the writer is reopened.
    pub fn capability(&self) -> &super::Capability {
        self.writer.capability()
    }

    /// Whether another chunk is welcome.
    ///
    /// An owner with a source that can wait stops taking from it while this is false.
    /// The bound is soft: the pieces of a chunk that had to be split may pass it.
    pub fn has_room(&self) -> bool {
        self.unconfirmed.is_empty()
            || (self.unconfirmed.len() < self.settings.max_chunks
                && self.bytes < self.settings.max_bytes)
    }

    /// Whether chunks wait that the writer did not take when they were last offered: the medium is
    /// slower than the owner.
    pub fn is_held_up(&self) -> bool {
        self.held_up
    }

    /// Whether every chunk has its fate.
    pub fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// The lowest ticket without a fate: everything below it has one.
    pub fn first_ticket(&self) -> Option<u64> {
        self.unconfirmed.front().map(|entry| entry.chunk.ticket)
    }

    /// Appends a chunk; its ticket must be above all before. Nothing is offered before the next
    /// [`drive`](Self::drive).
    pub fn push(&mut self, chunk: Chunk, now: Instant) {
        self.bytes = self.bytes.saturating_add(chunk.bytes.len());
        self.waiting.go_on(now, None);
        self.unconfirmed.push_back(Entry::new(chunk, now));
    }

    /// Does what can be done now; appends the fates that became known to `fates`.
    ///
    /// Returns when to call again at the latest, if nothing else happens.
    /// May block in the writer's `reopen`, until `reopen_timeout` from now or `by`, whichever is
    /// earlier.
    pub fn drive(
        &mut self,
        now: Instant,
        by: Option<Instant>,
        fates: &mut Vec<Fate>,
    ) -> Option<Instant> {
        if matches!(self.link, Link::Open) {
            self.confirm(now, fates);
        }
        self.give_up(now, fates);
        if let Link::Closed(at) = self.link
            && at.is_none_or(|at| at <= now)
        {
            self.reopen(now, by, fates);
        }
        while matches!(self.link, Link::Open) {
            self.offer(now, fates);
            // Media that confirm at once need no second call.
            let unconfirmed = self.unconfirmed.len();
            if matches!(self.link, Link::Open) && self.in_flight_chunks > 0 {
                self.confirm(now, fates);
            }
            // Nobody tells of room that was made here.
            if self.unconfirmed.len() == unconfirmed || !self.leaves_some() {
                break;
            }
        }
        if let Link::Failed(error) = &self.link {
            let error = Arc::clone(error);
            for entry in self.unconfirmed.drain(..) {
                fates.push(entry.end(End::Refused(Arc::clone(&error))));
            }
            self.offered_to = 0;
            self.bytes = 0;
        }
        self.held_up = self.leaves_some();
        self.look_at_progress(now);
        let is_overdue = self.overdue_at().is_some_and(|at| at <= now);
        self.tell_awaited(is_overdue);
        self.next_wake_up(now)
    }

    /// Only a chunk that moved ends the wait for one that did not; without chunks an open
    /// connection is all that there is to wait for.
    fn look_at_progress(&mut self, now: Instant) {
        let waits = !self.is_empty() || !matches!(self.link, Link::Open);
        if std::mem::take(&mut self.moved) || !waits {
            self.waiting.end();
        }
        if waits {
            self.waiting.go_on(now, None);
        }
    }

    /// When the owner asks for confirmations although it does not wait for them: else a writer that
    /// tells of nothing could not be told from a medium that confirms nothing.
    fn overdue_at(&self) -> Option<Instant> {
        let since = self.waiting.since().filter(|_| self.in_flight_chunks > 0);
        since.and_then(|since| since.checked_add(OVERDUE))
    }

    /// Flushes and closes the writer until `by` at most; what is then unconfirmed ends as
    /// undelivered.
    ///
    /// Returns what went wrong, if anything did.
    pub fn close(mut self, by: Instant, fates: &mut Vec<Fate>) -> Option<TransportError> {
        let medium = self.writer.capability().medium;
        let writer = self.writer;
        let report = guarded("close", medium, move || writer.close(by));
        let (confirmations, error) = match report {
            Ok(report) => (report.confirmations, report.error),
            Err(error) => (Vec::new(), Some(error)),
        };
        for Confirmation { ticket, outcome } in confirmations {
            let position = self
                .unconfirmed
                .binary_search_by_key(&ticket, |entry| entry.chunk.ticket);
            if let Some(entry) = position.ok().and_then(|at| self.unconfirmed.remove(at)) {
                fates.push(entry.end(match outcome {
                    Outcome::Confirmed => End::Confirmed,
                    Outcome::Spooled => End::Spooled,
                    Outcome::Refused(error) => End::of_refusal(error),
                }));
            }
        }
        for entry in self.unconfirmed {
            fates.push(entry.end(End::Undelivered(self.last_error.clone())));
        }
        error
    }

    /// What it has done and holds.
    pub fn stats(&self) -> OutboxStats {
        OutboxStats {
            retries: self.counts.retries,
            reopened: self.counts.opened.saturating_sub(1),
            broken: self.counts.broken,
            unconfirmed_chunks: self.unconfirmed.len(),
            unconfirmed_bytes: self.bytes,
            oldest_unconfirmed: self.unconfirmed.front().map(|entry| entry.since),
            in_flight_chunks: self.in_flight_chunks,
            in_flight_bytes: self.in_flight_bytes,
            connection: match self.link {
                Link::Closed(_) => Connection::Closed,
                Link::Open => Connection::Open,
                Link::Failed(_) => Connection::Failed,
            },
            writer: self.writer.stats(),
            last_error: self.last_error.clone(),
            waiting: self.waiting.clone(),
        }
    }

    /// Takes the writer's confirmations.
    fn confirm(&mut self, now: Instant, fates: &mut Vec<Fate>) {
        let mut confirmations = std::mem::take(&mut self.confirmations);
        let medium = self.writer.capability().medium;
        let result = guarded("read confirmations of", medium, || {
            self.writer.confirmations(&mut confirmations)
        });
        for confirmation in confirmations.drain(..) {
            self.settle(confirmation, now, fates);
        }
        self.confirmations = confirmations;
        if let Err(error) | Ok(Err(error)) = result {
            self.break_off(error, now);
            self.give_up(now, fates);
        }
    }

    fn settle(&mut self, confirmation: Confirmation, now: Instant, fates: &mut Vec<Fate>) {
        let Confirmation { ticket, outcome } = confirmation;
        // A ticket may be unknown: its chunk was given up while in flight.
        let Ok(at) = self
            .unconfirmed
            .binary_search_by_key(&ticket, |entry| entry.chunk.ticket)
        else {
            return;
        };
        match outcome {
            Outcome::Confirmed => {
                self.failures = 0;
                self.moved = true;
                self.remove(at, End::Confirmed, fates);
            }
            Outcome::Spooled => {
                self.failures = 0;
                self.moved = true;
                self.remove(at, End::Spooled, fates);
            }
            Outcome::Refused(error) if error.is_retryable() => {
                let draw = self.draw();
                if let Some(entry) = self.unconfirmed.get_mut(at) {
                    let delay = self.settings.retry.delay(entry.failures, draw);
                    entry.failures = entry.failures.saturating_add(1);
                    entry.not_before = now.checked_add(delay);
                    self.in_flight_chunks = self
                        .in_flight_chunks
                        .saturating_sub(usize::from(entry.offered));
                    if entry.offered {
                        self.in_flight_bytes =
                            self.in_flight_bytes.saturating_sub(entry.chunk.bytes.len());
                    }
                    entry.offered = false;
                    self.offered_to = self.offered_to.min(at);
                }
                self.failed(Arc::new(error));
                self.give_up(now, fates);
            }
            Outcome::Refused(error) => {
                // The medium has answered; one that was given up by its client has not.
                self.moved |= error.class == RetryClass::Final;
                self.remove(at, End::of_refusal(error), fates);
            }
        }
    }

    /// Whether there are chunks that were not offered.
    fn leaves_some(&self) -> bool {
        self.offered_to < self.unconfirmed.len()
    }

    /// Offers what was not offered, in order, as far as the window goes.
    fn offer(&mut self, now: Instant, fates: &mut Vec<Fate>) {
        let mut at = self.offered_to;
        while let Some(entry) = self.unconfirmed.get_mut(at) {
            if entry.offered {
                at = at.saturating_add(1);
                continue;
            }
            // Those before are; this one is about to be, or the reason to stop.
            self.offered_to = at;
            if entry.not_before.is_some_and(|time| time > now) {
                return;
            }
            let capability = self.writer.capability();
            let medium = capability.medium;
            let bytes = entry.chunk.bytes.len();
            let in_flight_bytes = self.in_flight_bytes.saturating_add(bytes);
            if self.in_flight_chunks >= capability.window_chunks.get()
                || (self.in_flight_chunks > 0 && in_flight_bytes > capability.window_bytes.get())
            {
                return;
            }
            let chunk = entry.chunk.clone();
            let reason = match guarded("write to", medium, || self.writer.offer(chunk)) {
                Ok(Ok(())) => {
                    let again = entry.offers > 0;
                    entry.offers = entry.offers.saturating_add(1);
                    entry.offered = true;
                    self.counts.retries = self.counts.retries.saturating_add(u64::from(again));
                    self.in_flight_chunks = self.in_flight_chunks.saturating_add(1);
                    self.in_flight_bytes = in_flight_bytes;
                    at = at.saturating_add(1);
                    continue;
                }
                Ok(Err(rejected)) => rejected.reason,
                Err(error) => RejectReason::Broken(Box::new(error)),
            };
            match reason {
                RejectReason::Full => return,
                RejectReason::TooLarge { max_chunk_bytes } => {
                    self.moved = true;
                    self.remove(at, End::TooLarge { max_chunk_bytes }, fates);
                }
                RejectReason::Broken(error) => {
                    // The chunk that met the broken connection was not taken; it failed too.
                    entry.failures = entry.failures.saturating_add(1);
                    self.break_off(*error, now);
                    self.give_up(now, fates);
                    return;
                }
            }
        }
        self.offered_to = at;
    }

    fn remove(&mut self, at: usize, end: End, fates: &mut Vec<Fate>) {
        let Some(entry) = self.unconfirmed.remove(at) else {
            return;
        };
        self.offered_to = self
            .offered_to
            .saturating_sub(usize::from(at < self.offered_to));
        let bytes = entry.chunk.bytes.len();
        self.bytes = self.bytes.saturating_sub(bytes);
        if entry.offered {
            self.in_flight_chunks = self.in_flight_chunks.saturating_sub(1);
            self.in_flight_bytes = self.in_flight_bytes.saturating_sub(bytes);
        }
        fates.push(entry.end(end));
    }

    fn next_wake_up(&self, now: Instant) -> Option<Instant> {
        let reopen = match self.link {
            Link::Closed(at) => at,
            Link::Open | Link::Failed(_) => None,
        };
        let resend = self
            .unconfirmed
            .iter()
            .skip(self.offered_to)
            .find(|entry| !entry.offered)
            .and_then(|entry| entry.not_before)
            // If it was not taken although its time has come, the writer will tell.
            .filter(|time| *time > now);
        // Tickets ascend, and with them the times of arrival.
        let expiry = self
            .unconfirmed
            .front()
            .zip(self.settings.retry.max_elapsed)
            .and_then(|(entry, most)| entry.since.checked_add(most));
        let overdue = self.overdue_at().filter(|_| !self.told_awaited);
        [reopen, resend, expiry, overdue]
            .into_iter()
            .flatten()
            .min()
    }
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("settings", &self.settings)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
