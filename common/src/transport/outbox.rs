//! Delivers chunks in order over a writer that may fail: go-back-N.
//!
//! ```text
//! push -> [unconfirmed, in order] -> offer ~~ writer ~~ confirmations -> Fate
//!              ^ resend everything after a reopen |
//! ```

mod fate;
mod recovery;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::backoff::Backoff;
use super::chunk::Chunk;
use super::error::{RetryClass, TransportError};
use super::waiting::Waiting;
use super::window::InFlight;
use super::writer::{ChunkWriter, DeliveryReport, Notify, Outcome, RejectReason};
use fate::Unconfirmed;
pub use fate::{End, Fate};
pub use recovery::guarded;
pub use settings::{Connection, OutboxSettings, OutboxStats};

/// Drives one writer so that every chunk ends with exactly one [`Fate`], in order if the medium has
/// an order.
///
/// It is a pure state machine without a thread and a clock. The owner calls [`drive`](Self::drive)
/// when the writer has called its [`Notify`], or at the returned time. Only the writer's own calls
/// may block, and of these only `reopen` and `close`.
///
/// After a failure, all unconfirmed chunks are offered again in order, before any new chunk
/// (go-back-N). Chunks may arrive twice, but first arrivals keep their order. A chunk that the
/// medium refused temporarily is offered again before any later chunk that was not offered yet.
/// Chunks that were offered already may overtake it.
///
/// A panic of the writer counts as a broken connection.
pub struct Outbox {
    writer: Box<dyn ChunkWriter>,
    settings: OutboxSettings,
    /// Chunks without a fate, by ascending ticket.
    unconfirmed: VecDeque<Unconfirmed>,
    /// Every chunk before this position was offered. Without it, each chunk would need a search
    /// through a large window.
    offered_to: usize,
    bytes: usize,
    in_flight: InFlight,
    writer_state: WriterState,
    last_error: Option<Arc<TransportError>>,
    waiting: Waiting,
    /// Whether the medium took, spooled or permanently refused a chunk since the last check.
    moved: bool,
    /// Failures since the last confirmation.
    backoff: Backoff,
    /// The number of repeated offers, of opened writers, and of broken connections.
    retries: u64,
    opened: u64,
    broken: u64,
    delivery_reports: Vec<DeliveryReport>,
    /// Whether the writer refused some chunks when they were last offered.
    has_backpressure: bool,
    /// Whether the owner waits for fates.
    awaited: bool,
    /// The last value that the writer got by `set_awaited`.
    writer_awaited: bool,
}

#[derive(Debug, Clone)]
enum WriterState {
    /// Reopen it at this time, or at once.
    Closed(Option<Instant>),
    Open,
    /// Opening failed permanently.
    Failed(Arc<TransportError>),
}

/// After this time in flight, the outbox asks for confirmations, even if the owner does not wait
/// for them.
const OVERDUE: Duration = Duration::from_secs(1);

