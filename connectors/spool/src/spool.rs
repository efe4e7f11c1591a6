//! The owner's side: straight through while the medium is fine, to the spool's thread otherwise.

mod route;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use std::{fmt, thread};

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Notify, RejectReason, Rejected,
    RetryClass, TransportError, WriterStats,
};

use self::route::Progress;
use crate::config::SpoolConfig;
use crate::direct::Direct;
use crate::shared::{Diverted, SpoolState, Stop};
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
    shared: Arc<SpoolState>,
    /// Before the first opening.
    fresh: Option<Box<dyn ChunkWriter>>,
    started: bool,
    direct: Option<Direct>,
    /// Known before the direct way began or ended, and not yet told.
    early: Vec<Confirmation>,
    /// The owner has to reopen before anything else.
    broken: Option<TransportError>,
    progress: Progress,
    /// Whether the owner waits for confirmations. The thread always does.
    awaited: bool,
}

impl Spool {
    /// A spool before this writer, closed. Nothing is touched before it is opened.
    pub fn new(inner: Box<dyn ChunkWriter>, config: SpoolConfig) -> Self {
        Self {
            capability: inner.capability().clone(),
            shared: SpoolState::new(SpoolWatch::default()),
            config,
            fresh: Some(inner),
            started: false,
            direct: None,
            early: Vec::new(),
            broken: None,
            progress: Progress::begin(),
            awaited: true,
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

impl ChunkWriter for Spool {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        self.pick_up();
        if let Some(error) = &self.broken {
            return Err(Rejected::broken(chunk, error.again()));
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
            return Err(error.again());
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
                .map_or(Ok(()), |error| Err(error.again()));
        }
        let mut state = self.shared.lock();
        out.append(&mut state.outcomes);
        match &state.verdict {
            _ if !self.started => Err(self.not_open()),
            None => Err(self.not_open()),
            Some(Err(error)) => Err(error.again()),
            Some(Ok(())) => Ok(()),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.shared.owner.set(Arc::clone(&notify));
        if let Some(direct) = &mut self.direct {
            direct.inner.set_notify(notify);
        }
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.awaited = awaited;
        // On the detour the writer is the thread's, which tells of what is on disk as ever.
        if let Some(direct) = &mut self.direct {
            direct.inner.set_awaited(awaited);
        }
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.broken = None;
        self.early.clear();
        let mut inner = match self.direct.take() {
            Some(direct) => Some(direct.into_parts().0),
            None => self.fresh.take(),
        };
        if let Some(inner) = &mut inner {
            self.give_to_thread(inner.as_mut());
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
            Some(Err(error)) => Err(error.again()),
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
