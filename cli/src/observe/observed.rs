//! What a running command shows of itself.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use baler_analysis::SourceWatch;
use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_monitoring::Controller;

use super::exposition::Exposition;
use super::health::{Check, Health, Limits};
use super::receiving::Worker;
use super::tap::{TapHub, TappedReader, TappedWriter};
use super::{metric, process};
use crate::shutdown::Shutdown;

/// Something that has figures. Looking at them must be cheap and never block for long: it happens
/// at every scrape, on the server's thread.
pub(crate) trait Observable: Send {
    /// Adds its figures.
    fn expose(&self, exposition: &mut Exposition, now: Instant);

    /// How many chunks it is behind, if it reads and its medium says.
    fn lag(&self) -> Option<u64> {
        None
    }

    /// How many chunks it holds that are neither delivered nor given back.
    fn chunks_left(&self) -> u64 {
        0
    }

    /// Whether it is of use.
    fn checks(&self, limits: Limits, now: Instant) -> Vec<Check>;
}

/// What a running command shows of itself. Cloning shares.
#[derive(Clone)]
pub(crate) struct Observed {
    inner: Arc<Inner>,
}

struct Inner {
    command: &'static str,
    started: SystemTime,
    shutdown: Shutdown,
    state: Mutex<State>,
    taps: TapHub,
}

#[derive(Default)]
struct State {
    parts: Vec<Box<dyn Observable>>,
    workers: usize,
    /// Role and endpoint.
    endpoints: Vec<(&'static str, String)>,
}

impl fmt::Debug for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Observed")
            .field("command", &self.inner.command)
            .finish_non_exhaustive()
    }
}

impl Observed {
    /// A command that has nothing to show yet.
    pub(crate) fn new(command: &'static str, shutdown: &Shutdown) -> Self {
        Self {
            inner: Arc::new(Inner {
                command,
                started: SystemTime::now(),
                shutdown: shutdown.clone(),
                state: Mutex::default(),
                taps: TapHub::default(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.inner
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Shows the figures of anything.
    pub(crate) fn add(&self, part: Box<dyn Observable>) {
        self.lock().parts.push(part);
    }

    /// Shows the figures of a controller: what it sends.
    pub(crate) fn sends(&self, controller: &Controller) {
        self.add(Box::new(controller.clone()));
    }

    /// Shows the figures of a source: what one more worker receives.
    pub(crate) fn receives(&self, watch: SourceWatch) {
        let mut state = self.lock();
        let name = state.workers.to_string();
        state.workers = state.workers.saturating_add(1);
        state.parts.push(Box::new(Worker { name, watch }));
    }

    /// How many chunks are neither delivered nor given back.
    pub(crate) fn chunks_left(&self) -> u64 {
        let state = self.lock();
        let left = state.parts.iter().map(|part| part.chunks_left());
        left.fold(0, u64::saturating_add)
    }

    /// Names an endpoint, without its secrets, and what it is used for: `source` or `sink`.
    pub(crate) fn endpoint(&self, role: &'static str, endpoint: &str) {
        self.lock().endpoints.push((role, endpoint.to_owned()));
    }

    /// Lets taps see what this reader hands out.
    pub(crate) fn tapped_reader(&self, reader: Box<dyn ChunkReader>) -> Box<dyn ChunkReader> {
        Box::new(TappedReader::new(reader, self.inner.taps.clone()))
    }

    /// Lets taps see what this writer takes.
    pub(crate) fn tapped_writer(&self, writer: Box<dyn ChunkWriter>) -> Box<dyn ChunkWriter> {
        Box::new(TappedWriter::new(writer, self.inner.taps.clone()))
    }

    /// The chunks that pass.
    pub(super) fn taps(&self) -> &TapHub {
        &self.inner.taps
    }

    /// Every figure of now, in Prometheus's text format.
    pub(crate) fn metrics(&self) -> String {
        let mut exposition = Exposition::default();
        let now = Instant::now();
        let state = self.lock();
        let mut lag: Option<u64> = None;
        for part in &state.parts {
            part.expose(&mut exposition, now);
            if let Some(more) = part.lag() {
                lag = Some(lag.unwrap_or(0).saturating_add(more));
            }
        }
        if let Some(lag) = lag {
            exposition.set(&metric::LAG, &[], lag);
        }
        for (role, endpoint) in &state.endpoints {
            exposition.set(&metric::ENDPOINT_INFO, &[role, endpoint], true);
        }
        drop(state);
        exposition.set(&metric::TAPS, &[], self.inner.taps.taps());
        exposition.set(&metric::TAP_SKIPPED, &[], self.inner.taps.skipped());
        let version = env!("CARGO_PKG_VERSION");
        let labels = [version, self.inner.command];
        exposition.set(&metric::BUILD_INFO, &labels, true);
        process::expose(&mut exposition, self.inner.started);
        exposition.text()
    }

    /// Whether the process is of use.
    pub(super) fn readiness(&self, limits: Limits) -> Health {
        let now = Instant::now();
        let draining = self.inner.shutdown.is_requested();
        let mut checks = vec![Check::new("running", !draining)];
        for part in &self.lock().parts {
            checks.extend(part.checks(limits, now));
        }
        Health::ready(checks)
    }
}
