//! The parts of a running command that have figures and health.

use std::time::{Duration, Instant};

use baler_common::transport::LaneLag;
use serde_json::{Value, json};

use super::exposition::Exposition;
use crate::output;

/// A part with figures. The server's thread calls its methods at every scrape, so they must be
/// cheap and must not block for long.
pub(crate) trait Observable: Send {
    /// Adds its figures.
    fn expose(&self, exposition: &mut Exposition, now: Instant);

    /// Returns the lag of each lane in chunks, if the part reads and its medium reports the lag.
    fn lag(&self) -> Vec<LaneLag> {
        Vec::new()
    }

    /// Returns the number of its chunks that are neither delivered nor given back.
    fn chunks_left(&self) -> u64 {
        0
    }

    /// Returns checks of its health. The oldest chunk may be unconfirmed for `ready_age`.
    fn checks(&self, ready_age: Duration, now: Instant) -> Vec<Check>;
}

/// One check of health, with its figures.
#[derive(Debug)]
pub(crate) struct Check {
    ok: bool,
    /// Whether the check passes only because a substitute stands in for a failed part.
    degraded: bool,
    document: Value,
}

impl Check {
    /// Creates a check with its name and result.
    pub(crate) fn new(name: &'static str, ok: bool) -> Self {
        Self {
            ok,
            degraded: false,
            document: json!({ "name": name, "ok": ok }),
        }
    }

    /// Sets whether the check passes only because a substitute stands in for a failed part.
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

/// Returns whether a process with these checks is ready, and the answer of a health endpoint. The
/// names are part of the program's interface.
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
