//! Why an end is broken.

use super::error::{RetryClass, TransportError};

/// Why an end of a connector is broken, to be told as often as it is asked for.
///
/// A [`TransportError`] without its endpoint and source: threads and callbacks of a connector find
/// out what went wrong, its two ends know where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// What was tried: `connect to`, `write to`.
    pub operation: &'static str,
    /// What went wrong.
    pub message: Box<str>,
    /// Whether trying again may help.
    pub class: RetryClass,
}

impl Failure {
    /// One that may pass.
    pub fn retry(operation: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            operation,
            message: message.into(),
            class: RetryClass::Retry,
        }
    }

    /// One that stays until somebody changes the configuration.
    pub fn last(operation: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            class: RetryClass::Final,
            ..Self::retry(operation, message)
        }
    }

    /// The error at this endpoint.
    pub fn at(&self, endpoint: &str) -> TransportError {
        TransportError::new(self.operation, endpoint, self.class, self.message.clone())
    }
}
