//! The owner's side: straight through while the medium is fine, to the spool's thread otherwise.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Notify, Outcome, RejectReason,
    Rejected, RetryClass, TransportError, WriterStats,
};

use crate::config::SpoolConfig;
use crate::direct::{Broken, Direct};
use crate::shared::{Bell, Diverted, Nobody, Shared, Stop, retell};
use crate::watch::{SpoolRoute, SpoolStatus, SpoolWatch};
use crate::worker::Worker;

/// How much longer than its deadline a close waits for the disk.
const DISK_GRACE: Duration = Duration::from_millis(500);

/// Puts the chunks for another writer on disk while its medium is away, and sends them on in order
/// when it is back. README.md tells what is promised when.
///
/// It starts closed, as every writer. Dropping it without [`close`](ChunkWriter::close) is like a
/// crash: what is on disk stays for the next life.
pub struct Spool {
    config: SpoolConfig,
    capability: Capability,
    shared: Arc<Shared>,
    /// Before the first opening.
    fresh: Option<Box<dyn ChunkWriter>>,
    started: bool,
    direct: Option<Direct>,
    /// Known before the direct way began or ended, and not yet told.
    early: Vec<Confirmation>,
    /// The owner has to reopen before anything else.
    broken: Option<TransportError>,
    progress: Progress,
}

/// When the medium last confirmed anything, as far as looks at it tell.
#[derive(Debug, Clone, Copy)]
struct Progress {
    confirmed: u64,
    since: Instant,
    blocked_since: Option<Instant>,
}

impl Progress {
    fn begin() -> Self {
        Self {
            confirmed: 0,
            since: Instant::now(),
            blocked_since: None,
        }
    }
}

impl Spool {
    /// A spool before this writer, closed. Nothing is touched before it is opened.
    pub fn new(inner: Box<dyn ChunkWriter>, config: SpoolConfig) -> Self {
        Self {
            capability: inner.capability().clone(),
            shared: Shared::new(SpoolWatch::default()),
            config,
            fresh: Some(inner),
            started: false,
            direct: None,
            early: Vec::new(),
            broken: None,
            progress: Progress::begin(),
        }
    }

    /// What it did, does and holds.
    pub fn status(&self) -> SpoolStatus {
        self.shared.watch.status()
    }

    /// Reads the status while somebody else owns the spool.
    pub fn watch(&self) -> SpoolWatch {
        self.shared.watch.clone()
    }

    fn error(&self, operation: &'static str, class: RetryClass, message: &str) -> TransportError {
        TransportError::new(operation, self.capability.medium, class, message)
    }

    /// Starts the thread, with the writer of the medium.
    fn start(&mut self) -> Result<(), TransportError> {
        let worker = Worker::new(self.config.clone(), Arc::clone(&self.shared));
        let started = thread::Builder::new()
            .name("baler-spool".into())
            .spawn(move || worker.run());
        match started {
            Ok(_) => {
                self.started = true;
                Ok(())
            }
            Err(error) => {
                let medium = self.capability.medium;
                Err(TransportError::caused_by(
                    "start a thread for",
                    medium,
                    RetryClass::Retry,
                    error,
                ))
            }
        }
    }

    /// Takes the writer of the medium back when the thread has no more use for it.
    fn pick_up(&mut self) {
        if self.direct.is_some() || !self.started {
            return;
        }
        let mut state = self.shared.lock();
        let Some(mut inner) = state.returned.take() else {
            return;
        };
        let backlog = state.take_pending();
        self.early.append(&mut state.outcomes);
        drop(state);
        // The thread's bell must not ring for chunks that go straight through.
        let owner = self.shared.owner();
        inner.set_notify(owner.unwrap_or_else(|| Arc::new(Nobody)));
        self.capability = inner.capability().clone();
        self.progress = Progress::begin();
        let mut direct = Direct::new(inner, backlog);
        let offered = direct.offer_backlog();
        self.direct = Some(direct);
        if let Err(broken) = offered {
            self.leave(broken);
        }
    }

    /// Ends the direct way.
    fn leave(&mut self, broken: Broken) {
        match broken {
            Broken::Away(error) => self.divert(error, Instant::now()),
            Broken::Shrunk(error) => self.broken = Some(error),
        }
    }

