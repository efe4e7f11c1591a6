//! The owner's side: passes chunks to the spool's thread and takes their outcomes.

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Notify, Probes, Rejected,
    RetryClass, TransportError, WriterStats,
};

use super::config::SpoolConfig;
use super::state::{DISK_GRACE, SpoolRoute, SpoolState, SpoolStatus, SpoolWatch, State, Stop};
use super::worker::Worker;

/// Puts the chunks of another writer on disk while its medium is away, and sends them on in order
/// when the medium is back. README.md lists the promises.
///
/// It starts closed, like every writer. Its own thread drives the other writer and the disk. A drop
/// without [`close`](ChunkWriter::close) is like a crash: chunks on disk stay for the next life.
pub struct Spool {
    config: SpoolConfig,
    capability: Capability,
    state: Arc<SpoolState>,
    started: bool,
}

impl Spool {
    /// Creates a closed spool before this writer. It touches no file before it is opened.
    pub fn new(inner: Box<dyn ChunkWriter>, config: SpoolConfig) -> Self {
        let capability = inner.capability().clone();
        let state = SpoolState::new();
        state.lock().opened = Some((inner, Ok(())));
        Self {
            config,
            capability,
            state,
            started: false,
        }
    }

    /// Returns the route, counts and errors.
    pub fn status(&self) -> SpoolStatus {
        self.state.watch.status()
    }

    /// Returns a handle that reads the status while the spool has another owner.
    pub fn watch(&self) -> SpoolWatch {
        self.state.watch.clone()
    }

    /// Returns an error if chunks are not accepted.
    fn verdict(&self, state: &State) -> Result<(), TransportError> {
        match &state.verdict {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(error.again()),
            None => Err(self.error("write to", "the spool is not open")),
        }
    }

    fn error(&self, operation: &'static str, message: &str) -> TransportError {
        let medium = self.capability.medium;
        TransportError::new(operation, medium, RetryClass::Retry, message)
    }

    /// Starts the thread, unless it runs.
    fn start(&mut self) -> Result<(), TransportError> {
        if !self.started {
            let (config, state) = (self.config.clone(), Arc::clone(&self.state));
            let thread = thread::Builder::new().name("baler-spool".into());
            let started = thread.spawn(move || Worker::new(config, state).run());
            let (operation, medium) = ("start a thread for", self.capability.medium);
            started.map_err(|error| {
                TransportError::caused_by(operation, medium, RetryClass::Retry, error)
            })?;
            self.started = true;
        }
        Ok(())
    }
}

impl ChunkWriter for Spool {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        let mut state = self.state.lock();
        if let Err(error) = self.verdict(&state) {
            return Err(Rejected::broken(chunk, error));
        }
        if !state.window.take(&chunk, &self.capability) {
            return Err(Rejected::full(chunk));
        }
        state.pending.push_back(chunk);
        drop(state);
        self.state.order(|_| ());
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        let mut state = self.state.lock();
        out.append(&mut state.outcomes);
        self.verdict(&state)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.state.owner.set(notify);
    }

    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        // Before the first opening, the writer of the medium is still here.
        if let Some((inner, _)) = &mut self.state.lock().opened {
            inner.set_probes(probes);
        }
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.state.order(|state| {
            state.generation = state.generation.wrapping_add(1);
            state.forget();
            state.outcomes.clear();
            state.attempt = true;
            // The error of a thread that panicked stays.
            if !state.ended {
                state.verdict = None;
            }
        });
        self.start()?;
        let state = self
            .state
            .wait(by, |state| state.verdict.is_some() || state.ended);
        if let Some(capability) = &state.capability {
            self.capability = capability.clone();
        }
        match &state.verdict {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(error.again()),
            None => Err(self.error("open", "neither the medium nor the disk answered in time")),
        }
    }

    fn stats(&self) -> WriterStats {
        let mut stats = self.state.lock().stats.clone();
        stats.spool = self.state.watch.stats();
        stats
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        if !self.started {
            let inner = self.state.lock().opened.take();
            return inner.map_or_else(CloseReport::default, |(inner, _)| inner.close(by));
        }
        self.state.order(|state| state.stop = Stop::Close(by));
        let patience = by.max(Instant::now()) + DISK_GRACE * 2;
        let mut state = self.state.wait(patience, |state| state.ended);
        let mut report = CloseReport {
            delivery_reports: std::mem::take(&mut state.outcomes),
            unconfirmed: state.forget(),
            error: state.end_error.take(),
        };
        if report.unconfirmed.is_empty() {
            // A medium that is away is no failure of the spool.
            report.error = None;
        }
        drop(state);
        self.state
            .watch
            .update(|status| status.route = SpoolRoute::Closed);
        report
    }
}

impl Drop for Spool {
    /// Ends the thread. A thread that hangs in the disk ends when the disk answers.
    fn drop(&mut self) {
        self.state.order(|state| state.stop = Stop::Drop);
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
