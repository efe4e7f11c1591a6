//! The thread that writes, and the window that its owner and it share.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{Chunk, Notify, NotifyCell, RetryClass, TransportError, Window};

use crate::appender::Appender;
use crate::config::{FileWriterConfig, SyncPolicy};
use crate::error::io_error;
use crate::stats::WriterCounters;

/// What owner and thread share.
pub(crate) struct Shared {
    pub(crate) state: Mutex<State>,
    /// Something to do for the thread.
    pub(crate) work: Condvar,
    /// The phase changed.
    pub(crate) changed: Condvar,
    notify: Arc<NotifyCell>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    /// Offered and not yet taken by the thread.
    pub(crate) queue: VecDeque<Chunk>,
    /// Offered and not yet confirmed, `queue` included.
    pub(crate) window: Window,
    pub(crate) confirmed: Vec<u64>,
    /// An offer was refused because the window is full: there is nothing to wait for.
    pub(crate) starved: bool,
    /// What a full folder has to have room for.
    pub(crate) wanted_bytes: u64,
    pub(crate) stop: Stop,
}

#[derive(Default)]
pub(crate) enum Phase {
    #[default]
    Opening,
    Open,
    /// The thread ended, with this error if it did not end by request.
    Ended(Option<TransportError>),
}

#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Stop {
    #[default]
    No,
    /// Write what is queued, then end.
    Flush,
    /// End now.
    Abandon,
}

/// What the thread is to do next.
enum Work {
    Write(Vec<Chunk>),
    Sync,
    End,
}

impl Shared {
    /// Starts the thread, which opens the folder first.
    pub(crate) fn start(
        config: &FileWriterConfig,
        counters: &Arc<WriterCounters>,
        notify: Arc<NotifyCell>,
        wanted_bytes: u64,
    ) -> Result<Arc<Self>, TransportError> {
        let shared = Arc::new(Self {
            state: Mutex::new(State {
                wanted_bytes,
                ..State::default()
            }),
            work: Condvar::new(),
            changed: Condvar::new(),
            notify,
        });
        let for_thread = Arc::clone(&shared);
        let for_config = config.clone();
        let counters = Arc::clone(counters);
        thread::Builder::new()
            .name("baler-file".into())
            .spawn(move || {
                let _end = EndOnPanic(&for_thread);
                let outcome = for_thread.run(&for_config, counters);
                for_thread.end(outcome.err());
            })
            .map_err(|error| io_error("start a thread for", &config.folder, error))?;
        Ok(shared)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn stop(&self, stop: Stop) {
        self.lock().stop = stop;
        self.work.notify_one();
    }

    /// Waits until the phase is as wanted; says whether it became so in time.
    pub(crate) fn wait(&self, by: Instant, wanted: impl Fn(&Phase) -> bool) -> bool {
        let left = by.saturating_duration_since(Instant::now());
        let (state, _) = self
            .changed
            .wait_timeout_while(self.lock(), left, |state| !wanted(&state.phase))
            .unwrap_or_else(PoisonError::into_inner);
        wanted(&state.phase)
    }

    /// The thread.
    fn run(
        &self,
        config: &FileWriterConfig,
        counters: Arc<WriterCounters>,
    ) -> Result<(), TransportError> {
        let wanted_bytes = self.lock().wanted_bytes;
        let mut appender = Appender::open(config, counters, wanted_bytes)?;
        self.lock().phase = Phase::Open;
        self.changed.notify_all();
        self.notify.notify();
        let mut window = Unsynced::default();
        loop {
            let work = self.next_work(window.due(config.sync));
            let ends = matches!(work, Work::End);
            let written = match work {
                Work::Write(chunks) => appender.append(&chunks),
                Work::Sync | Work::End => Ok(()),
            };
            window.add(appender.take_written());
            // What was written before a failure counts, if it can be made durable.
            let synced = match config.sync {
                SyncPolicy::None => Ok(()),
                SyncPolicy::Interval(interval) if written.is_ok() && !ends => {
                    match window.is_due(interval) || self.is_starved() {
                        true => appender.sync(),
                        false => continue,
                    }
                }
                SyncPolicy::Chunk | SyncPolicy::Interval(_) => appender.sync(),
            };
            if synced.is_ok() {
                self.confirm(std::mem::take(&mut window).chunks);
            }
            if let Err(error) = written.and(synced) {
                self.lock().wanted_bytes = appender.wanted_bytes();
                return Err(error);
            }
            if ends {
                return Ok(());
            }
        }
    }

    fn next_work(&self, sync_at: Option<Instant>) -> Work {
        let mut state = self.lock();
        loop {
            if state.stop == Stop::Abandon {
                return Work::End;
            }
            if !state.queue.is_empty() {
                return Work::Write(state.queue.drain(..).collect());
            }
            if state.stop == Stop::Flush {
                return Work::End;
            }
            let Some(sync_at) = sync_at else {
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = sync_at.saturating_duration_since(Instant::now());
            if left.is_zero() || state.starved {
                return Work::Sync;
            }
            (state, _) = self
                .work
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn is_starved(&self) -> bool {
        self.lock().starved
    }

    /// Confirms the oldest chunks in flight.
    fn confirm(&self, chunks: usize) {
        let mut state = self.lock();
        state.starved = false;
        for _ in 0..chunks {
            let ticket = state.window.remove_oldest();
            state.confirmed.extend(ticket);
        }
        drop(state);
        if chunks > 0 {
            self.notify.notify();
        }
    }

    fn end(&self, failure: Option<TransportError>) {
        {
            let mut state = self.lock();
            if !matches!(state.phase, Phase::Ended(_)) {
                state.phase = Phase::Ended(failure);
            }
            // What was not confirmed is the owner's again.
            state.queue.clear();
        }
        self.changed.notify_all();
        self.notify.notify();
    }
}

/// Chunks that were written and not yet forced to stable storage.
#[derive(Default)]
struct Unsynced {
    chunks: usize,
    since: Option<Instant>,
}

impl Unsynced {
    fn add(&mut self, chunks: usize) {
        if chunks > 0 {
            self.chunks = self.chunks.saturating_add(chunks);
            self.since.get_or_insert_with(Instant::now);
        }
    }

    fn due(&self, policy: SyncPolicy) -> Option<Instant> {
        match policy {
            SyncPolicy::Interval(interval) => self.since.map(|since| since + interval),
            SyncPolicy::Chunk | SyncPolicy::None => None,
        }
    }

    fn is_due(&self, interval: Duration) -> bool {
        self.since.is_some_and(|since| since.elapsed() >= interval)
    }
}

/// Ends the phase even if the thread panics, so that nobody waits for it forever.
struct EndOnPanic<'a>(&'a Shared);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.end(Some(TransportError::new(
                "write to",
                "file:",
                RetryClass::Retry,
                "the writing thread panicked",
            )));
        }
    }
}
