//! Where to listen, and how much may wait.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use baler_common::transport::uri::{Host, Uri, UriError, set};

use crate::SCHEME;

/// The settings of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KiekerTcpConfig {
    pub(crate) host: Host,
    /// The second port of senders with two sockets (`DualSocketTcpWriter`, `TCPWriter`), over which
    /// strings come. Default none: every sender has one socket.
    pub registry_port: Option<u16>,
    /// How many bytes of chunks may wait for the owner or for a verdict. Default 64 MiB. When they
    /// are reached, nothing more is read and TCP holds the senders back.
    pub memory_bytes: NonZeroUsize,
    /// How many senders are taken at a time; more are turned away. Default 4,096.
    pub max_connections: NonZeroUsize,
    /// How long a record may wait for others in its chunk. Default 100 ms.
    pub max_age: Duration,
    /// Whether the ids of traces are made unique across connections. Default: no.
    pub unique_trace_ids: bool,
    /// An `.irl` file, or a folder of them, with record types beside Kieker's own. Default none.
    pub schema: Option<PathBuf>,
}

impl KiekerTcpConfig {
    /// This host and port, and defaults. The operating system chooses a port for 0.
    pub fn new(host: impl Into<Box<str>>, port: u16) -> Self {
        Self {
            host: Host {
                name: host.into(),
                port: Some(port),
            },
            registry_port: None,
            memory_bytes: NonZeroUsize::MIN.saturating_add((64 << 20) - 1),
            max_connections: NonZeroUsize::MIN.saturating_add(4095),
            max_age: Duration::from_millis(100),
            unique_trace_ids: false,
            schema: None,
        }
    }

    /// The settings in `kieker+tcp://host:port?setting=value&…`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI has no host or port, has a path, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        let host = uri.address()?;
        let mut config = Self::new(host.name, host.port.unwrap_or(0));
        config.registry_port = uri.take_number("registry_port")?;
        set(&mut config.memory_bytes, uri.take_bytes_in("memory")?);
        let max_connections = uri.take_number("max_connections")?;
        set(&mut config.max_connections, max_connections);
        set(&mut config.max_age, uri.take_duration("max_age")?);
        let choices = [("sent", false), ("unique", true)];
        let unique_trace_ids = uri.take_choice("trace_ids", &choices)?;
        set(&mut config.unique_trace_ids, unique_trace_ids);
        config.schema = uri.take_path("schema");
        uri.finish()?;
        Ok(config)
    }

    /// The port; 0 lets the operating system choose.
    pub(crate) fn port(&self) -> u16 {
        self.host.port.unwrap_or(0)
    }
}

/// The endpoint, as a URI without settings.
impl fmt::Display for KiekerTcpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}://{}", self.host)
    }
}

#[cfg(test)]
mod tests;
