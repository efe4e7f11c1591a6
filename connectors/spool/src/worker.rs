//! The spool's thread: to disk while the medium is away, from disk when it is back.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Chunk, ChunkWriter, Confirmation, Delivery, Outcome, RejectReason, Rejected, RetryClass,
    TransportError, Verdict, guarded,
};

use crate::REFUSED_FOLDER;
use crate::config::SpoolConfig;
use crate::direct::Direct;
use crate::opener;
use crate::refused::Refused;
use crate::shared::{Bell, Diverted, Shared, Stop};
use crate::store::{Front, Store};
use crate::watch::{SpoolRoute, SpoolStatus, add, take};

/// How long the disk gets at a close, whatever the deadline.
const DISK_GRACE: Duration = Duration::from_millis(250);

/// How often the owner's side looks whether the medium stalls, at least.
const LOOK_MIN: Duration = Duration::from_millis(50);
/// And at most.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The spool's thread.
pub(crate) struct Worker {
    shared: Arc<Shared>,
    config: SpoolConfig,
    store: Store,
    refused: Refused,
    link: Link,
    /// Since when the medium is away, if it is.
    away_since: Instant,
    /// Attempts in a row after which nothing was confirmed.
    failures: u32,
    draws: u64,
    generation: u64,
    /// How many of the pending chunks are being written.
    offered: usize,
    /// The medium has them and has not confirmed them, by ticket.
    outstanding: VecDeque<(u64, Delivery)>,
    /// Read, and not yet taken by the medium.
    next: Option<Delivery>,
    next_ticket: u64,
    /// When the medium last took or confirmed something from disk.
    progress: Instant,
    /// The medium refused a chunk for now.
    pause_until: Option<Instant>,
    /// Nothing is on disk that the medium has not confirmed.
    drained: bool,
    ticked: Instant,
}

/// Where the writer of the medium is.
enum Link {
    /// The owner's side has it: chunks go straight through.
    Direct,
    /// A thread of its own opens it.
    Opening,
    /// It is to be opened at this time.
    Closed(Box<dyn ChunkWriter>, Instant),
    Open(Box<dyn ChunkWriter>),
}

impl Worker {
    pub(crate) fn new(config: SpoolConfig, shared: Arc<Shared>) -> Self {
        let bell = Arc::new(Bell(Arc::downgrade(&shared)));
        let store = Store::new(config.clone(), shared.watch.clone(), bell);
        let now = Instant::now();
        Self {
            store,
            refused: Refused::new(config.folder.join(REFUSED_FOLDER)),
            link: Link::Direct,
            away_since: now,
            failures: 0,
            draws: 0,
            generation: 0,
            offered: 0,
            outstanding: VecDeque::new(),
            next: None,
            next_ticket: 0,
            progress: now,
            pause_until: None,
            drained: false,
            ticked: now,
            config,
            shared,
        }
    }

    pub(crate) fn run(mut self) {
        let _end = EndOnPanic(Arc::clone(&self.shared));
        loop {
            let stop = self.shared.lock().stop;
            match stop {
                Stop::No => {}
                Stop::Drop => break,
                Stop::Close(by) => {
                    self.close(by);
                    break;
                }
            }
            let until = self.step(Instant::now());
            self.shared.wait_for_work(Some(until));
        }
        self.shared.tell(|state| state.ended = true);
    }

    /// Does what can be done now; says when to come again at the latest.
    fn step(&mut self, now: Instant) -> Instant {
        self.take_orders(now);
        if let Err(error) = self.store.prepare(now) {
            // Another process has the folder: nothing goes on before it is ours.
            self.decide(Err(error));
            return now + LOOK_MAX;
        }
        if matches!(self.link, Link::Direct) {
            self.shared.look.store(true, Ordering::Relaxed);
            self.shared.ring_owner();
            return now + self.look_interval();
        }
        self.open_when_due(now);
        self.take_written(now);
        self.replay(now);
        self.spool(now, false);
        self.return_when_drained(now);
        self.judge(now);
        self.show();
        self.tick(now);
        self.next_time(now)
    }

