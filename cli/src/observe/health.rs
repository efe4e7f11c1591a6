//! Whether the process is of use: `/livez` and `/readyz`.

use serde_json::{Value, json};

use crate::output;

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
