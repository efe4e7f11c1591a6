//! The observable state of a running command: its figures and its health.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use baler_analysis::SourceWatch;
use baler_common::transport::{ChunkReader, ChunkWriter, LaneLag, LaneName, Received};
use baler_connector_kieker::pattern::Action;
use baler_monitoring::Controller;
use baler_monitoring::usage::{Footprint, process_cpu_time};
use serde_json::Value;

use super::exposition::Exposition;
use super::metric;
use super::observable::{Check, Observable};
use super::receiving::Worker;
use super::tap::{TapHub, TappedWriter};
use crate::endpoint::watched;
use crate::shutdown::Shutdown;

/// Lists and switches the probes of connected programs.
pub(crate) trait Probes: Send + Sync {
    /// Returns the programs and the patterns.
    fn list(&self) -> Value;

    /// Adds a pattern, and returns its effect.
    ///
    /// # Errors
    ///
    /// The pattern is wrong, or there are too many.
    fn switch(&self, action: Action, pattern: &str) -> Result<Value, String>;
}

/// The probes, and the clients that may use them.
#[derive(Clone)]
pub(crate) struct ProbesAccess {
    pub(crate) probes: Arc<dyn Probes>,
    /// The value of their header `Authorization`.
    pub(crate) authorization: Arc<str>,
}

/// The observable state of a running command.
pub(crate) struct Observed {
    command: &'static str,
    started: SystemTime,
    shutdown: Shutdown,
    registry: Mutex<Registry>,
    /// The chunks that pass.
    pub(super) taps: Arc<TapHub>,
    pub(super) probes: Option<ProbesAccess>,
}

#[derive(Default)]
struct Registry {
    parts: Vec<Box<dyn Observable>>,
    workers: usize,
    /// Role and endpoint.
    endpoints: Vec<(&'static str, String)>,
}

impl Observed {
    /// Creates the state of a command that has nothing to show yet.
    pub(crate) fn new(
        command: &'static str,
        shutdown: &Shutdown,
        probes: Option<ProbesAccess>,
    ) -> Self {
        Self {
            command,
            started: SystemTime::now(),
            shutdown: shutdown.clone(),
            registry: Mutex::default(),
            taps: Arc::default(),
            probes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a part with figures.
    pub(crate) fn add(&self, part: Box<dyn Observable>) {
        self.lock().parts.push(part);
    }

    /// Adds a controller, with the figures of sending.
    pub(crate) fn sends(&self, controller: &Controller) {
        self.add(Box::new(controller.clone()));
    }

    /// Adds a source, with the figures of one more receiving worker.
    pub(crate) fn receives(&self, watch: SourceWatch) {
        let mut registry = self.lock();
        let name = registry.workers.to_string();
        registry.workers += 1;
        registry.parts.push(Box::new(Worker { name, watch }));
    }

    /// Returns the number of chunks that are neither delivered nor given back.
    pub(crate) fn chunks_left(&self) -> u64 {
        let registry = self.lock();
        registry.parts.iter().map(|part| part.chunks_left()).sum()
    }

    /// Adds an endpoint, without its secrets, and its role: `source` or `sink`.
    pub(crate) fn endpoint(&self, role: &'static str, endpoint: &str) {
        self.lock().endpoints.push((role, endpoint.to_owned()));
    }

    /// Lets taps see the chunks that this reader returns.
    pub(crate) fn tapped_reader(&self, reader: Box<dyn ChunkReader>) -> Box<dyn ChunkReader> {
        let taps = Arc::clone(&self.taps);
        watched(reader, move |_, received| {
            if let Ok(Received::Chunk(delivery)) = received {
                taps.pass(&delivery.bytes);
            }
        })
    }

    /// Lets taps see the chunks that this writer takes.
    pub(crate) fn tapped_writer(&self, writer: Box<dyn ChunkWriter>) -> Box<dyn ChunkWriter> {
        Box::new(TappedWriter {
            writer,
            taps: Arc::clone(&self.taps),
            next_ticket: 0,
        })
    }

    /// Returns all current figures in Prometheus's text format.
    pub(crate) fn metrics(&self) -> String {
        let mut exposition = Exposition::default();
        let now = Instant::now();
        let registry = self.lock();
        let mut lag: BTreeMap<LaneName, u64> = BTreeMap::new();
        for part in &registry.parts {
            part.expose(&mut exposition, now);
            for LaneLag { lane, chunks } in part.lag() {
                // Competing readers of one queue all report its lag. The largest figure counts.
                let max = lag.entry(lane).or_default();
                *max = chunks.max(*max);
            }
        }
        if !lag.is_empty() {
            // Brokers report these numbers.
            let total = lag.into_values().fold(0, u64::saturating_add);
            exposition.set(&metric::LAG, &[], total);
        }
        for (role, endpoint) in &registry.endpoints {
            exposition.set(&metric::ENDPOINT_INFO, &[role, endpoint], true);
        }
        drop(registry);
        exposition.set(&metric::TAPS, &[], self.taps.taps());
        exposition.set(&metric::TAP_SKIPPED, &[], self.taps.skipped());
        let labels = [env!("CARGO_PKG_VERSION"), self.command];
        exposition.set(&metric::BUILD_INFO, &labels, true);
        process(&mut exposition, self.started);
        exposition.text()
    }

    /// Returns the checks of the process's health.
    pub(super) fn checks(&self, ready_age: Duration) -> Vec<Check> {
        let now = Instant::now();
        let draining = self.shutdown.is_requested();
        let mut checks = vec![Check::new("running", !draining)];
        for part in &self.lock().parts {
            checks.extend(part.checks(ready_age, now));
        }
        checks
    }
}

/// Adds the figures of the process. Figures that the operating system does not report are absent.
fn process(exposition: &mut Exposition, started: SystemTime) {
    exposition.set(&metric::CPU_SECONDS, &[], process_cpu_time());
    if let Ok(footprint) = Footprint::of(std::process::id()) {
        exposition.set(&metric::RESIDENT_BYTES, &[], footprint.resident_bytes);
        // One descriptor belongs to the listing itself.
        exposition.set(&metric::OPEN_FDS, &[], footprint.descriptors - 1);
    }
    if let Ok(since) = started.duration_since(SystemTime::UNIX_EPOCH) {
        exposition.set(&metric::START_TIME, &[], since);
    }
}