    fn take_orders(&mut self, now: Instant) {
        let (diverted, opened, generation, attempt) = {
            let mut state = self.shared.lock();
            (
                state.diverted.take(),
                state.opened.take(),
                state.generation,
                std::mem::take(&mut state.attempt),
            )
        };
        if generation != self.generation {
            // The owner has forgotten what was taken and takes no word of it.
            self.generation = generation;
            self.offered = 0;
        }
        if let Some(Diverted {
            inner,
            since,
            error,
            worked,
        }) = diverted
        {
            self.away_since = since;
            self.drained = false;
            if worked {
                self.failures = 0;
            }
            let at = match error {
                Some(error) => {
                    let at = now + self.pause();
                    self.note_medium(Some(error));
                    at
                }
                None => now,
            };
            self.link = Link::Closed(inner, at);
        }
        if let Some((inner, result)) = opened {
            match result {
                Ok(()) => {
                    let capability = inner.capability().clone();
                    self.shared.lock().capability = Some(capability);
                    self.link = Link::Open(inner);
                    self.progress = now;
                    self.drained = false;
                    self.note_medium(None);
                }
                Err(error) => {
                    self.note_medium(Some(error));
                    let at = now + self.pause();
                    self.link = Link::Closed(inner, at);
                }
            }
        }
        if attempt {
            self.store.try_now(now);
            if let Link::Closed(_, at) = &mut self.link {
                *at = (*at).min(now);
            }
        }
    }

    /// The pause before the next attempt; counts the failure.
    fn pause(&mut self) -> Duration {
        self.draws = self.draws.wrapping_add(1);
        let pause = self.config.retry.delay(self.failures, self.draws);
        self.failures = self.failures.saturating_add(1);
        pause
    }

    fn note_medium(&self, error: Option<TransportError>) {
        let error = error.map(Arc::new);
        self.shared
            .watch
            .update(|status| status.medium_error = error);
    }

    fn open_when_due(&mut self, now: Instant) {
        let due = matches!(&self.link, Link::Closed(_, at) if *at <= now);
        if due && let Link::Closed(inner, _) = std::mem::replace(&mut self.link, Link::Opening) {
            opener::open(&self.shared, inner, self.config.reopen_timeout);
        }
    }

    /// Whether chunks belong on disk: the medium is away for long enough, or others are before
    /// them.
    fn is_spooling(&self, now: Instant) -> bool {
        match self.link {
            Link::Direct => false,
            // While the medium takes what is on disk, new chunks go behind it. Once it has all of
            // it they wait for its word, which is one round trip: else a sender that is never
            // idle would go by way of the disk for ever.
            Link::Open(_) => self.store.has_front() || self.next.is_some(),
            Link::Opening | Link::Closed(..) => {
                self.store.has_front()
                    || self.store.is_writing()
                    || now.saturating_duration_since(self.away_since) >= self.config.spool_after
            }
        }
    }

    /// Offers pending chunks to the disk.
    fn spool(&mut self, now: Instant, force: bool) {
        if !force && !self.is_spooling(now) {
            return;
        }
        let new: Vec<Chunk> = {
            let state = self.shared.lock();
            state.pending.iter().skip(self.offered).cloned().collect()
        };
        if new.is_empty() || !self.store.ensure_writable(now) {
            return;
        }
        for chunk in new {
            if !self.store.offer(chunk, self.generation, now) {
                break;
            }
            self.offered = self.offered.saturating_add(1);
            self.drained = false;
        }
        if self.store.is_failing() {
            self.offered = 0;
        }
    }

    /// Tells the owner what is on disk now.
    fn take_written(&mut self, now: Instant) {
        let written = self.store.written(now);
        if !written.is_empty() {
            let generation = self.generation;
            let told = self.shared.tell(|state| {
                if state.generation != generation {
                    return 0;
                }
                let mut told = 0_usize;
                for flight in written.iter().filter(|it| it.generation == generation) {
                    state.pop();
                    state.outcomes.push(Confirmation {
                        ticket: flight.ticket,
                        outcome: Outcome::Spooled,
                    });
                    told = told.saturating_add(1);
                }
                told
            });
            self.offered = self.offered.saturating_sub(told);
        }
        if self.store.is_failing() {
            self.offered = 0;
        }
    }

    /// Sends on what is on disk.
    fn replay(&mut self, now: Instant) {
        if !matches!(self.link, Link::Open(_)) {
            return;
        }
        if let Err(error) = self.take_confirmed(now) {
            return self.break_off(error, now);
        }
        if let Err(error) = self.offer_front(now) {
            return self.break_off(error, now);
        }
        // Media that confirm at once need no second step.
        if let Err(error) = self.take_confirmed(now) {
            return self.break_off(error, now);
        }
        let Link::Open(inner) = &self.link else {
            return;
        };
        let stalls = !self.outstanding.is_empty()
            && now.saturating_duration_since(self.progress) >= self.config.stall_after;
        if stalls && !inner.stats().blocked {
            let medium = inner.capability().medium;
            let message = "it confirms nothing of what it has";
            let error = TransportError::new("write to", medium, RetryClass::Retry, message);
            self.break_off(error, now);
        }
    }

