//! The settings of both ends.

use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use baler_common::non_zero;
use baler_common::transport::WindowLimits;
use baler_common::transport::tls::TlsFiles;
use baler_common::transport::uri::{Host, Uri, UriError, set};
use hyper::HeaderMap;

use crate::compression::Compression;
use crate::headers;
use crate::{SCHEME_FILE, SCHEME_GRPC, SCHEME_HTTP, SCHEME_HTTPS, SCHEME_TLS, SCHEME_UNIX};

/// The settings of a reader.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtlpReaderConfig {
    scheme: Box<str>,
    pub(crate) place: Place,
    pub(crate) tls: Option<TlsFiles>,
    /// The memory of requests that are not answered, in bytes. Default 256 MiB: a body, compressed and
    /// decompressed, has up to 64 MiB each. Alone, every request has enough.
    pub memory_bytes: NonZeroUsize,
    /// The most requests that are not answered. Default 1,024.
    pub max_requests: NonZeroUsize,
    /// The most connections at a time; more are closed at once. Default 1,024.
    pub max_connections: NonZeroUsize,
    /// A chunk ends with the record that reaches this number of bytes, so that other media take the
    /// chunk. Default 512 KiB, half of what Kafka takes.
    pub max_chunk_bytes: NonZeroUsize,
}

impl OtlpReaderConfig {
    /// Returns the defaults for this host and port. At port 0 the operating system chooses the port.
    pub fn new(host: impl Into<Box<str>>, port: u16) -> Self {
        Self::at(SCHEME_GRPC, Place::tcp(host, port))
    }

    fn at(scheme: &str, place: Place) -> Self {
        Self {
            scheme: scheme.into(),
            place,
            tls: None,
            memory_bytes: non_zero!(256 << 20),
            max_requests: non_zero!(1_024),
            max_connections: non_zero!(1_024),
            max_chunk_bytes: non_zero!(512 << 10),
        }
    }

    /// Reads the settings from `otlp://host:port?setting=value&…`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI has no host or port, has a path beside them, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        if uri.scheme() == SCHEME_FILE {
            return Err(UriError::refused("otlp+file: can only be written"));
        }
        let mut config = Self::at(uri.scheme(), Place::of(&uri)?);
        config.tls = take_tls(&mut uri)?;
        set(&mut config.memory_bytes, uri.take_bytes_in("memory")?);
        set(&mut config.max_requests, uri.take_number("max_requests")?);
        let max_connections = uri.take_number("max_connections")?;
        set(&mut config.max_connections, max_connections);
        let max_chunk_bytes = uri.take_bytes_in("max_chunk_bytes")?;
        set(&mut config.max_chunk_bytes, max_chunk_bytes);
        uri.finish()?;
        Ok(config)
    }

    /// Whether only senders with a certificate of an authority are admitted.
    pub(crate) fn demands_certificates(&self) -> bool {
        let files = self.tls.as_ref();
        files.is_some_and(TlsFiles::demands_certificates)
    }
}

/// Shows the endpoint as a URI without settings.
impl fmt::Display for OtlpReaderConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.place.write_uri(&self.scheme, f)
    }
}

/// The settings of a writer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtlpWriterConfig {
    pub(crate) target: Target,
    pub(crate) tls: Option<TlsFiles>,
    pub(crate) headers: HeaderMap,
    /// A file with further headers of requests, `name=value` in each line. It is read at every opening
    /// of the writer. Default none.
    pub headers_file: Option<PathBuf>,
    /// The compression of requests. Default gzip, which every receiver takes.
    pub compression: Compression,
    /// The time limit of connecting, and of the answer to a request. Default 10 s, as in the
    /// specification of OTLP's exporters.
    pub timeout: Duration,
    /// The largest request, uncompressed, in bytes; larger ones are split. Default 4 MiB, which is the
    /// limit of gRPC's receivers unless they were set up otherwise.
    pub max_request_bytes: NonZeroUsize,
    /// The most requests at a time. Default 8.
    pub max_requests: NonZeroUsize,
    /// How long a chunk with calls of probes waits for their callers in later chunks. Default 1 s.
    pub hold: Duration,
    /// What becomes of records without a form in OTLP.
    pub others: Others,
    /// The `service.name` of calls and events, whose records do not have it. Default their host.
    pub service: Option<Box<str>>,
    /// The limits of chunks that are not confirmed. Default 64 chunks and 64 MiB.
    pub window: WindowLimits,
}

/// The receiver of a writer's requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    File(PathBuf),
    Grpc(Place),
    /// A place, and what stands before the path of a request.
    Http(Place, Box<str>),
}

/// The place where a receiver listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Tcp(Host),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

impl Place {
    fn tcp(host: impl Into<Box<str>>, port: u16) -> Self {
        let (name, port) = (host.into(), Some(port));
        Self::Tcp(Host { name, port })
    }

