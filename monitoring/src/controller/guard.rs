//! Shutting down when a scope ends.

use std::time::Duration;

use super::Controller;
use crate::collector::ShutdownReport;

/// Shuts its controller down when it is dropped; keep it until the end of `main`.
///
/// Shutting down twice does nothing more: a guard may stand beside an explicit
/// [`Controller::shutdown`].
#[derive(Debug)]
#[must_use = "dropping it shuts the controller down"]
pub struct ShutdownGuard {
    controller: Controller,
    timeout: Duration,
}

impl ShutdownGuard {
    pub(super) fn new(controller: Controller, timeout: Duration) -> Self {
        Self {
            controller,
            timeout,
        }
    }

    /// Shuts down now and says how it went.
    pub fn shutdown(self) -> ShutdownReport {
        self.controller.shutdown(self.timeout)
    }
}

impl Drop for ShutdownGuard {
    fn drop(&mut self) {
        self.controller.shutdown(self.timeout);
    }
}