    fn offer_front(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.pause_until.is_some_and(|until| until > now) {
            return Ok(());
        }
        self.pause_until = None;
        let is_empty = loop {
            let delivery = match self.next.take() {
                Some(delivery) => delivery,
                None => match self.store.front(now) {
                    Front::Chunk(delivery) => delivery,
                    Front::Damaged(damaged) => {
                        // The file connector has passed it: this is the last chance to keep it.
                        let kept = self.refused.keep(
                            &damaged.bytes,
                            None,
                            &damaged.origin,
                            &damaged.reason,
                        );
                        self.note_disk(kept.err());
                        continue;
                    }
                    Front::Empty => break true,
                    Front::Unknown => break false,
                },
            };
            let Some(meta) = delivery.meta else {
                self.put_aside(delivery, "its container is unknown to this version", now);
                continue;
            };
            let Link::Open(inner) = &mut self.link else {
                return Ok(());
            };
            let ticket = self.next_ticket;
            let chunk = Chunk {
                ticket,
                meta,
                bytes: delivery.bytes.clone(),
            };
            let medium = inner.capability().medium;
            let offered = guarded("write to", medium, || inner.offer(chunk));
            let reason = match offered {
                Ok(Ok(())) => {
                    self.next_ticket = self.next_ticket.wrapping_add(1);
                    if self.outstanding.is_empty() {
                        self.progress = now;
                    }
                    self.outstanding.push_back((ticket, delivery));
                    continue;
                }
                Ok(Err(Rejected { reason, .. })) => reason,
                Err(error) => RejectReason::Broken(Box::new(error)),
            };
            match reason {
                RejectReason::Full => {
                    self.next = Some(delivery);
                    return Ok(());
                }
                RejectReason::TooLarge { max_chunk_bytes } => {
                    let reason = format!("the medium takes {max_chunk_bytes} bytes a chunk");
                    self.put_aside(delivery, &reason, now);
                }
                RejectReason::Broken(error) => {
                    self.next = Some(delivery);
                    return Err(*error);
                }
            }
        };
        // Of a disk that does not even tell what it has, nothing is known to be there: all that
        // was ever counted was handed out, the rest is still pending.
        self.drained = self.outstanding.is_empty()
            && !self.store.is_writing()
            && !self.store.has_front()
            && (is_empty || self.store.is_failing());
        Ok(())
    }

    fn take_confirmed(&mut self, now: Instant) -> Result<(), TransportError> {
        let Link::Open(inner) = &mut self.link else {
            return Ok(());
        };
        let mut confirmations = Vec::new();
        let medium = inner.capability().medium;
        let result = guarded("read confirmations of", medium, || {
            inner.confirmations(&mut confirmations)
        });
        self.settle_all(confirmations, now);
        result.and_then(|result| result)
    }

    fn settle_all(&mut self, confirmations: Vec<Confirmation>, now: Instant) {
        for Confirmation { ticket, outcome } in confirmations {
            let at = self
                .outstanding
                .binary_search_by_key(&ticket, |(ticket, _)| *ticket);
            let Some((_, delivery)) = at.ok().and_then(|at| self.outstanding.remove(at)) else {
                continue;
            };
            self.progress = now;
            match outcome {
                Outcome::Confirmed | Outcome::Spooled => {
                    self.failures = 0;
                    self.store.settle(delivery.token, Verdict::Ack);
                    self.count_gone(&delivery, |status, records| {
                        add(&mut status.stats.replayed_chunks, 1);
                        add(&mut status.stats.replayed_records, records);
                    });
                }
                Outcome::Refused(error) if error.class == RetryClass::Final => {
                    self.put_aside(delivery, &error.to_string(), now);
                }
                Outcome::Refused(error) => {
                    let pause = self.pause();
                    self.note_medium(Some(error));
                    self.give_back(&delivery, pause, now);
                }
            }
        }
    }

    /// A chunk that is not on disk any more.
    fn count_gone(&self, delivery: &Delivery, change: impl FnOnce(&mut SpoolStatus, u64)) {
        let records = delivery.meta.map_or(0, |meta| u64::from(meta.records));
        self.shared.watch.update(|status| {
            take(&mut status.stats.waiting_chunks, 1);
            take(&mut status.stats.waiting_bytes, delivery.bytes.len() as u64);
            take(&mut status.waiting_records, records);
            change(status, records);
        });
    }