    /// Returns the place of `otlp+unix:PATH`, or of `otlp://host:port`.
    fn of(uri: &Uri) -> Result<Self, UriError> {
        match uri.scheme() {
            SCHEME_UNIX => Ok(Self::Unix(path_of(uri, "the path of the socket")?)),
            _ => Ok(Self::Tcp(uri.address()?)),
        }
    }

    fn write_uri(&self, scheme: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host) => write!(f, "{scheme}://{host}"),
            Self::Unix(path) => write!(f, "{SCHEME_UNIX}:{}", path.display()),
        }
    }
}

/// Returns the path of a URI without a host.
fn path_of(uri: &Uri, what: &str) -> Result<PathBuf, UriError> {
    uri.no_host()?;
    match uri.path() {
        "" => Err(uri.missing_in_path(what)),
        path => Ok(path.into()),
    }
}

/// Takes the files of TLS.
fn take_tls(uri: &mut Uri) -> Result<Option<TlsFiles>, UriError> {
    let scheme = match uri.scheme() {
        SCHEME_HTTP | SCHEME_HTTPS => SCHEME_HTTPS,
        _ => SCHEME_TLS,
    };
    TlsFiles::take(uri, scheme)
}

/// What becomes of records without a form in OTLP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Others {
    /// A chunk with such a record is refused, and nothing of it is sent.
    Refuse,
    /// They are counted, and the other records of the chunk are sent.
    Skip,
}

impl OtlpWriterConfig {
    /// Returns the defaults for a receiver of OTLP/gRPC.
    pub fn grpc(host: impl Into<Box<str>>, port: u16) -> Self {
        Self::to(Target::Grpc(Place::tcp(host, port)))
    }

    /// Returns the defaults for a receiver of OTLP/HTTP.
    pub fn http(host: impl Into<Box<str>>, port: u16) -> Self {
        Self::to(Target::Http(Place::tcp(host, port), "".into()))
    }

    /// Returns the defaults for a file of JSON lines.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::to(Target::File(path.into()))
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            tls: None,
            headers: HeaderMap::new(),
            headers_file: None,
            compression: Compression::Gzip,
            timeout: Duration::from_secs(10),
            max_request_bytes: non_zero!(4 << 20),
            max_requests: non_zero!(8),
            hold: Duration::from_secs(1),
            others: Others::Refuse,
            service: None,
            window: WindowLimits::new(non_zero!(64)),
        }
    }

    /// Reads the settings from `otlp://host:port?setting=value&…`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI has no host or port, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        let target = match uri.scheme() {
            SCHEME_FILE => Target::File(path_of(&uri, "the file")?),
            SCHEME_HTTP | SCHEME_HTTPS => {
                let host = uri.host()?.clone();
                if host.port.is_none() {
                    return Err(uri.missing_after_hosts("the port"));
                }
                let place = Place::Tcp(host);
                Target::Http(place, uri.path_as_typed().trim_end_matches('/').into())
            }
            _ => Target::Grpc(Place::of(&uri)?),
        };
        let mut config = Self::to(target);
        let others = uri.take_choice(
            "others",
            &[("refuse", Others::Refuse), ("skip", Others::Skip)],
        );
        set(&mut config.others, others?);
        set(&mut config.hold, uri.take_duration("hold")?);
        config.service = uri.take_text("service").or(config.service);
        config.window.take(&mut uri)?;
        let max_request = uri.take_bytes_in("max_request")?;
        set(&mut config.max_request_bytes, max_request);
        if !matches!(config.target, Target::File(_)) {
            config.tls = take_tls(&mut uri)?;
            let parse = |list: &str| headers::parse(list.split(','));
            let headers = uri.take_with("headers", headers::EXPECTED, parse)?;
            set(&mut config.headers, headers);
            config.headers_file = uri.take_path("headers_file");
            let names = [Compression::Gzip, Compression::None, Compression::Zstd];
            let names = names.map(|it| (it.setting(), it));
            set(
                &mut config.compression,
                uri.take_choice("compression", &names)?,
            );
            set(&mut config.timeout, uri.take_duration("timeout")?);
            set(&mut config.max_requests, uri.take_number("max_requests")?);
        }
        uri.finish()?;
        Ok(config)
    }
}

/// Shows the endpoint as a URI without settings.
impl fmt::Display for OtlpWriterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_secure = self.tls.is_some();
        match &self.target {
            Target::File(path) => write!(f, "{SCHEME_FILE}:{}", path.display()),
            Target::Grpc(place) => {
                place.write_uri(if is_secure { SCHEME_TLS } else { SCHEME_GRPC }, f)
            }
            Target::Http(place, path) => {
                place.write_uri(if is_secure { SCHEME_HTTPS } else { SCHEME_HTTP }, f)?;
                f.write_str(path)
            }
        }
    }
}

#[cfg(test)]
mod tests;
