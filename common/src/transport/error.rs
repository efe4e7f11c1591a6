//! Why a medium failed, and whether trying again can help.

use std::error::Error;

/// Whether trying again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryClass {
    /// Given up after trying again.
    Exhausted,
    /// Trying again cannot help: too large, not authorised, unknown topic.
    Final,
    /// Trying again may help: connection lost, queue full.
    Retry,
}

/// A medium failed.
#[derive(Debug, thiserror::Error)]
#[error("{operation} {endpoint}: {message}")]
pub struct TransportError {
    /// What was tried, as a verb: `connect to`, `write to`.
    pub operation: &'static str,
    /// Where, without credentials.
    pub endpoint: Box<str>,
    /// What happened.
    pub message: Box<str>,
    /// Whether trying again can help.
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

    /// The same once more, without its source: an end stays broken however often it is asked.
    #[must_use]
    pub fn again(&self) -> Self {
        let (endpoint, message) = (self.endpoint.clone(), self.message.clone());
        Self::new(self.operation, endpoint, self.class, message)
    }

    /// Whether trying again may help.
    pub fn is_retryable(&self) -> bool {
        self.class == RetryClass::Retry
    }
}

/// The source of a [`TransportError`] about data that was read and is wrong. The medium is well.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongData(pub Box<str>);

/// Why an end of a connector is broken; can be reported any number of times.
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