    fn give_back(&mut self, delivery: &Delivery, pause: Duration, now: Instant) {
        self.store.settle(delivery.token, Verdict::Retry);
        self.pause_until = Some(now + pause);
    }

    /// Keeps a chunk that can never be delivered.
    fn put_aside(&mut self, delivery: Delivery, reason: &str, now: Instant) {
        let kept = self
            .refused
            .keep(&delivery.bytes, delivery.meta, &delivery.origin, reason);
        match kept {
            Ok(()) => {
                self.store.settle(delivery.token, Verdict::Reject);
                self.count_gone(&delivery, |status, records| {
                    add(&mut status.refused_chunks, 1);
                    add(&mut status.refused_records, records);
                });
            }
            Err(error) => {
                // It stays where it is; sooner or later there is room for it.
                self.note_disk(Some(error));
                let pause = self.pause();
                self.give_back(&delivery, pause, now);
            }
        }
    }

    fn note_disk(&self, error: Option<std::io::Error>) {
        if let Some(error) = error {
            let folder = self.config.folder.join(REFUSED_FOLDER);
            let error = TransportError::caused_by(
                "write to",
                folder.display().to_string(),
                RetryClass::Retry,
                error,
            );
            let error = Arc::new(error);
            self.shared.watch.update(|status| {
                add(&mut status.disk_failures, 1);
                status.disk_error = Some(error);
            });
        }
    }

    /// The medium is away again: what it has not confirmed is read from disk once more.
    fn break_off(&mut self, error: TransportError, now: Instant) {
        let unconfirmed = std::mem::take(&mut self.outstanding).into_iter();
        for delivery in unconfirmed.map(|(_, it)| it).chain(self.next.take()) {
            self.store.settle(delivery.token, Verdict::Retry);
        }
        self.drained = false;
        self.away_since = now;
        self.note_medium(Some(error));
        let at = now + self.pause();
        let link = std::mem::replace(&mut self.link, Link::Opening);
        if let Link::Open(inner) = link {
            self.link = Link::Closed(inner, at);
        }
    }

    /// Gives the medium's writer to the owner's side when nothing is on disk any more.
    fn return_when_drained(&mut self, now: Instant) {
        let is_empty = self.drained && self.offered == 0 && self.next.is_none();
        if !is_empty || !matches!(self.link, Link::Open(_)) {
            return;
        }
        if self.store.is_in_use() {
            self.store.clear(now + self.config.reopen_timeout, true);
            // What was counted and is not there can only be told in the end.
            self.shared.watch.update(|status| {
                add(&mut status.lost_records, status.waiting_records);
                status.waiting_records = 0;
                status.stats.waiting_bytes = 0;
            });
        }
        if let Link::Open(inner) = std::mem::replace(&mut self.link, Link::Direct) {
            self.shared.tell(|state| {
                state.returned = Some(inner);
                state.blocked = false;
                state.verdict = Some(Ok(()));
            });
        }
    }

    /// Says whether chunks are taken: the medium or the disk has to be there.
    fn judge(&mut self, now: Instant) {
        let (undecided, failed, waits) = {
            let state = self.shared.lock();
            (
                state.verdict.is_none(),
                matches!(state.verdict, Some(Err(_))),
                state.pending.len() > self.offered,
            )
        };
        if failed {
            // The owner asks again when it wants to know.
            return;
        }
        let is_usable = matches!(self.link, Link::Open(_)) && !self.store.is_unreadable();
        if is_usable || matches!(self.link, Link::Direct) {
            if undecided {
                self.decide(Ok(()));
            }
        } else if self.is_spooling(now) && (undecided || (waits && self.store.is_failing())) {
            if undecided && self.store.ensure_writable(now) {
                self.decide(Ok(()));
            } else {
                self.decide(Err(self.stuck()));
            }
        }
    }

    /// Neither the medium nor the disk takes chunks.
    fn stuck(&self) -> TransportError {
        let status = self.shared.watch.status();
        let told = |error: &Option<Arc<TransportError>>| {
            error
                .as_ref()
                .map_or_else(|| "no reason was told".to_owned(), ToString::to_string)
        };
        let message = format!(
            "{}; and the spool does not take chunks: {}",
            told(&status.medium_error),
            told(&status.disk_error)
        );
        let endpoint = self.config.folder.display().to_string();
        TransportError::new("spool in", endpoint, RetryClass::Retry, message)
    }

    fn decide(&self, verdict: Result<(), TransportError>) {
        let verdict = verdict.map_err(Arc::new);
        self.shared.tell(|state| state.verdict = Some(verdict));
    }

