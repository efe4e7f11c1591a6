//! The settings of a reader of streams: ports, limits and record types.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::transport::uri::{Host, Uri, UriError, set};

use crate::SCHEME;
use crate::container::TimeUnit;

/// The settings of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KiekerTcpConfig {
    pub(crate) host: Box<str>,
    /// At 0 the operating system chooses one.
    pub(crate) port: u16,
    /// The second port, for the strings of senders with two sockets (`DualSocketTcpWriter`,
    /// `TCPWriter`). Default none: every sender has one socket.
    pub registry_port: Option<u16>,
    /// The most bytes of chunks that wait for the owner or for a verdict. Default 64 MiB. At this
    /// limit nothing more is read, and TCP holds the senders back.
    pub memory_bytes: NonZeroUsize,
    /// The most senders that are served at a time; more are turned away. Default 4,096.
    pub max_connections: NonZeroUsize,
    /// How long a record may wait for other records of its chunk. Default 100 ms.
    pub max_age: Duration,
    /// Whether the ids of traces are made unique across connections. Default: no.
    pub unique_trace_ids: bool,
    /// An `.irl` file, or a folder of them, with record types beside Kieker's own. Default none.
    pub schema: Option<PathBuf>,
    /// The unit of the records' times. Default: the unit that their metadata record says.
    pub time_unit: Option<TimeUnit>,
}

impl KiekerTcpConfig {
    /// Returns the defaults for this host and port. For port 0 the operating system chooses one.
    pub fn new(host: impl Into<Box<str>>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            registry_port: None,
            memory_bytes: non_zero!(64 << 20),
            max_connections: non_zero!(4_096),
            max_age: Duration::from_millis(100),
            unique_trace_ids: false,
            schema: None,
            time_unit: None,
        }
    }

    /// Reads the settings from `kieker+tcp://host:port?setting=value&…`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI has no host or port, has a path, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        let host = uri.host()?.clone();
        let port = host
            .port
            .ok_or_else(|| uri.missing_after_hosts("the port"))?;
        uri.no_path()?;
        let mut config = Self::new(host.name, port);
        config.registry_port = uri.take_number("registry_port")?;
        set(&mut config.memory_bytes, uri.take_bytes_in("memory")?);
        let max_connections = uri.take_number("max_connections")?;
        set(&mut config.max_connections, max_connections);
        set(&mut config.max_age, uri.take_duration("max_age")?);
        let choices = [("sent", false), ("unique", true)];
        let unique_trace_ids = uri.take_choice("trace_ids", &choices)?;
        set(&mut config.unique_trace_ids, unique_trace_ids);
        config.schema = uri.take_path("schema");
        config.time_unit = uri.take_choice("time_unit", &TimeUnit::CHOICES)?;
        uri.finish()?;
        Ok(config)
    }
}

/// Shows the endpoint as a URI without settings.
impl fmt::Display for KiekerTcpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, port) = (self.host.clone(), Some(self.port));
        write!(f, "{SCHEME}://{}", Host { name, port })
    }
}

#[cfg(test)]
mod tests;
