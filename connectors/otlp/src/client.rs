//! Connections to a receiver, its requests and its answers.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baler_common::transport::Failure;
use baler_common::transport::tls::{self, TlsFiles};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderMap, RETRY_AFTER, TE, USER_AGENT};
use hyper::http::request::Builder;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use prost::Message as _;
use rustls::DEFAULT_VERSIONS;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time;
use tokio_rustls::TlsConnector;

use crate::compression::Compression;
use crate::config::{OtlpWriterConfig, Place, Target};
use crate::error::Refusal;
use crate::headers;
use crate::limits::MAX_ANSWER_BYTES;
use crate::protocol::{
    ALPN_HTTP1, ALPN_HTTP2, ExportResponse, PREFIX_BYTES, PartialSuccess, Signal, Status, frame,
};

/// How often a silent connection of HTTP/2 is asked whether it is alive.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// The most bytes of a receiver's text in a message.
const MAX_TEXT_BYTES: usize = 300;

/// The answer to a request.
#[derive(Debug)]
pub(crate) enum Answer {
    /// The receiver has the records, but for the rejected ones.
    Taken(PartialSuccess),
    /// The receiver has none of the records.
    Refused {
        refusal: Refusal,
        message: String,
        retry_after: Option<Duration>,
    },
}

/// A connection by TCP, by a Unix socket or by TLS.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// Connections to one receiver.
#[derive(Debug)]
pub(crate) struct Client {
    place: Place,
    tls: Option<TlsFiles>,
    prefix: Box<str>,
    /// The headers of the settings; boxed, because they are large and mostly none.
    headers: Box<HeaderMap>,
    compression: Compression,
    timeout: Duration,
    connections: Connections,
}

#[derive(Debug)]
enum Connections {
    /// HTTP/2 has one connection for all requests.
    Grpc(http2::SendRequest<Full<Bytes>>),
    /// The connections of HTTP/1 that no request uses now.
    Http(Mutex<Vec<http1::SendRequest<Full<Bytes>>>>),
}