impl Outbox {
    /// Creates an outbox over a writer that is not open yet. `notify` is called when
    /// [`drive`](Self::drive) should be called.
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
            in_flight: InFlight::default(),
            writer_state: WriterState::Closed(None),
            last_error: None,
            waiting: Waiting::default(),
            moved: false,
            backoff: Backoff::default(),
            retries: 0,
            opened: 0,
            broken: 0,
            delivery_reports: Vec::new(),
            has_backpressure: false,
            awaited: true,
            writer_awaited: true,
        }
    }

    /// Sets whether the owner waits for fates. By default it does.
    ///
    /// If it does not wait, a confirmation may become known only at the second next
    /// [`drive`](Self::drive), and the writer may not notify of it; see
    /// [`ChunkWriter::set_awaited`]. Refusals and failures are still reported at once. So is
    /// everything while there is a backlog or no room.
    pub fn set_awaited(&mut self, awaited: bool) {
        self.awaited = awaited;
        self.update_awaited(false);
    }

    fn update_awaited(&mut self, is_overdue: bool) {
        let awaited = self.awaited
            || self.has_backpressure
            || !self.has_room()
            || self.backoff.is_failing()
            || is_overdue;
        if awaited != std::mem::replace(&mut self.writer_awaited, awaited) {
            let medium = self.writer.capability().medium;
            // A writer that panics here will panic again in a call whose error is handled.
            let result = guarded("write to", medium, || self.writer.set_awaited(awaited));
            drop(result);
        }
    }

    /// Returns the capability of the writer's medium. It may change when the writer is reopened.
    pub fn capability(&self) -> &super::Capability {
        self.writer.capability()
    }

    /// Whether there is room for another chunk.
    ///
    /// An owner whose source can wait stops taking from it while this is `false`. The limit is
    /// soft: the pieces of a split chunk may exceed it.
    pub fn has_room(&self) -> bool {
        self.unconfirmed.is_empty()
            || (self.unconfirmed.len() < self.settings.max_chunks
                && self.bytes < self.settings.max_bytes)
    }

    /// Whether every chunk has its fate.
    pub fn is_empty(&self) -> bool {
        self.unconfirmed.is_empty()
    }

    /// Returns the lowest ticket without a fate.
    pub fn first_ticket(&self) -> Option<u64> {
        self.unconfirmed.front().map(|entry| entry.chunk.ticket)
    }

    /// Appends a chunk; its ticket must be above all earlier ones. The next [`drive`](Self::drive)
    /// offers it.
    pub fn push(&mut self, chunk: Chunk, now: Instant) {
        self.bytes += chunk.bytes.len();
        self.waiting.go_on(now, None);
        self.unconfirmed.push_back(Unconfirmed::new(chunk, now));
    }

    /// Does the work that is possible now, and appends the known fates to `fates`.
    ///
    /// Returns when to call again at the latest, if nothing else happens. May block in the writer's
    /// `reopen`, until `reopen_timeout` from now or `by`, whichever is earlier.
    pub fn drive(
        &mut self,
        now: Instant,
        by: Option<Instant>,
        fates: &mut Vec<Fate>,
    ) -> Option<Instant> {
        if matches!(self.writer_state, WriterState::Open) {
            self.confirm(now, fates);
        }
        self.give_up(now, fates);
        if let WriterState::Closed(at) = self.writer_state {
            if at.is_none_or(|at| at <= now) {
                self.reopen(now, by, fates);
            }
        }
        while matches!(self.writer_state, WriterState::Open) {
            self.offer(now, fates);
            // Media that confirm at once need no second call.
            let unconfirmed = self.unconfirmed.len();
            if matches!(self.writer_state, WriterState::Open) && self.in_flight.chunks > 0 {
                self.confirm(now, fates);
            }
            // The writer does not notify of room that was made here.
            if self.unconfirmed.len() == unconfirmed || !self.has_unoffered() {
                break;
            }
        }
        if let WriterState::Failed(error) = &self.writer_state {
            let error = Arc::clone(error);
            for entry in self.unconfirmed.drain(..) {
                fates.push(entry.end(End::Refused(Arc::clone(&error))));
            }
            self.offered_to = 0;
            self.bytes = 0;
        }
        self.has_backpressure = self.has_unoffered();
        self.look_at_progress(now);
        let is_overdue = self.overdue_at().is_some_and(|at| at <= now);
        self.update_awaited(is_overdue);
        self.next_wake_up(now)
    }

    /// Tracks since when nothing has moved. While chunks wait, only a chunk that moves ends the
    /// wait. Without chunks, an open connection ends it.
    fn look_at_progress(&mut self, now: Instant) {
        let waits = !self.is_empty() || !matches!(self.writer_state, WriterState::Open);
        if std::mem::take(&mut self.moved) || !waits {
            self.waiting.end();
        }
        if waits {
            self.waiting.go_on(now, None);
        }
    }

    /// Returns when to ask for confirmations although the owner does not wait for them. Otherwise a
    /// medium that confirms nothing would remain undetected.
    fn overdue_at(&self) -> Option<Instant> {
        let since = self.waiting.since().filter(|_| self.in_flight.chunks > 0);
        since.and_then(|since| since.checked_add(OVERDUE))
    }

    /// Flushes and closes the writer until `by` at most. Chunks that are unconfirmed then end as
    /// undelivered.
    ///
    /// Returns the error, if any.
    pub fn close(mut self, by: Instant, fates: &mut Vec<Fate>) -> Option<TransportError> {
        let medium = self.writer.capability().medium;
        let writer = self.writer;
        let report = guarded("close", medium, move || writer.close(by));
        let (delivery_reports, error) = match report {
            Ok(report) => (report.delivery_reports, report.error),
            Err(error) => (Vec::new(), Some(error)),
        };
        for DeliveryReport { ticket, outcome } in delivery_reports {
            let position = position(&self.unconfirmed, ticket);
            if let Some(entry) = position.and_then(|at| self.unconfirmed.remove(at)) {
                fates.push(entry.end(End::of(outcome)));
            }
        }
        for entry in self.unconfirmed {
            fates.push(entry.end(End::Undelivered(self.last_error.clone())));
        }
        error
    }

    /// Returns its figures.
    pub fn stats(&self) -> OutboxStats {
        OutboxStats {
            retries: self.retries,
            reopened: self.opened.max(1) - 1,
            broken: self.broken,
            unconfirmed_chunks: self.unconfirmed.len(),
            unconfirmed_bytes: self.bytes,
            oldest_unconfirmed: self.unconfirmed.front().map(|entry| entry.since),
            in_flight_chunks: self.in_flight.chunks,
            in_flight_bytes: self.in_flight.bytes,
            connection: match self.writer_state {
                WriterState::Closed(_) => Connection::Closed,
                WriterState::Open => Connection::Open,
                WriterState::Failed(_) => Connection::Failed,
            },
            writer: self.writer.stats(),
            last_error: self.last_error.clone(),
            waiting: self.waiting.clone(),
        }
    }

    /// Takes the writer's confirmations.
    fn confirm(&mut self, now: Instant, fates: &mut Vec<Fate>) {
        let mut delivery_reports = std::mem::take(&mut self.delivery_reports);
        let medium = self.writer.capability().medium;
        let result = guarded("read confirmations of", medium, || {
            self.writer.delivery_reports(&mut delivery_reports)
        });
        for confirmation in delivery_reports.drain(..) {
            self.take_report(confirmation, now, fates);
        }
        self.delivery_reports = delivery_reports;
        if let Err(error) | Ok(Err(error)) = result {
            self.break_off(error, now);
            self.give_up(now, fates);
        }
    }

    fn take_report(&mut self, confirmation: DeliveryReport, now: Instant, fates: &mut Vec<Fate>) {
        let DeliveryReport { ticket, outcome } = confirmation;
        // A ticket may be unknown: its chunk was given up while in flight.
        let Some(at) = position(&self.unconfirmed, ticket) else {
            return;
        };
        match outcome {
            Outcome::Confirmed | Outcome::Spooled => {
                self.backoff.reset();
                self.moved = true;
                self.remove(at, End::of(outcome), fates);
            }
            Outcome::Refused(error) if error.is_retryable() => {
                if let Some(entry) = self.unconfirmed.get_mut(at) {
                    let retry = &self.settings.retry;
                    let pause = self.backoff.pause_after(entry.failures, retry);
                    entry.failures += 1;
                    entry.not_before = now.checked_add(pause);
                    self.offered_to = self.offered_to.min(at);
                }
                self.leave_flight(at);
                self.failed(Arc::new(error));
                self.give_up(now, fates);
            }
            Outcome::Refused(error) => {
                // The medium has answered. If the client gave the chunk up, it has not.
                self.moved |= error.class == RetryClass::Final;
                self.remove(at, End::of(Outcome::Refused(error)), fates);
            }
        }
    }

    /// Whether some chunks were not offered.
    fn has_unoffered(&self) -> bool {
        self.offered_to < self.unconfirmed.len()
    }

    /// Offers all chunks that were not offered, in order, as far as the window allows.
    fn offer(&mut self, now: Instant, fates: &mut Vec<Fate>) {
        let mut at = self.offered_to;
        while let Some(entry) = self.unconfirmed.get_mut(at) {
            if entry.offered {
                at += 1;
                continue;
            }
            // All earlier ones were offered.
            self.offered_to = at;
            if entry.not_before.is_some_and(|time| time > now) {
                return;
            }
            let capability = self.writer.capability();
            let medium = capability.medium;
            let bytes = entry.chunk.bytes.len();
            if !self.in_flight.has_room(bytes, capability) {
                return;
            }
            let chunk = entry.chunk.clone();
            let reason = match guarded("write to", medium, || self.writer.offer(chunk)) {
                Ok(Ok(())) => {
                    let again = entry.offers > 0;
                    entry.offers += 1;
                    entry.offered = true;
                    self.retries += u64::from(again);
                    self.in_flight.add(bytes);
                    at += 1;
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
                    // The writer did not take the chunk that met the broken connection; it failed,
                    // too.
                    entry.failures += 1;
                    self.break_off(*error, now);
                    self.give_up(now, fates);
                    return;
                }
            }
        }
        self.offered_to = at;
    }

    /// Counts the chunk at this position as not in flight.
    fn leave_flight(&mut self, at: usize) {
        if let Some(entry) = self.unconfirmed.get_mut(at) {
            if std::mem::take(&mut entry.offered) {
                self.in_flight.remove(entry.chunk.bytes.len());
            }
        }
    }

    /// Ends the chunk at this position.
    fn remove(&mut self, at: usize, end: End, fates: &mut Vec<Fate>) {
        self.leave_flight(at);
        let Some(entry) = self.unconfirmed.remove(at) else {
            return;
        };
        self.offered_to -= usize::from(at < self.offered_to);
        self.bytes -= entry.chunk.bytes.len();
        fates.push(entry.end(end));
    }

    fn next_wake_up(&self, now: Instant) -> Option<Instant> {
        let reopen = match self.writer_state {
            WriterState::Closed(at) => at,
            WriterState::Open | WriterState::Failed(_) => None,
        };
        let resend = self
            .unconfirmed
            .iter()
            .skip(self.offered_to)
            .find(|entry| !entry.offered)
            .and_then(|entry| entry.not_before)
            // If it is due but was not taken, the writer will notify.
            .filter(|time| *time > now);
        // Tickets ascend, and so do the times of arrival.
        let expiry = self
            .unconfirmed
            .front()
            .zip(self.settings.retry.max_elapsed)
            .and_then(|(entry, most)| entry.since.checked_add(most));
        let overdue = self.overdue_at().filter(|_| !self.writer_awaited);
        [reopen, resend, expiry, overdue]
            .into_iter()
            .flatten()
            .min()
    }
}

/// The position of the chunk with this ticket.
fn position(unconfirmed: &VecDeque<Unconfirmed>, ticket: u64) -> Option<usize> {
    unconfirmed
        .binary_search_by_key(&ticket, |entry| entry.chunk.ticket)
        .ok()
}

impl fmt::Debug for Outbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("settings", &self.settings)
            .field("stats", &self.stats())
            .finish_non_exhaustive()
    }
}
