//! The spool's thread: to disk while the medium is away, from disk when it is back.

mod disk;
mod replay;

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkWriter, Delivery, Notify as _, RetryClass, TransportError, guarded,
};
use baler_connector_file::QuarantineFolder;

use crate::REFUSED_FOLDER;
use crate::config::SpoolConfig;
use crate::shared::{Diverted, SpoolNotification, SpoolState, Stop};
use crate::store::Store;
use crate::watch::SpoolRoute;

/// How often the owner's side looks whether the medium stalls, at least.
const LOOK_MIN: Duration = Duration::from_millis(50);
/// And at most.
const LOOK_MAX: Duration = Duration::from_secs(1);

/// The spool's thread.
pub(crate) struct Worker {
    shared: Arc<SpoolState>,
    config: SpoolConfig,
    store: Store,
    refused: QuarantineFolder,
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
    /// How many chunks were sent on from disk when that was shown last.
    replayed_shown: u64,
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
    pub(crate) fn new(config: SpoolConfig, shared: Arc<SpoolState>) -> Self {
        let bell = Arc::new(SpoolNotification(Arc::downgrade(&shared)));
        let store = Store::new(config.clone(), shared.watch.clone(), bell);
        let now = Instant::now();
        Self {
            store,
            refused: QuarantineFolder::new(config.folder.join(REFUSED_FOLDER)),
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
            replayed_shown: 0,
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
            self.shared.owner.notify();
            return now + self.look_interval();
        }
        self.open_when_due(now);
        self.take_written(now);
        self.replay(now);
        self.spool(now, false);
        self.return_when_drained(now);
        self.judge(now);
        self.show(now);
        self.tick(now);
        self.next_time(now)
    }

    fn take_orders(&mut self, now: Instant) {
        let (diverted, opened, generation, attempt, has_pending) = {
            let mut state = self.shared.lock();
            (
                state.diverted.take(),
                state.opened.take(),
                state.generation,
                std::mem::take(&mut state.attempt),
                !state.pending.is_empty(),
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
            // A medium that is opened again and again, and confirms nothing, is away all the time.
            if worked || self.failures == 0 || !has_pending {
                self.away_since = since;
            }
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
        self.shared.watch.update(|status| {
            if let Some(error) = &error {
                status.waiting.failed(Arc::clone(error));
            }
            status.medium_error = error;
        });
    }

    fn open_when_due(&mut self, now: Instant) {
        let due = matches!(&self.link, Link::Closed(_, at) if *at <= now);
        if due && let Link::Closed(inner, _) = std::mem::replace(&mut self.link, Link::Opening) {
            open(&self.shared, inner, self.config.reopen_timeout);
        }
    }

    fn show(&mut self, now: Instant) {
        let (route, blocked) = match &self.link {
            Link::Direct => (SpoolRoute::Direct, false),
            Link::Open(inner) => (SpoolRoute::Replaying, inner.stats().blocked),
            Link::Opening | Link::Closed(..) => (SpoolRoute::Away, false),
        };
        self.shared.lock().blocked = blocked;
        let shown = &mut self.replayed_shown;
        self.shared.watch.update(|status| {
            status.route = route;
            // Only a chunk that moved ends the wait for one that did not, or that none is left.
            let replayed = status.stats.replayed_chunks;
            if std::mem::replace(shown, replayed) != replayed || route == SpoolRoute::Direct {
                status.waiting.end();
            }
            if route != SpoolRoute::Direct {
                status.waiting.go_on(now, None);
            }
        });
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
}

/// Lets nobody wait for a thread that has panicked.
struct EndOnPanic(Arc<SpoolState>);

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
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

/// Opens the medium's writer on a thread of its own: what goes to disk does not wait for a medium
/// that does not answer.
///
/// Starts an attempt; its outcome comes to [`State::opened`](crate::shared::State::opened).
fn open(shared: &Arc<SpoolState>, inner: Box<dyn ChunkWriter>, timeout: Duration) {
    let medium = inner.capability().medium;
    // Were it moved into the closure, it would be lost with a thread that cannot be started.
    let cell = Arc::new(Mutex::new(Some(inner)));
    let (for_thread, result) = (Arc::clone(&cell), Arc::clone(shared));
    let attempt = move || {
        let Some(mut inner) = take(&for_thread) else {
            return;
        };
        let by = Instant::now() + timeout;
        let opened = guarded("open", medium, || inner.reopen(by)).and_then(|opened| opened);
        result.order(|state| state.opened = Some((inner, opened)));
    };
    let started = thread::Builder::new()
        .name("baler-spool-open".into())
        .spawn(attempt);
    if let Err(error) = started
        && let Some(inner) = take(&cell)
    {
        let error =
            TransportError::caused_by("start a thread for", medium, RetryClass::Retry, error);
        shared.order(|state| state.opened = Some((inner, Err(error))));
    }
}

fn take(cell: &Mutex<Option<Box<dyn ChunkWriter>>>) -> Option<Box<dyn ChunkWriter>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner).take()
}
