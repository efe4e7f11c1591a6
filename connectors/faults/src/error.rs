//! What can go wrong with making things go wrong, and waiting for what must happen.

use std::io;
use std::time::{Duration, Instant};

/// A fault, or what it is done to, could not be set up.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FaultError {
    /// RabbitMQ is not on this machine.
    #[error(
        "RabbitMQ is not installed, no /usr/lib/rabbitmq/lib/*/sbin/rabbitmq-server: \
         apt-get install -y --no-install-recommends rabbitmq-server"
    )]
    NotInstalled,
    /// The operating system refused something.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was to be done.
        what: Box<str>,
        /// Why it was not.
        source: io::Error,
    },
    /// A broker, a command or a certificate did not do what it should, or not in time.
    #[error("{0}")]
    Failed(Box<str>),
}

impl FaultError {
    /// Names what was to be done when the operating system refused it.
    pub(crate) fn io(what: impl Into<Box<str>>) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            what: what.into(),
            source,
        }
    }
}

/// Calls `step` until it yields a value, for `limit` at most.
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
