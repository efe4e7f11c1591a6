//! What a running command shows of itself: its figures, and whether it is of use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use baler_analysis::SourceWatch;
use baler_common::transport::{ChunkReader, ChunkWriter, LaneLag, LaneName};
use baler_monitoring::Controller;
use baler_rig::clock::process_cpu_time;
use baler_rig::usage::Footprint;
use serde_json::{Value, json};

use super::exposition::Exposition;
use super::metric;
use super::receiving::Worker;
use super::tap::{TapHub, TappedReader, TappedWriter};
use crate::output;
use crate::shutdown::Shutdown;

/// Something that has figures. Looking at them must be cheap and never block for long: it happens
/// at every scrape, on the server's thread.
pub(crate) trait Observable: Send {
    /// Adds its figures.
    fn expose(&self, exposition: &mut Exposition, now: Instant);

    /// How many chunks it is behind in each lane, if it reads and its medium says.
    fn lag(&self) -> Vec<LaneLag> {
        Vec::new()
    }

    /// How many chunks it holds that are neither delivered nor given back.
    fn chunks_left(&self) -> u64 {
        0
    }

    /// Whether it is of use. The oldest chunk may be unconfirmed for `ready_age`.
    fn checks(&self, ready_age: Duration, now: Instant) -> Vec<Check>;
}

/// What a running command shows of itself.
pub(crate) struct Observed {
    command: &'static str,
    started: SystemTime,
    shutdown: Shutdown,
    registry: Mutex<Registry>,
    /// The chunks that pass.
    pub(super) taps: Arc<TapHub>,
}

#[derive(Default)]
struct Registry {
    parts: Vec<Box<dyn Observable>>,
    workers: usize,
    /// Role and endpoint.
    endpoints: Vec<(&'static str, String)>,
}

impl Observed {
    /// A command that has nothing to show yet.
    pub(crate) fn new(command: &'static str, shutdown: &Shutdown) -> Self {
        Self {
            command,
            started: SystemTime::now(),
            shutdown: shutdown.clone(),
            registry: Mutex::default(),
            taps: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
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
        let mut registry = self.lock();
        let name = registry.workers.to_string();
        registry.workers = registry.workers.saturating_add(1);
        registry.parts.push(Box::new(Worker { name, watch }));
    }

    /// How many chunks are neither delivered nor given back.
    pub(crate) fn chunks_left(&self) -> u64 {
        let registry = self.lock();
        let left = registry.parts.iter().map(|part| part.chunks_left());
        left.fold(0, u64::saturating_add)
    }

    /// Names an endpoint, without its secrets, and what it is used for: `source` or `sink`.
    pub(crate) fn endpoint(&self, role: &'static str, endpoint: &str) {
        self.lock().endpoints.push((role, endpoint.to_owned()));
    }

    /// Lets taps see what this reader hands out.
    pub(crate) fn tapped_reader(&self, reader: Box<dyn ChunkReader>) -> Box<dyn ChunkReader> {
        let taps = Arc::clone(&self.taps);
        Box::new(TappedReader { reader, taps })
    }

    /// Lets taps see what this writer takes.
    pub(crate) fn tapped_writer(&self, writer: Box<dyn ChunkWriter>) -> Box<dyn ChunkWriter> {
        Box::new(TappedWriter {
            writer,
            taps: Arc::clone(&self.taps),
            next_ticket: 0,
        })
    }

    /// Every figure of now, in Prometheus's text format.
    pub(crate) fn metrics(&self) -> String {
        let mut exposition = Exposition::default();
        let now = Instant::now();
        let registry = self.lock();
        let mut lag: BTreeMap<LaneName, u64> = BTreeMap::new();
        for part in &registry.parts {
            part.expose(&mut exposition, now);
            for LaneLag { lane, chunks } in part.lag() {
                // Competing readers of one queue all tell of it: the largest figure counts.
                let most = lag.entry(lane).or_default();
                *most = chunks.max(*most);
            }
        }
        if !lag.is_empty() {
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

    /// What says whether the process is of use.
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

/// Adds the figures of the process; those that the operating system does not tell are absent.
fn process(exposition: &mut Exposition, started: SystemTime) {
    exposition.set(&metric::CPU_SECONDS, &[], process_cpu_time());
    if let Ok(footprint) = Footprint::of(std::process::id()) {
        exposition.set(&metric::RESIDENT_BYTES, &[], footprint.resident_bytes);
        // One of them is the listing's own.
        let files = footprint.descriptors.saturating_sub(1);
        exposition.set(&metric::OPEN_FDS, &[], files);
    }
    if let Ok(since) = started.duration_since(SystemTime::UNIX_EPOCH) {
        exposition.set(&metric::START_TIME, &[], since);
    }
}

/// One thing that was looked at, and its figures.
#[derive(Debug)]
pub(crate) struct Check {
    ok: bool,
    /// Good only because something stands in for what is not.
    degraded: bool,
    document: Value,
}

impl Check {
    /// A check by name, and how it went.
    pub(crate) fn new(name: &'static str, ok: bool) -> Self {
        Self {
            ok,
            degraded: false,
            document: json!({ "name": name, "ok": ok }),
        }
    }

    /// Says whether it is good only because something stands in for what is not.
    #[must_use]
    pub(crate) fn degraded(mut self, degraded: bool) -> Self {
        self.degraded = degraded;
        self
    }

    /// Adds a figure.
    #[must_use]
    pub(crate) fn with(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        output::insert(&mut self.document, name, value);
        self
    }
}

/// Whether a process with these checks is of use, and the answer of a health endpoint. The names are
/// part of the program's interface.
pub(super) fn answer(checks: Vec<Check>) -> (bool, String) {
    let is_ready = checks.iter().all(|check| check.ok);
    let status = match checks.iter().any(|check| check.degraded) {
        _ if !is_ready => "unready",
        true => "degraded",
        false => "ok",
    };
    let checks = checks.into_iter().map(|check| check.document);
    let document = json!({ "status": status, "checks": checks.collect::<Vec<_>>() });
    (is_ready, format!("{document}\n"))
}
