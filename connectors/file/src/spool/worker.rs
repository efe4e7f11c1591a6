//! The spool's thread: sends chunks to the medium while it works, to disk while it is away, and
//! from disk to the medium when it is back.

mod disk;
mod medium;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::quarantine::QuarantineFolder;
use baler_common::transport::{
    Backoff, ChunkWriter, Delivery, Failure, RetryClass, TransportError, guarded,
};

use super::REFUSED_FOLDER;
use super::config::SpoolConfig;
use super::state::{DISK_GRACE, SpoolNotification, SpoolRoute, SpoolState, Stop, time_left};
use super::store::Store;

/// The shortest interval at which the thread checks whether the medium stalls.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The longest interval of these checks.
const MAX_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The spool's thread.
pub(crate) struct Worker {
    state: Arc<SpoolState>,
    config: SpoolConfig,
    store: Store,
    refused: QuarantineFolder,
    medium: Medium,
    /// The time since which the medium makes no progress; none once it has confirmed a chunk.
    away_since: Option<Instant>,
    backoff: Backoff,
    generation: u64,
    /// The number of pending chunks, from the oldest on, that were offered: to the disk, or to the
    /// medium while nothing is on disk.
    offered: usize,
    /// Chunks that the medium has not confirmed yet, by ticket. Either all of them are from disk or
    /// none.
    outstanding: VecDeque<(u64, Sent)>,
    /// A chunk that was read from disk and not yet accepted by the medium.
    next: Option<Delivery>,
    next_ticket: u64,
    /// The time at which the medium last accepted or confirmed a chunk.
    progress: Instant,
    /// The time since which the medium asks to wait.
    blocked_since: Option<Instant>,
    /// Whether the medium has confirmed a chunk since the status was last shown.
    has_moved: bool,
    /// The end of the pause after the medium refused a chunk for now.
    pause_until: Option<Instant>,
    /// Whether the medium is open and has confirmed all chunks on disk.
    drained: bool,
    ticked: Instant,
}

/// The writer of the medium.
enum Medium {
    /// Another thread opens it, or it was closed for good.
    Away,
    /// The writer will be opened at this time.
    Closed(Box<dyn ChunkWriter>, Instant),
    Open(Box<dyn ChunkWriter>),
}

/// The origin of a chunk that the medium has.
enum Sent {
    Disk(Delivery),
    /// A chunk of the owner, in this generation of its tickets.
    Owner {
        generation: u64,
        ticket: u64,
    },
}

impl Worker {
    pub(crate) fn new(config: SpoolConfig, state: Arc<SpoolState>) -> Self {
        let notify = Arc::new(SpoolNotification(Arc::downgrade(&state)));
        let now = Instant::now();
        let medium = match state.lock().opened.take() {
            Some((mut inner, _)) => {
                inner.set_notify(Arc::<SpoolNotification>::clone(&notify));
                Medium::Closed(inner, now)
            }
            None => Medium::Away,
        };
        Self {
            store: Store::new(config.clone(), state.watch.clone(), notify),
            refused: QuarantineFolder::new(config.folder.join(REFUSED_FOLDER)),
            medium,
            away_since: Some(now),
            backoff: Backoff::default(),
            generation: 0,
            offered: 0,
            outstanding: VecDeque::new(),
            next: None,
            next_ticket: 0,
            progress: now,
            blocked_since: None,
            has_moved: false,
            pause_until: None,
            drained: false,
            ticked: now,
            config,
            state,
        }
    }

    /// Works until the owner ends the spool. A panic ends the owner's waits, too.
    pub(crate) fn run(self) {
        let state = Arc::clone(&self.state);
        let failed = Failure::catching("spool", || self.work()).err();
        state.tell(|state| {
            state.ended = true;
            if let Some(failure) = failed {
                state.verdict = Some(Err(Arc::new(failure.at("spool"))));
            }
        });
    }

    fn work(mut self) {
        loop {
            let stop = self.state.lock().stop;
            match stop {
                Stop::No => {}
                Stop::Drop => break,
                Stop::Close(by) => {
                    self.close(by);
                    break;
                }
            }
            let until = self.step(Instant::now());
            self.state.wait_for_work(until);
        }
    }

    /// Does the work that is due. Returns the latest time of the next step.
    fn step(&mut self, now: Instant) -> Instant {
        if let Err(error) = self.send_on(now) {
            self.decide(Err(error));
            return now + MAX_POLL_INTERVAL;
        }
        self.spool(now, false);
        self.judge(now);
        self.show(now);
        // The position in the spool is written even when nothing else happens.
        if now.duration_since(self.ticked) >= self.config.commit_interval {
            self.ticked = now;
            self.store.commit();
        }
        self.next_time(now)
    }

    /// Takes orders and results, and sends on the chunks that can be sent now.
    ///
    /// `Err` means that another process has locked the folder: nothing goes on before it is free.
    fn send_on(&mut self, now: Instant) -> Result<(), TransportError> {
        self.take_orders(now);
        self.store.prepare(now)?;
        self.open_when_due(now);
        self.take_written(now);
        self.send(now);
        Ok(())
    }