    /// Gives the writer of the medium and what it has not confirmed to the thread.
    fn divert(&mut self, error: TransportError, since: Instant) {
        let Some(mut direct) = self.direct.take() else {
            return;
        };
        // What was confirmed before the break still counts; that it broke is known.
        let known = direct.confirmations(&mut self.early);
        drop(known);
        let worked = direct.confirmed > 0;
        let (mut inner, chunks) = direct.into_parts();
        inner.set_notify(Arc::new(Bell(Arc::downgrade(&self.shared))));
        self.shared.order(|state| {
            chunks.into_iter().for_each(|chunk| state.push(chunk));
            state.verdict = Some(Ok(()));
            state.diverted = Some(Diverted {
                inner,
                since,
                error: Some(error),
                worked,
            });
        });
    }

    /// Whether the medium has stopped answering; asked now and then.
    fn look(&mut self) {
        let now = Instant::now();
        let Some(direct) = &self.direct else {
            return;
        };
        let progress = &mut self.progress;
        if direct.is_idle() || direct.confirmed != progress.confirmed {
            progress.confirmed = direct.confirmed;
            progress.since = now;
        }
        match direct.inner.stats().blocked {
            true => {
                progress.blocked_since.get_or_insert(now);
            }
            false => progress.blocked_since = None,
        }
        let lasts = |since: Instant, limit| now.saturating_duration_since(since) >= limit;
        let (since, why) = match progress.blocked_since {
            Some(since) if lasts(since, self.config.spool_after) && !direct.is_idle() => {
                (since, "it asks to wait")
            }
            _ if lasts(progress.since, self.config.stall_after) => {
                (progress.since, "it confirms nothing of what it has")
            }
            _ => return,
        };
        let error = self.error("write to", RetryClass::Retry, why);
        self.divert(error, since);
    }

    /// Offers a chunk to the thread.
    fn offer_detour(&self, chunk: Chunk) -> Result<(), Rejected> {
        let max_chunk_bytes = self.capability.max_chunk_bytes.get();
        if chunk.bytes.len() > max_chunk_bytes {
            let reason = RejectReason::TooLarge { max_chunk_bytes };
            return Err(Rejected { chunk, reason });
        }
        let mut state = self.shared.lock();
        let broken = match &state.verdict {
            _ if !self.started => Some(self.not_open()),
            None => Some(self.not_open()),
            Some(Err(error)) => Some(retell(error)),
            Some(Ok(())) => None,
        };
        if let Some(error) = broken {
            let reason = RejectReason::Broken(Box::new(error));
            return Err(Rejected { chunk, reason });
        }
        let bytes = state.pending_bytes.saturating_add(chunk.bytes.len());
        let is_full = state.pending.len() >= self.capability.window_chunks.get()
            || (!state.pending.is_empty() && bytes > self.capability.window_bytes.get());
        if is_full {
            let reason = RejectReason::Full;
            return Err(Rejected { chunk, reason });
        }
        state.push(chunk);
        drop(state);
        self.shared.order(|_| ());
        Ok(())
    }

    fn not_open(&self) -> TransportError {
        self.error("write to", RetryClass::Retry, "the spool is not open")
    }

    /// Closes the medium's writer; what it did not confirm goes to the thread.
    fn close_direct(&self, direct: Direct, by: Instant, report: &mut CloseReport) {
        let left = by.saturating_duration_since(Instant::now());
        let (inner, mut chunks) = direct.into_parts();
        let closed = inner.close(by - DISK_GRACE.min(left / 2));
        for Confirmation { ticket, outcome } in closed.confirmations {
            // A refusal for now would be one for ever at this point; the disk keeps the chunk.
            if matches!(&outcome, Outcome::Refused(error) if error.class != RetryClass::Final) {
                continue;
            }
            chunks.retain(|chunk| chunk.ticket != ticket);
            report.confirmations.push(Confirmation { ticket, outcome });
        }
        report.error = closed.error;
        self.shared.order(|state| {
            chunks.into_iter().for_each(|chunk| state.push(chunk));
        });
    }
}

