//! Whether the process is of use: `/livez` and `/readyz`.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

/// Beyond what the process is not ready.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// How long the oldest chunk may be unconfirmed.
    pub(crate) unconfirmed_age: Duration,
}

/// One thing that was looked at, and its figures.
#[derive(Debug, Serialize)]
pub(crate) struct Check {
    name: &'static str,
    ok: bool,
    /// Good only because something stands in for what is not.
    #[serde(skip)]
    degraded: bool,
    #[serde(flatten)]
    figures: BTreeMap<&'static str, Value>,
}

impl Check {
    /// A check by name, and how it went.
    pub(crate) fn new(name: &'static str, ok: bool) -> Self {
        Self {
            name,
            ok,
            degraded: false,
            figures: BTreeMap::new(),
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
        self.figures.insert(name, value.into());
        self
    }
}

/// The answer of a health endpoint. The names are part of the program's interface.
#[derive(Debug, Serialize)]
pub(super) struct Health {
    status: &'static str,
    checks: Vec<Check>,
}

impl Health {
    /// The process answers, that is all.
    pub(super) fn alive() -> Self {
        Self {
            status: "ok",
            checks: Vec::new(),
        }
    }

    /// Ready if every check is good.
    pub(super) fn ready(checks: Vec<Check>) -> Self {
        let ready = checks.iter().all(|check| check.ok);
        let degraded = checks.iter().any(|check| check.degraded);
        let status = match (ready, degraded) {
            (false, _) => "unready",
            (true, true) => "degraded",
            (true, false) => "ok",
        };
        Self { status, checks }
    }

    /// Whether the process is of use, if not as it should be.
    pub(super) fn is_ok(&self) -> bool {
        self.status != "unready"
    }

    /// One JSON document.
    pub(super) fn json(&self) -> String {
        // Names and numbers: nothing in it that JSON cannot say.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }
}
