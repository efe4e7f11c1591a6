//! Passes poison messages to the quarantine on a thread of its own, in groups.
//!
//! A slow disk must not delay valid chunks. Forcing the files of many chunks to disk takes little
//! more time than for one chunk.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::transport::{ChunkMeta, Origin, Token};
use bytes::Bytes;

use super::poison::{Poison, PutAside, Quarantine};

/// The most chunks that wait for the quarantine. Beyond it the source waits, too.
const MAX_WAITING: usize = 1_024;

/// The most bytes of these chunks; one chunk may always wait.
const MAX_WAITING_BYTES: usize = 32 << 20;

/// The most chunks that the quarantine gets at once: a folder has two files open for each.
const MAX_GROUP: usize = 64;

/// A poison message on its way to the quarantine.
#[derive(Debug)]
pub struct PoisonJob {
    /// `None` for damage that the medium itself skipped.
    pub token: Option<Token>,
    /// The bytes as they were received.
    pub bytes: Bytes,
    /// Their origin.
    pub origin: Origin,
    /// What is known of the chunk.
    pub meta: Option<ChunkMeta>,
    /// The reason.
    pub reason: Box<str>,
    /// See [`Poison::is_sound`].
    pub is_sound: bool,
    /// See [`Poison::peer`].
    pub peer: Option<IpAddr>,
}

/// The quarantine's answer to a [`PoisonJob`].
#[derive(Debug)]
pub struct PoisonResult {
    /// The token of the job.
    pub token: Option<Token>,
    /// The origin of the job.
    pub origin: Origin,
    /// Whether the bytes are safe; an error if they could not be kept.
    pub result: io::Result<PutAside>,
}

/// A quarantine and its thread, which starts with the first poison message.
pub struct QuarantineThread {
    /// Present until the thread has it.
    quarantine: Option<Box<dyn Quarantine>>,
    thread: Option<JoinHandle<()>>,
    shared: Arc<PoisonQueue>,
}

#[derive(Default)]
struct PoisonQueue {
    state: Mutex<PoisonQueueState>,
    changed: Condvar,
}

#[derive(Default)]
struct PoisonQueueState {
    jobs: VecDeque<PoisonJob>,
    /// Jobs without a result, including jobs in work, and their bytes.
    waiting: usize,
    waiting_bytes: usize,
    results: VecDeque<PoisonResult>,
    closed: bool,
}

impl fmt::Debug for QuarantineThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuarantineThread")
            .field("is_waiting", &self.is_waiting())
            .finish_non_exhaustive()
    }
}

impl QuarantineThread {
    /// Creates the thread's owner. The thread starts with the first poison message.
    pub fn new(quarantine: Box<dyn Quarantine>) -> Self {
        Self {
            quarantine: Some(quarantine),
            thread: None,
            shared: Arc::default(),
        }
    }

    /// Whether a result is still to come or to be taken.
    pub fn is_waiting(&self) -> bool {
        let state = self.shared.lock();
        state.waiting > 0 || !state.results.is_empty()
    }

    /// Passes a poison message to the thread. Waits while too many are waiting.
    pub fn put(&mut self, job: PoisonJob) {
        let started = self.start();
        let bytes = job.bytes.len();
        let mut state = self.shared.lock();
        if let Err(error) = started {
            state.results.push_back(job.finished(Err(error)));
            return;
        }
        while state.waiting >= MAX_WAITING
            || state.waiting > 0 && state.waiting_bytes + bytes > MAX_WAITING_BYTES
        {
            state = self.shared.wait(state);
        }
        state.waiting += 1;
        state.waiting_bytes += bytes;
        state.jobs.push_back(job);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Takes the next result, if there is one. Results come in the order of the jobs.
    pub fn next(&self) -> Option<PoisonResult> {
        self.shared.lock().results.pop_front()
    }

    /// Waits for the next result, until `by` at most; returns `None` if there is no job.
    pub fn wait(&self, by: Instant) -> Option<PoisonResult> {
        let left = by.duration_since(Instant::now());
        let is_pending =
            |state: &mut PoisonQueueState| state.results.is_empty() && state.waiting > 0;
        let waited = self
            .shared
            .changed
            .wait_timeout_while(self.shared.lock(), left, is_pending);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.results.pop_front()
    }

    /// Starts the thread with the first job.
    fn start(&mut self) -> io::Result<()> {
        if self.thread.is_some() {
            return Ok(());
        }
        let Some(mut quarantine) = self.quarantine.take() else {
            return Err(io::Error::other("the quarantine's thread did not start"));
        };
        let shared = Arc::clone(&self.shared);
        let thread = thread::Builder::new().name("baler-quarantine".to_owned());
        self.thread = Some(thread.spawn(move || shared.work(&mut *quarantine))?);
        Ok(())
    }
}

impl PoisonQueue {
    fn lock(&self) -> MutexGuard<'_, PoisonQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, PoisonQueueState>,
    ) -> MutexGuard<'a, PoisonQueueState> {
        let woken = self.changed.wait(state);
        woken.unwrap_or_else(PoisonError::into_inner)
    }

    /// The main function of the thread.
    fn work(&self, quarantine: &mut dyn Quarantine) {
        loop {
            let mut state = self.lock();
            while state.jobs.is_empty() && !state.closed {
                state = self.wait(state);
            }
            if state.closed {
                return;
            }
            let count = state.jobs.len().min(MAX_GROUP);
            let group: Vec<PoisonJob> = state.jobs.drain(..count).collect();
            drop(state);
            let put_aside = AssertUnwindSafe(|| put_aside(quarantine, &group));
            // There are as many results as jobs, whatever the quarantine returns.
            let mut results = catch_unwind(put_aside).into_iter().flatten();
            let mut state = self.lock();
            for job in group {
                let no_result = || {
                    Err(io::Error::other(
                        "the quarantine panicked or gave no result",
                    ))
                };
                state.waiting -= 1;
                state.waiting_bytes -= job.bytes.len();
                let result = job.finished(results.next().unwrap_or_else(no_result));
                state.results.push_back(result);
            }
            drop(state);
            self.changed.notify_all();
        }
    }
}

impl PoisonJob {
    fn finished(self, result: io::Result<PutAside>) -> PoisonResult {
        PoisonResult {
            token: self.token,
            origin: self.origin,
            result,
        }
    }
}

fn put_aside(quarantine: &mut dyn Quarantine, group: &[PoisonJob]) -> Vec<io::Result<PutAside>> {
    let group: Vec<Poison<'_>> = group
        .iter()
        .map(|job| Poison {
            bytes: &job.bytes,
            origin: &job.origin,
            meta: job.meta,
            reason: &job.reason,
            is_sound: job.is_sound,
            peer: job.peer,
        })
        .collect();
    quarantine.put_group_aside(&group)
}

impl Drop for QuarantineThread {
    fn drop(&mut self) {
        // The thread completes a group that it has begun, and then drops the quarantine, which
        // closes its connection if it has one.
        self.shared.lock().closed = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}
