//! The settings of a socket to which records go.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::transport::WindowLimits;
use baler_common::transport::uri::{Host, Uri, UriError, set};

use crate::SCHEME;

/// The settings of a writer to a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KiekerTcpWriterConfig {
    pub(crate) host: Box<str>,
    pub(crate) port: u16,
    /// The time limit of connecting. Default 10 s.
    pub connect_timeout: Duration,
    /// The limits of unconfirmed chunks. Default 64 chunks and 64 MiB.
    pub window: WindowLimits,
    /// An `.irl` file, or a folder of them, with record types that the reader has beside Kieker's
    /// own. Default none.
    pub schema: Option<PathBuf>,
    /// Whether the reader switches the probes of this program; it must know the
    /// [adaptive protocol](crate::adaptive). Default no.
    pub adaptive: bool,
}

impl KiekerTcpWriterConfig {
    /// Returns the defaults for this host and port.
    pub fn new(host: impl Into<Box<str>>, port: u16) -> Self {
        Self {
            host: host.into(),
            port,
            connect_timeout: Duration::from_secs(10),
            window: WindowLimits::new(non_zero!(64)),
            schema: None,
            adaptive: false,
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
        let connect_timeout = uri.take_duration("connect_timeout")?;
        set(&mut config.connect_timeout, connect_timeout);
        config.window.take(&mut uri)?;
        config.schema = uri.take_path("schema");
        set(&mut config.adaptive, uri.take_bool("adaptive")?);
        uri.finish()?;
        Ok(config)
    }
}

/// Shows the endpoint as a URI without settings.
impl fmt::Display for KiekerTcpWriterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, port) = (self.host.clone(), Some(self.port));
        write!(f, "{SCHEME}://{}", Host { name, port })
    }
}

#[cfg(test)]
mod tests;