impl ChunkWriter for Spool {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        self.pick_up();
        if let Some(error) = &self.broken {
            let reason = RejectReason::Broken(Box::new(retell(error)));
            return Err(Rejected { chunk, reason });
        }
        let Some(direct) = &mut self.direct else {
            return self.offer_detour(chunk);
        };
        match direct.offer(chunk) {
            Err(Rejected {
                chunk,
                reason: RejectReason::Broken(error),
            }) => {
                self.divert(*error, Instant::now());
                self.offer_detour(chunk)
            }
            taken => taken,
        }
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        self.pick_up();
        out.append(&mut self.early);
        if let Some(error) = &self.broken {
            return Err(retell(error));
        }
        if let Some(direct) = &mut self.direct {
            match direct.confirmations(out) {
                Ok(()) => {
                    if self.shared.look.load(Ordering::Relaxed) {
                        self.shared.look.store(false, Ordering::Relaxed);
                        self.look();
                    }
                }
                Err(broken) => self.leave(broken),
            }
            out.append(&mut self.early);
            return self
                .broken
                .as_ref()
                .map_or(Ok(()), |error| Err(retell(error)));
        }
        let mut state = self.shared.lock();
        out.append(&mut state.outcomes);
        match &state.verdict {
            _ if !self.started => Err(self.not_open()),
            None => Err(self.not_open()),
            Some(Err(error)) => Err(retell(error)),
            Some(Ok(())) => Ok(()),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.shared.set_owner(Arc::clone(&notify));
        if let Some(direct) = &mut self.direct {
            direct.inner.set_notify(notify);
        }
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.broken = None;
        self.early.clear();
        let bell = Arc::new(Bell(Arc::downgrade(&self.shared)));
        let mut inner = match self.direct.take() {
            Some(direct) => Some(direct.into_parts().0),
            None => self.fresh.take(),
        };
        if let Some(inner) = &mut inner {
            inner.set_notify(bell);
        }
        self.shared.order(|state| {
            state.generation = state.generation.wrapping_add(1);
            state.take_pending();
            state.outcomes.clear();
            state.attempt = true;
            state.verdict = None;
            // One that came back meanwhile and was not picked up is as good as any.
            if let Some(inner) = inner.or_else(|| state.returned.take()) {
                state.diverted = Some(Diverted {
                    inner,
                    since: Instant::now(),
                    error: None,
                    worked: false,
                });
            }
        });
        if !self.started {
            self.start()?;
        }
        let state = self
            .shared
            .wait(by, |state| state.verdict.is_some() || state.ended);
        if let Some(capability) = &state.capability {
            self.capability = capability.clone();
        }
        let verdict = state.verdict.clone();
        drop(state);
        match verdict {
            Some(Ok(())) => {
                self.pick_up();
                Ok(())
            }
            Some(Err(error)) => Err(retell(&error)),
            None => Err(self.error(
                "open",
                RetryClass::Retry,
                "neither the medium nor the disk answered in time",
            )),
        }
    }

    fn stats(&self) -> WriterStats {
        let mut stats = match &self.direct {
            Some(direct) => direct.inner.stats(),
            None => {
                let mut stats = WriterStats::default();
                stats.blocked = self.shared.lock().blocked;
                stats
            }
        };
        stats.spool = self.shared.watch.stats();
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let mut report = CloseReport::default();
        if !self.started {
            return match self.fresh.take() {
                Some(inner) => inner.close(by),
                None => report,
            };
        }
        self.pick_up();
        report.confirmations.append(&mut self.early);
        if let Some(direct) = self.direct.take() {
            self.close_direct(direct, by, &mut report);
        }
        self.shared.order(|state| state.stop = Stop::Close(by));
        let patience = by.max(Instant::now()) + DISK_GRACE * 2;
        let mut state = self.shared.wait(patience, |state| state.ended);
        report.confirmations.append(&mut state.outcomes);
        let unconfirmed = state.take_pending();
        report.unconfirmed = unconfirmed.iter().map(|chunk| chunk.ticket).collect();
        report.error = report.error.or_else(|| state.end_error.take());
        if report.unconfirmed.is_empty() {
            // That the medium is away is no failure of the spool's.
            report.error = None;
        }
        // A thread that hangs in the disk finds nothing to do when it comes back.
        state.stop = Stop::Drop;
        drop(state);
        self.shared
            .watch
            .update(|status| status.route = SpoolRoute::Closed);
        report
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.shared.order(|state| {
            if state.stop == Stop::No {
                state.stop = Stop::Drop;
            }
        });
    }
}

impl fmt::Debug for Spool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spool")
            .field("config", &self.config)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}
