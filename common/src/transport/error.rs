//! Errors of a medium, and their classes.

use std::any::Any;
use std::error::Error;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Whether a retry can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// The call was given up. It is unknown whether the chunk arrived.
    Exhausted,
    /// A retry cannot help: too large, not authorised, unknown topic.
    Final,
    /// A retry may help: connection lost, queue full.
    Retry,
}

/// A medium failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {endpoint}: {message}")]
pub struct TransportError {
    /// The failed operation, as a verb: `connect to`, `write to`.
    pub operation: &'static str,
    /// The endpoint, without credentials.
    pub endpoint: Box<str>,
    /// The message.
    pub message: Box<str>,
    /// Whether a retry can help.
    pub class: RetryClass,
    /// The client library's or the operating system's error.
    #[source]
    pub source: Option<Box<dyn Error + Send + Sync>>,
}

impl TransportError {
    /// An error without a source.
    pub fn new(
        operation: &'static str,
        endpoint: impl Into<Box<str>>,
        class: RetryClass,
        message: impl Into<Box<str>>,
    ) -> Self {
        Self {
            operation,
            endpoint: endpoint.into(),
            message: message.into(),
            class,
            source: None,
        }
    }

    /// An error caused by another, whose text becomes the message.
    pub fn caused_by(
        operation: &'static str,
        endpoint: impl Into<Box<str>>,
        class: RetryClass,
        source: impl Error + Send + Sync + 'static,
    ) -> Self {
        let message = source.to_string().into();
        let source: Option<Box<dyn Error + Send + Sync>> = Some(Box::new(source));
        Self {
            operation,
            endpoint: endpoint.into(),
            message,
            class,
            source,
        }
    }

    /// Returns a copy without its source. A broken end can report its error again and again.
    #[must_use]
    pub fn again(&self) -> Self {
        let (endpoint, message) = (self.endpoint.clone(), self.message.clone());
        Self::new(self.operation, endpoint, self.class, message)
    }

    /// Whether a retry may help.
    pub fn is_retryable(&self) -> bool {
        self.class == RetryClass::Retry
    }
}

/// The source of a [`TransportError`] about wrong data that was read. The medium itself works.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongData(pub Box<str>);

/// Why a reader or writer is broken. It can be reported any number of times.
///
/// It is a [`TransportError`] without its endpoint and source. A connector's threads and callbacks
/// detect the problem; only its reader and writer know the endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The failed operation: `connect to`, `write to`.
    pub operation: &'static str,
    /// The message.
    pub message: Box<str>,
    /// Whether a retry may help.
    pub class: RetryClass,
}

impl Failure {
    /// Returns a failure that may pass.
    pub fn retry(operation: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            operation,
            message: message.into(),
            class: RetryClass::Retry,
        }
    }

    /// Returns a failure for an error of the operating system, which may pass.
    pub fn of_io(operation: &'static str, error: &std::io::Error) -> Self {
        Self::retry(operation, error.to_string())
    }

    /// Returns a failure that stays until the configuration changes.
    pub fn last(operation: &'static str, message: impl Into<Box<str>>) -> Self {
        Self {
            class: RetryClass::Final,
            ..Self::retry(operation, message)
        }
    }

    /// Calls a function. A panic becomes a failure that may pass, with the panic's text.
    ///
    /// For the threads of connectors: their owner would wait for ever for a thread that is gone.
    ///
    /// # Errors
    ///
    /// The function panicked.
    pub fn catching<T>(operation: &'static str, call: impl FnOnce() -> T) -> Result<T, Self> {
        // The caller gives up the state that the panic left half done.
        catch_unwind(AssertUnwindSafe(call)).map_err(|panic| {
            let message = format!("this end panicked: {}", panic_text(panic.as_ref()));
            Self::retry(operation, message)
        })
    }

    /// The error at this endpoint.
    pub fn at(&self, endpoint: &str) -> TransportError {
        TransportError::new(self.operation, endpoint, self.class, self.message.clone())
    }
}

impl From<&TransportError> for Failure {
    fn from(error: &TransportError) -> Self {
        Self {
            operation: error.operation,
            message: error.message.clone(),
            class: error.class,
        }
    }
}

/// Returns the text of a panic.
pub fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}

#[cfg(test)]
mod tests;
