//! Why a medium failed, whether trying again can help, and how often.

use std::error::Error;
use std::time::Duration;

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

    /// An error of the operating system, which may pass.
    pub fn of_io(operation: &'static str, error: &std::io::Error) -> Self {
        Self::retry(operation, error.to_string())
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

/// How often and how long to try again, and with which pauses.
///
/// Pauses grow exponentially with full jitter: the n-th one is drawn evenly from 0 to
/// `min_delay * 2^n`, at most `max_delay`, so that a thousand producers that lost the same broker
/// do not come back in step (Brooker, "Exponential Backoff And Jitter").
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// The upper end of the first pause. Default 100 ms, that of Kafka's `retry.backoff.ms`.
    pub min_delay: Duration,
    /// The upper end of every pause. Default 2 s, so that a medium that is back is used within
    /// 5 s; librdkafka's `reconnect.backoff.max.ms` is 10 s.
    pub max_delay: Duration,
    /// How many failures a chunk survives; `None`, the default, is without limit.
    pub max_attempts: Option<u32>,
    /// How long a chunk is kept at all; `None`, the default, is for ever.
    /// (Kafka's `delivery.timeout.ms`.)
    pub max_elapsed: Option<Duration>,
    /// Where the pauses' random numbers start. Each process should have its own.
    pub seed: u64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            min_delay: Duration::from_millis(100),
            max_delay: Duration::from_secs(2),
            max_attempts: None,
            max_elapsed: None,
            seed: 0,
        }
    }
}

impl RetryPolicy {
    /// The pause after `failures` earlier failures in a row; `draw` numbers the pauses ever drawn.
    ///
    /// The same policy and arguments yield the same pause.
    pub fn delay(&self, failures: u32, draw: u64) -> Duration {
        let doubled = self.min_delay.saturating_mul(1 << failures.min(31));
        let most = doubled.min(self.max_delay).as_nanos();
        // splitmix64 (Steele and others 2014): numbers of 64 bits, drawn evenly.
        let mut random = (self.seed ^ draw.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .wrapping_add(0x9e37_79b9_7f4a_7c15);
        random = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        random = (random ^ (random >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        random ^= random >> 31;
        let nanos = most.saturating_mul(u128::from(random)) >> 64;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests;