    fn show(&self) {
        let (route, blocked) = match &self.link {
            Link::Direct => (SpoolRoute::Direct, false),
            Link::Open(inner) => (SpoolRoute::Replaying, inner.stats().blocked),
            Link::Opening | Link::Closed(..) => (SpoolRoute::Away, false),
        };
        self.shared.lock().blocked = blocked;
        self.shared.watch.update(|status| status.route = route);
    }

    /// Writes the position in the spool even when nothing else happens.
    fn tick(&mut self, now: Instant) {
        if now.saturating_duration_since(self.ticked) >= self.config.commit_interval {
            self.ticked = now;
            self.store.commit();
        }
    }

    fn look_interval(&self) -> Duration {
        let shortest = self.config.spool_after.min(self.config.stall_after) / 2;
        shortest.clamp(LOOK_MIN, LOOK_MAX)
    }

    fn next_time(&self, now: Instant) -> Instant {
        let open_at = match &self.link {
            Link::Closed(_, at) => Some(*at),
            Link::Direct | Link::Opening | Link::Open(_) => None,
        };
        let spool_at = Some(self.away_since + self.config.spool_after);
        let stall_at = Some(self.progress + self.config.stall_after);
        let tick_at = Some(self.ticked + self.config.commit_interval);
        let times = [
            open_at,
            spool_at,
            stall_at,
            tick_at,
            self.pause_until,
            self.store.failed_until(),
            Some(now + LOOK_MAX),
        ];
        // What is past has been seen to, or waits for something else.
        let next = times.into_iter().flatten().filter(|at| *at > now).min();
        next.unwrap_or(now + LOOK_MAX)
    }

    /// Offers what is pending to the medium itself and closes it.
    fn pass_pending(&mut self, by: Instant) {
        let Link::Open(inner) = std::mem::replace(&mut self.link, Link::Direct) else {
            return;
        };
        let mut direct = Direct::new(inner, self.shared.lock().take_pending());
        self.offered = 0;
        // What is not taken is in the parts.
        let offered = direct.offer_backlog();
        drop(offered);
        let (inner, mut chunks) = direct.into_parts();
        let medium = inner.capability().medium;
        let report = guarded("close", medium, move || inner.close(by)).unwrap_or_default();
        self.shared.tell(|state| {
            for confirmation in report.confirmations {
                chunks.retain(|chunk| chunk.ticket != confirmation.ticket);
                state.outcomes.push(confirmation);
            }
            chunks.into_iter().for_each(|chunk| state.push(chunk));
        });
    }

    /// Puts what is pending on disk, sends on what can be until the deadline, and ends.
    fn close(&mut self, by: Instant) {
        let begun = Instant::now();
        let disk_by = by.max(begun + DISK_GRACE);
        let left = by.saturating_duration_since(begun);
        let replay_by = by - DISK_GRACE.min(left / 2);
        loop {
            let now = Instant::now();
            self.take_orders(now);
            if self.store.prepare(now).is_err() {
                break;
            }
            self.open_when_due(now);
            self.take_written(now);
            self.replay(now);
            self.spool(now, true);
            if self.drained && self.store.is_failing() {
                // The medium is back and the disk is not: chunks go straight after all.
                self.pass_pending(replay_by);
            }
            let is_pending = !self.shared.lock().pending.is_empty();
            let is_sending = matches!(self.link, Link::Open(_)) && !self.drained;
            let until = match (is_pending, is_sending) {
                (true, _) => disk_by,
                (false, true) => replay_by,
                (false, false) => break,
            };
            if until <= now {
                break;
            }
            self.shared
                .wait_for_work(Some(until.min(self.next_time(now))));
        }
        let mut error = None;
        if let Link::Open(inner) = std::mem::replace(&mut self.link, Link::Direct) {
            let medium = inner.capability().medium;
            match guarded("close", medium, move || inner.close(by)) {
                Ok(report) => {
                    self.settle_all(report.confirmations, Instant::now());
                    error = report.error;
                }
                Err(panicked) => error = Some(panicked),
            }
        }
        self.store.clear(disk_by, false);
        self.shared.tell(|state| state.end_error = error);
    }
}

/// Lets nobody wait for a thread that has panicked.
struct EndOnPanic(Arc<Shared>);

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let error = TransportError::new(
                "spool",
                "spool",
                RetryClass::Exhausted,
                "the spool's thread panicked",
            );
            let error = Arc::new(error);
            self.0.tell(|state| {
                state.ended = true;
                state.verdict = Some(Err(error));
            });
        }
    }
}