    /// Sends on chunks until the deadline, puts the rest on disk, and ends.
    fn close(&mut self, by: Instant) {
        let disk_by = by.max(Instant::now() + DISK_GRACE);
        let send_by = by - DISK_GRACE.min(time_left(by) / 2);
        let mut error = None;
        loop {
            let now = Instant::now();
            if self.send_on(now).is_err() {
                break;
            }
            let is_open = matches!(self.medium, Medium::Open(_));
            let is_sending = is_open && !(self.drained && self.outstanding.is_empty());
            if is_open && (!is_sending || now >= send_by) {
                error = self.close_medium(send_by);
            }
            self.spool(now, true);
            let is_pending = !self.state.lock().pending.is_empty();
            let until = match &self.medium {
                Medium::Open(_) => send_by,
                _ if is_pending => disk_by,
                _ => break,
            };
            if until <= now {
                break;
            }
            self.state.wait_for_work(until.min(self.next_time(now)));
        }
        error = error.or_else(|| self.close_medium(by));
        self.store.clear(disk_by, false);
        self.take_written(Instant::now());
        self.state.tell(|state| state.end_error = error);
    }

    fn take_orders(&mut self, now: Instant) {
        let (opened, generation, attempt) = {
            let mut state = self.state.lock();
            (
                state.opened.take(),
                state.generation,
                std::mem::take(&mut state.attempt),
            )
        };
        if generation != self.generation {
            // The owner has forgotten the accepted chunks, and expects no outcome.
            self.generation = generation;
            self.offered = 0;
        }
        if let Some((inner, result)) = opened {
            match result {
                Ok(()) => {
                    let capability = inner.capability().clone();
                    self.state.lock().capability = Some(capability);
                    self.medium = Medium::Open(inner);
                    self.blocked_since = None;
                    self.note_medium(None);
                }
                Err(error) => {
                    self.note_medium(Some(error));
                    let at = now + self.pause();
                    self.medium = Medium::Closed(inner, at);
                }
            }
        }
        if attempt {
            self.store.try_now(now);
            if let Medium::Closed(_, at) = &mut self.medium {
                *at = (*at).min(now);
            }
        }
    }

    /// Counts a failure of the medium. Returns the pause before the next attempt.
    fn pause(&mut self) -> Duration {
        self.backoff.pause(&self.config.retry)
    }

    fn note_medium(&self, error: Option<TransportError>) {
        let error = error.map(Arc::new);
        self.state.watch.update(|status| {
            if let Some(error) = &error {
                status.waiting.failed(Arc::clone(error));
            }
            status.medium_error = error;
        });
    }

    fn open_when_due(&mut self, now: Instant) {
        let due = matches!(&self.medium, Medium::Closed(_, at) if *at <= now);
        if due {
            if let Medium::Closed(inner, _) = std::mem::replace(&mut self.medium, Medium::Away) {
                open(&self.state, inner, self.config.reopen_timeout);
            }
        }
    }

    fn show(&mut self, now: Instant) {
        let (route, stats) = match &self.medium {
            Medium::Open(inner) if self.drained => (SpoolRoute::Direct, Some(inner.stats())),
            Medium::Open(inner) => (SpoolRoute::Replaying, Some(inner.stats())),
            Medium::Closed(inner, _) => (SpoolRoute::Away, Some(inner.stats())),
            Medium::Away => (SpoolRoute::Away, None),
        };
        let is_idle = {
            let mut state = self.state.lock();
            // While another thread opens the writer, its last figures stay.
            state.stats = stats.unwrap_or_else(|| std::mem::take(&mut state.stats));
            state.stats.blocked &= route != SpoolRoute::Away;
            route == SpoolRoute::Direct && state.pending.is_empty()
        };
        if is_idle {
            self.away_since = None;
        }
        // Only a chunk that moved, or an idle spool, ends the wait.
        let ends = std::mem::take(&mut self.has_moved) || is_idle;
        self.state.watch.update(|status| {
            status.route = route;
            if ends {
                status.waiting.end();
            }
            if route != SpoolRoute::Direct {
                status.waiting.go_on(now, None);
            }
        });
    }

    fn next_time(&self, now: Instant) -> Instant {
        let open_at = match &self.medium {
            Medium::Closed(_, at) => Some(*at),
            Medium::Away | Medium::Open(_) => None,
        };
        let look = self.config.spool_after.min(self.config.stall_after) / 2;
        let times = [
            open_at,
            self.away_since.map(|since| since + self.config.spool_after),
            (self.store.is_in_use()).then_some(self.ticked + self.config.commit_interval),
            self.pause_until,
            self.store.failed_until(),
        ];
        // A time in the past was handled, or waits for another event.
        let next = times.into_iter().flatten().filter(|at| *at > now).min();
        let look_at = now + look.clamp(MIN_POLL_INTERVAL, MAX_POLL_INTERVAL);
        next.map_or(look_at, |next| next.min(look_at))
    }
}

/// Opens the medium's writer on its own thread, so that the disk does not wait for a medium that
/// does not answer. The result goes to [`State::opened`](crate::spool::state::State::opened).
fn open(state: &Arc<SpoolState>, inner: Box<dyn ChunkWriter>, timeout: Duration) {
    let medium = inner.capability().medium;
    // Inside the closure, the writer would be lost if the thread cannot be started.
    let cell = Arc::new(Mutex::new(Some(inner)));
    let (for_thread, result) = (Arc::clone(&cell), Arc::clone(state));
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
    if let Err(error) = started {
        if let Some(inner) = take(&cell) {
            let error =
                TransportError::caused_by("start a thread for", medium, RetryClass::Retry, error);
            state.order(|state| state.opened = Some((inner, Err(error))));
        }
    }
}

fn take(cell: &Mutex<Option<Box<dyn ChunkWriter>>>) -> Option<Box<dyn ChunkWriter>> {
    cell.lock().unwrap_or_else(PoisonError::into_inner).take()
}
