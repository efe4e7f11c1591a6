//! The settings of both ends: address, limits, heartbeat, token and TLS.

#[cfg(not(feature = "tls"))]
use std::convert::Infallible as TlsFiles;
use std::fmt;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

use baler_common::non_zero;
#[cfg(feature = "tls")]
use baler_common::transport::tls::TlsFiles;
use baler_common::transport::uri::{Host, Uri, UriError, set};
use baler_common::transport::{Failure, WindowLimits};

use crate::headers::{ConnectionLimits, Hello, Role};
use crate::security::Token;
use crate::versions::VERSIONS;
use crate::{SCHEME, SCHEME_TLS};

/// The settings of both ends.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpConfig {
    pub(crate) host: Host,
    /// The largest chunk, in bytes. Default 16 MiB. The smaller limit of the two sides applies.
    pub max_chunk_bytes: NonZeroU32,
    /// The limits of a sender's unacknowledged chunks. The smaller limits of the two sides apply.
    /// One chunk is always accepted.
    ///
    /// Default 1,024 chunks and 64 MiB. Acknowledgements follow the oldest chunk, and a chunk in
    /// quarantine takes a disk's time. Other chunks must be able to pass it. With 64 chunks, poison
    /// in one chunk of a thousand costs a quarter of the throughput (benches/results).
    pub window: WindowLimits,
    /// The interval of this side's heartbeats when it has nothing to send, between 10 ms and ten
    /// minutes. Default 5 s. A peer that missed three of its own heartbeats counts as gone.
    pub heartbeat: Duration,
    /// The time limit of connecting and of the hellos. Default 10 s.
    pub connect_timeout: Duration,
    /// The memory of a reader for all its senders, in bytes, without settled chunks. Default 64
    /// MiB. At the limit the reader stops reading. A sender may hold as many bytes as it leaves
    /// free; one chunk of it is always accepted. Chunks that have arrived in part may take a
    /// quarter more. One of them may exceed that by the rest of its length.
    pub memory_bytes: NonZeroUsize,
    /// The most senders that a reader serves at a time; more are turned away. Default 4,096.
    pub max_connections: NonZeroUsize,
    /// The file with the token that a sender proves to have and a receiver demands. It is read at
    /// every connection. Default none.
    pub token_file: Option<PathBuf>,
    /// The token itself, used if there is no `token_file`.
    token: Option<TokenText>,
    /// Set if the scheme is that with TLS. It is never set in a build without TLS.
    pub(crate) tls: Option<TlsFiles>,
}

/// A token that `Debug` does not show.
#[derive(Clone, PartialEq, Eq)]
struct TokenText(Box<str>);

impl fmt::Debug for TokenText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the token")
    }
}

/// The number of heartbeats that a peer may miss before it counts as gone.
const MISSED_HEARTBEATS: u32 = 3;

impl TcpConfig {
    /// Returns the defaults for this host and port. At port 0 the operating system chooses the port
    /// of a reader.
    pub fn new(host: impl Into<Box<str>>, port: u16) -> Self {
        Self::at(Host {
            name: host.into(),
            port: Some(port),
        })
    }

    /// Returns the defaults for this host.
    fn at(host: Host) -> Self {
        Self {
            host,
            max_chunk_bytes: non_zero!(16 << 20),
            window: WindowLimits::new(non_zero!(1_024)),
            heartbeat: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(10),
            memory_bytes: non_zero!(64 << 20),
            max_connections: non_zero!(4_096),
            token_file: None,
            token: None,
            tls: None,
        }
    }

    /// Reads the settings from `tcp://host:port?setting=value&…`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI has no host or port, has a path, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        let mut config = Self::at(uri.address()?);
        set(&mut config.max_chunk_bytes, uri.take_bytes_in("max_chunk")?);
        config.window.take(&mut uri)?;
        set(&mut config.heartbeat, uri.take_duration("heartbeat")?);
        let connect_timeout = uri.take_duration("connect_timeout")?;
        set(&mut config.connect_timeout, connect_timeout);
        set(&mut config.memory_bytes, uri.take_bytes_in("memory")?);
        let max_connections = uri.take_number("max_connections")?;
        set(&mut config.max_connections, max_connections);
        config.token_file = uri.take_path("token_file");
        #[cfg(feature = "tls")]
        {
            config.tls = TlsFiles::take(&mut uri, SCHEME_TLS)?;
        }
        if cfg!(not(feature = "tls")) && uri.scheme() == SCHEME_TLS {
            let why = "tcp+tls: needs the feature tls of baler-connector-tcp";
            return Err(UriError::refused(why));
        }
        uri.finish()?;
        Ok(config)
    }

    /// Sets the token itself, which is used if there is no `token_file`.
    #[must_use]
    pub fn or_token(mut self, token: impl Into<Box<str>>) -> Self {
        self.token = Some(TokenText(token.into()));
        self
    }

    /// Whether a reader accepts peers without proof and without encryption.
    pub fn is_open_to_all(&self) -> bool {
        !self.has_token() && self.tls.is_none()
    }

    /// Whether a sender proves to have a token and a receiver demands one.
    pub(crate) fn has_token(&self) -> bool {
        self.token_file.is_some() || self.token.is_some()
    }

    /// Reads the token, if there is one.
    pub(crate) fn read_token(&self) -> Result<Option<Token>, Failure> {
        match (&self.token_file, &self.token) {
            (Some(path), _) => Token::read(path).map(Some),
            (None, Some(TokenText(text))) => Token::new(text, "the token").map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Returns the interval of heartbeats, within its bounds.
    pub(crate) fn heartbeat(&self) -> Duration {
        let most = Duration::from_millis(Hello::MAX_HEARTBEAT_MS.into());
        self.heartbeat.clamp(Duration::from_millis(10), most)
    }

    /// Returns the longest silence of a peer within a frame, whatever heartbeat it announced.
    pub(crate) fn patience(&self) -> Duration {
        self.heartbeat() * MISSED_HEARTBEATS
    }

    /// Returns the scheme of both ends.
    pub(crate) fn scheme(&self) -> &'static str {
        match self.tls {
            Some(_) => SCHEME_TLS,
            None => SCHEME,
        }
    }

    /// Returns the port; at 0 the operating system chooses one.
    pub(crate) fn port(&self) -> u16 {
        self.host.port.unwrap_or(0)
    }

    /// Returns the hello of this side.
    pub(crate) fn hello(&self, role: Role) -> Hello {
        Hello {
            versions: VERSIONS,
            role,
            features: if self.has_token() { Hello::TOKEN } else { 0 },
            limits: ConnectionLimits {
                max_chunk_bytes: self.max_chunk_bytes.get(),
                window_chunks: self.window.chunks.get(),
                window_bytes: u64::from(self.window.bytes.get()),
            },
            heartbeat_ms: u32::try_from(self.heartbeat().as_millis())
                .unwrap_or(Hello::MAX_HEARTBEAT_MS),
        }
    }
}

/// Returns the longest silence of a peer with this hello.
pub(crate) fn silence(peer: &Hello) -> Duration {
    Duration::from_millis(u64::from(peer.heartbeat_ms)) * MISSED_HEARTBEATS
}

/// Shows the endpoint as a URI without settings.
impl fmt::Display for TcpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme(), self.host)
    }
}

#[cfg(test)]
mod tests;