impl Client {
    /// Connects to the receiver.
    pub(crate) async fn connect(
        place: &Place,
        prefix: &str,
        config: &OtlpWriterConfig,
    ) -> Result<Self, Failure> {
        let mut headers = config.headers.clone();
        if let Some(path) = &config.headers_file {
            headers.extend(headers::read(path)?);
        }
        let tls = config.tls.as_ref();
        let connecting = async {
            Ok(match config.target {
                Target::Grpc(_) => Connections::Grpc(connect_grpc(place, tls).await?),
                _ => Connections::Http(Mutex::new(vec![connect_http(place, tls).await?])),
            })
        };
        Ok(Self {
            place: place.clone(),
            tls: config.tls.clone(),
            prefix: prefix.into(),
            headers: headers.into(),
            compression: config.compression,
            timeout: config.timeout,
            connections: in_time("connect to", config.timeout, connecting).await?,
        })
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    ///
    /// It is unknown whether the receiver has the request.
    pub(crate) async fn send(&self, signal: Signal, body: Vec<u8>) -> Result<Answer, Failure> {
        let body = self.compression.compress(body);
        let body = body.map_err(|error| Failure::of_io("compress for", &error))?;
        let sending = async {
            match &self.connections {
                Connections::Grpc(connection) => {
                    self.send_grpc(connection.clone(), signal, &body).await
                }
                Connections::Http(idle) => self.send_http(idle, signal, body).await,
            }
        };
        in_time("write to", self.timeout, sending).await
    }

    /// Begins a request.
    fn request(&self, uri: String) -> Builder {
        let agent = concat!("baler/", env!("CARGO_PKG_VERSION"));
        let mut request = Request::post(uri).header(USER_AGENT, agent);
        // A wrong URI has no headers, and its error comes with the body.
        if let Some(headers) = request.headers_mut() {
            headers.extend((*self.headers).clone());
        }
        request
    }

    /// Returns the host in requests. A Unix socket has none; this is the one of gRPC's own clients.
    fn host(&self) -> String {
        match &self.place {
            Place::Tcp(host) => host.to_string(),
            Place::Unix(_) => "localhost".to_owned(),
        }
    }

    async fn send_grpc(
        &self,
        mut connection: http2::SendRequest<Full<Bytes>>,
        signal: Signal,
        body: &[u8],
    ) -> Result<Answer, Failure> {
        let is_compressed = self.compression != Compression::None;
        let body = frame(body, is_compressed);
        let body = body.ok_or_else(|| Failure::last("write to", "a request is above 4 GiB"))?;
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        let uri = format!("{scheme}://{}{}", self.host(), signal.grpc_path());
        let request = self
            .request(uri)
            .header(CONTENT_TYPE, "application/grpc")
            .header(TE, "trailers")
            .header("grpc-encoding", self.compression.name())
            .body(Full::new(body));
        let request = request.map_err(|error| Failure::last("write to", error.to_string()))?;
        connection.ready().await.map_err(broken)?;
        let response = connection.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let (headers, body) = read(response).await?;
        if status != StatusCode::OK {
            return Ok(refused_by_http(status, &headers, &body.to_bytes()));
        }
        let trailers = body.trailers().filter(|it| it.contains_key("grpc-status"));
        let trailers = trailers.unwrap_or(&headers).clone();
        let code = text(&trailers, "grpc-status").and_then(|it| it.parse().ok());
        match code {
            Some(0) => {
                let body = body.to_bytes();
                Ok(taken(body.get(PREFIX_BYTES..).unwrap_or_default()))
            }
            Some(code) => {
                let details = trailers.get("grpc-status-details-bin");
                let details = details.and_then(|it| Status::from_header(it.as_bytes()));
                let retry_after = details.and_then(|it| it.retry_after());
                let message = text(&trailers, "grpc-message").unwrap_or_default();
                Ok(Answer::Refused {
                    refusal: Refusal::of_grpc(code, retry_after.is_some()),
                    message: format!("gRPC status {code}: {}", cut(message)),
                    retry_after,
                })
            }
            None => Err(Failure::retry("read from", "an answer without grpc-status")),
        }
    }

    async fn send_http(
        &self,
        idle: &Mutex<Vec<http1::SendRequest<Full<Bytes>>>>,
        signal: Signal,
        body: Vec<u8>,
    ) -> Result<Answer, Failure> {
        let mut request = self
            .request(format!("{}{}", self.prefix, signal.http_path()))
            .header(HOST, self.host())
            .header(CONTENT_TYPE, "application/x-protobuf");
        if self.compression != Compression::None {
            request = request.header(CONTENT_ENCODING, self.compression.name());
        }
        let request = request.body(Full::new(body.into()));
        let request = request.map_err(|error| Failure::last("write to", error.to_string()))?;
        let connections = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let mut idle = connections().pop();
        if let Some(connection) = &mut idle {
            // The receiver may have closed it.
            if connection.ready().await.is_err() {
                idle = None;
            }
        }
        let mut connection = match idle {
            Some(connection) => connection,
            None => connect_http(&self.place, self.tls.as_ref()).await?,
        };
        let response = connection.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let (headers, body) = read(response).await?;
        connections().push(connection);
        let body = body.to_bytes();
        if !status.is_success() {
            return Ok(refused_by_http(status, &headers, &body));
        }
        let is_protobuf = text(&headers, "content-type") == Some("application/x-protobuf");
        Ok(taken(if is_protobuf { &body } else { &[] }))
    }
}

/// Connects, and sets up TLS for this protocol if there are files for it.
async fn connect(
    place: &Place,
    tls: Option<&TlsFiles>,
    protocol: &[u8],
) -> Result<TokioIo<Box<dyn Stream>>, Failure> {
    let failed = |error: io::Error| Failure::of_io("connect to", &error);
    let host = match place {
        Place::Tcp(host) => host,
        Place::Unix(path) => {
            let stream = UnixStream::connect(path).await.map_err(failed)?;
            return Ok(TokioIo::new(Box::new(stream)));
        }
    };
    let port = host.port.unwrap_or(0);
    let stream = TcpStream::connect((&*host.name, port)).await;
    let stream = stream.map_err(failed)?;
    let set = stream.set_nodelay(true);
    set.map_err(|error| Failure::of_io("set up", &error))?;
    let Some(files) = tls else {
        return Ok(TokioIo::new(Box::new(stream)));
    };
    let authorities = files.required_authorities(fs::read)?;
    let (mut config, name) = files.client(fs::read, DEFAULT_VERSIONS, authorities, &host.name)?;
    Arc::make_mut(&mut config).alpn_protocols = vec![protocol.to_vec()];
    let secured = TlsConnector::from(config).connect(name, stream).await;
    let secured = secured.map_err(|error| match error.kind() {
        // Only rustls returns an error of this kind here.
        ErrorKind::InvalidData => tls::failure(error),
        _ => failed(error),
    })?;
    Ok(TokioIo::new(Box::new(secured)))
}

async fn connect_grpc(
    place: &Place,
    tls: Option<&TlsFiles>,
) -> Result<http2::SendRequest<Full<Bytes>>, Failure> {
    let stream = connect(place, tls, ALPN_HTTP2).await?;
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .handshake(stream)
        .await
        .map_err(broken)?;
    // Its error is that of its requests, too.
    tokio::spawn(async move { connection.await.ok() });
    Ok(sender)
}

async fn connect_http(
    place: &Place,
    tls: Option<&TlsFiles>,
) -> Result<http1::SendRequest<Full<Bytes>>, Failure> {
    let stream = connect(place, tls, ALPN_HTTP1).await?;
    let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
    // Its error is that of its request, too.
    tokio::spawn(async move { connection.await.ok() });
    Ok(sender)
}

/// Returns the result, or a failure if it does not come in time.
async fn in_time<T>(
    operation: &'static str,
    time: Duration,
    work: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    let late = |_| Err(Failure::retry(operation, "no answer in time"));
    time::timeout(time, work).await.unwrap_or_else(late)
}

#[expect(clippy::needless_pass_by_value, reason = "as map_err passes it")]
fn broken(error: hyper::Error) -> Failure {
    let cause = std::error::Error::source(&error);
    let cause = cause.map(|it| format!(": {it}")).unwrap_or_default();
    Failure::retry("write to", format!("{error}{cause}"))
}

/// Reads an answer, up to its limit.
async fn read(response: Response<Incoming>) -> Result<(HeaderMap, Collected<Bytes>), Failure> {
    let (parts, body) = response.into_parts();
    let body = Limited::new(body, MAX_ANSWER_BYTES).collect().await;
    let body = body.map_err(|error| Failure::retry("read from", error.to_string()))?;
    Ok((parts.headers, body))
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// The answer of a receiver that took a request. An unreadable one says nothing of rejected records.
fn taken(body: &[u8]) -> Answer {
    let response = ExportResponse::decode(body).ok();
    let success = response.and_then(|it| it.partial_success);
    Answer::Taken(success.unwrap_or_default())
}

fn refused_by_http(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Answer {
    let seconds = text(headers, RETRY_AFTER.as_str()).and_then(|it| it.parse().ok());
    let message = match text(headers, "content-type") {
        Some("application/x-protobuf") => Status::decode(body).map(|it| it.message).ok(),
        _ => str::from_utf8(body).map(str::to_owned).ok(),
    };
    let message = message.unwrap_or_default();
    Answer::Refused {
        refusal: Refusal::of_http(status.as_u16()),
        message: format!("HTTP status {}: {}", status.as_u16(), cut(&message)),
        retry_after: seconds.map(Duration::from_secs),
    }
}

/// Returns the beginning of a receiver's text.
fn cut(text: &str) -> String {
    let clean = text.chars().filter(|it| !it.is_control());
    clean.take(MAX_TEXT_BYTES).collect()
}
