//! Errors of faults, and a function that waits for an expected event.

use std::io;
use std::time::{Duration, Instant};

/// A fault, or its target, could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// RabbitMQ is not on this machine.
    #[error(
        "RabbitMQ is not installed, no /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server: \
         apt-get install -y --no-install-recommends rabbitmq-server"
    )]
    NotInstalled,
    /// The operating system refused a call.
    #[error("cannot {what}: {source}")]
    Io {
        /// The action that failed.
        what: Box<str>,
        /// The reason why it failed.
        source: io::Error,
    },
    /// A broker, a command or a certificate did not do what it should, or not in time.
    #[error("{0}")]
    Failed(Box<str>),
}

impl FaultError {
    /// Returns a function that wraps an error of the operating system, with the action that failed.
    pub(crate) fn io(what: impl Into<Box<str>>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            what: what.into(),
            source,
        }
    }
}

/// Calls `step` until it returns a value, for `limit` at most.
pub(crate) fn within<T>(
    limit: Duration,
    what: &str,
    mut step: impl FnMut() -> Result<Option<T>, FaultError>,
) -> Result<T, FaultError> {
    let start = Instant::now();
    loop {
        if let Some(value) = step()? {
            return Ok(value);
        }
        if start.elapsed() > limit {
            let message = format!("not within {limit:?}: {what}");
            return Err(FaultError::Failed(message.into()));
        }
        pause();
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a pause between two looks at a condition of another process, not a synchronisation"
)]
fn pause() {
    std::thread::sleep(Duration::from_millis(5));
}
