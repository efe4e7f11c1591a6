//! Recovery from a failure: a pause, another connection, or giving up.

use std::sync::Arc;
use std::time::Instant;

use super::fate::{End, Fate};
use super::{Outbox, WriterState};
use crate::transport::window::InFlight;
use crate::transport::{Failure, RetryClass, TransportError};

impl Outbox {
    /// Opens the writer. Then all chunks without a fate are offered again.
    pub(super) fn reopen(&mut self, now: Instant, by: Option<Instant>, fates: &mut Vec<Fate>) {
        let latest = now.checked_add(self.settings.reopen_timeout);
        let by = by.into_iter().chain(latest).min().unwrap_or(now);
        let medium = self.writer.capability().medium;
        let result = guarded("open", medium, || self.writer.reopen(by));
        match result {
            Ok(Ok(())) => {
                self.opened += 1;
                self.writer_state = WriterState::Open;
            }
            Ok(Err(error)) if error.class == RetryClass::Final => {
                self.broken += 1;
                let error = Arc::new(error);
                self.failed(Arc::clone(&error));
                self.writer_state = WriterState::Failed(error);
            }
            Ok(Err(error)) | Err(error) => {
                for entry in &mut self.unconfirmed {
                    entry.failures += 1;
                }
                self.break_off(error, now);
                self.give_up(now, fates);
            }
        }
    }

    /// The connection is gone. Everything in flight is in doubt, and the writer has forgotten it.
    pub(super) fn break_off(&mut self, error: TransportError, now: Instant) {
        for entry in &mut self.unconfirmed {
            if entry.offered {
                entry.failures += 1;
            }
            entry.offered = false;
            // The pause before reopening applies to all chunks.
            entry.not_before = None;
        }
        self.offered_to = 0;
        self.in_flight = InFlight::default();
        self.broken += 1;
        let pause = self.backoff.pause(&self.settings.retry);
        self.writer_state = WriterState::Closed(now.checked_add(pause));
        self.failed(Arc::new(error));
    }

    /// Records the error.
    pub(super) fn failed(&mut self, error: Arc<TransportError>) {
        self.last_error = Some(Arc::clone(&error));
        self.waiting.failed(error);
    }

    /// Gives up the chunks that exceed the policy's limits.
    pub(super) fn give_up(&mut self, now: Instant, fates: &mut Vec<Fate>) {
        let retry = &self.settings.retry;
        if retry.max_attempts.is_none() && retry.max_elapsed.is_none() {
            return;
        }
        let mut at = 0;
        while let Some(entry) = self.unconfirmed.get(at) {
            let retry = &self.settings.retry;
            let failed = retry
                .max_attempts
                .is_some_and(|most| entry.failures >= most.max(1));
            let expired = retry
                .max_elapsed
                .is_some_and(|most| now.duration_since(entry.since) >= most);
            if failed || expired {
                self.remove(at, End::Undelivered(self.last_error.clone()), fates);
            } else {
                at += 1;
            }
        }
    }
}

/// Calls a writer. A panic becomes an error after which the writer must be reopened.
///
/// For owners that must survive a panic of their writer.
///
/// # Errors
///
/// The call panicked; the error is retryable and has the panic's message.
pub fn guarded<T>(
    operation: &'static str,
    medium: &'static str,
    call: impl FnOnce() -> T,
) -> Result<T, TransportError> {
    // A panic may leave only the writer's own data half done; `reopen` makes it forget that.
    Failure::catching(operation, call).map_err(|failure| failure.at(medium))
}
