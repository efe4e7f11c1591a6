//! Accepts connections, and reads their requests.

use std::convert::Infallible;
use std::io::{self, ErrorKind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use baler_common::transport::Failure;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderName};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::sync::watch;
use tokio::task::{self, JoinSet};
use tokio::time;
use tokio_rustls::TlsAcceptor;

use super::answer::{Body, Style, refused, taken};
use super::socket::Socket;
use super::state::ReaderState;
use crate::client::Stream;
use crate::compression::Compression;
use crate::decode::{Json, Protobuf};
use crate::error::BadRequest;
use crate::limits::{MAX_BODY_BYTES, Share};
use crate::protocol::{PREFIX_BYTES, Signal, unframe};
use crate::sink::Rejected;

/// The pause after a connection could not be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the headers of a request may take, and a handshake of TLS.
const HEADER_TIME: Duration = Duration::from_secs(30);

/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(60);

/// How often a silent connection of HTTP/2 is asked whether it is alive.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// The memory of a connection for bytes that nobody has read: headers, and the windows of HTTP/2.
const CONNECTION_BYTES: usize = 64 << 10;
const STREAM_WINDOW_BYTES: u32 = 64 << 10;
const CONNECTION_WINDOW_BYTES: u32 = 256 << 10;

/// The most requests of a connection of HTTP/2 at a time.
const MAX_STREAMS: u32 = 256;

/// Accepts and serves connections until the reader stops, and then until all are answered or the
/// deadline has come.
pub(super) async fn listen(
    socket: Socket,
    tls: Option<TlsAcceptor>,
    max_connections: usize,
    state: Arc<ReaderState>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            // A change and the end of the channel both mean that the reader stops.
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => continue,
            accepted = socket.accept() => accepted,
        };
        match accepted {
            Ok(_) if connections.len() >= max_connections => {
                state.counts.add("connections_turned_away", 1);
            }
            Ok(stream) => {
                let serving = serve(stream, tls.clone(), Arc::clone(&state), stop.clone());
                connections.spawn(serving);
            }
            Err(error) => {
                state.push_failure(Failure::of_io("accept at", &error));
                time::sleep(PAUSE).await;
            }
        }
    }
    drop(socket);
    let by = stop.borrow().unwrap_or_else(Instant::now);
    let all = async { while connections.join_next().await.is_some() {} };
    time::timeout_at(by.into(), all).await.ok();
}

/// Serves one connection until it ends. If the reader stops, it ends after its last answer.
async fn serve(
    stream: Box<dyn Stream>,
    tls: Option<TlsAcceptor>,
    state: Arc<ReaderState>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let secured = tokio::select! {
        secured = secure(stream, tls) => secured,
        _ = stop.changed() => return,
    };
    let stream = match secured {
        Ok(stream) => stream,
        // Only rustls returns an error of this kind here.
        Err(error) if error.kind() == ErrorKind::InvalidData => {
            return state.counts.add("connections_without_tls", 1);
        }
        // The peer sent nothing more, perhaps to check whether the port is open.
        Err(_) => return,
    };
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .max_buf_size(CONNECTION_BYTES);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(KEEPALIVE)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(MAX_STREAMS);
    let service = service_fn(|request| {
        let state = Arc::clone(&state);
        async move { answer(request, &state).await }
    });
    let mut connection = pin!(builder.serve_connection(TokioIo::new(stream), service));
    // Senders that break a connection send again; there is nothing to report.
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stop.changed() => {}
    }
    connection.as_mut().graceful_shutdown();
    connection.await.ok();
}

/// Sets up TLS with the sender, if the reader has it.
async fn secure(stream: Box<dyn Stream>, tls: Option<TlsAcceptor>) -> io::Result<Box<dyn Stream>> {
    match tls {
        None => Ok(stream),
        Some(tls) => Ok(Box::new(
            time::timeout(HEADER_TIME, tls.accept(stream)).await??,
        )),
    }
}

async fn answer(
    request: Request<Incoming>,
    state: &Arc<ReaderState>,
) -> Result<Response<Body>, Infallible> {
    let style = Style::of(request.headers());
    let path = request.uri().path();
    let signal = Signal::ALL.into_iter().find(|signal| match style {
        Some(Style::Grpc) => signal.grpc_path() == path,
        _ => signal.http_path() == path,
    });
    let answered = match (style, signal) {
        (_, None) => Err(BadRequest::Path),
        _ if request.method() != Method::POST => Err(BadRequest::Method),
        (None, _) => Err(BadRequest::ContentType),
        (Some(style), Some(signal)) => {
            let rejected = take(request, style, signal, state).await;
            rejected.map(|it| taken(style, signal, &it))
        }
    };
    Ok(answered.unwrap_or_else(|why| {
        state.counts.add(why.name(), 1);
        refused(style.unwrap_or(Style::Protobuf), why)
    }))
}

/// Takes a request. Returns after its chunks are settled.
async fn take(
    request: Request<Incoming>,
    style: Style,
    signal: Signal,
    state: &Arc<ReaderState>,
) -> Result<Rejected, BadRequest> {
    if state.is_closing.load(Ordering::Acquire) {
        return Err(BadRequest::Closing);
    }
    let Ok(_place) = state.requests.try_acquire() else {
        return Err(BadRequest::Overloaded);
    };
    let encoding = match style {
        Style::Grpc => HeaderName::from_static("grpc-encoding"),
        Style::Json | Style::Protobuf => CONTENT_ENCODING,
    };
    let encoding = request.headers().get(encoding);
    let encoding = encoding.map_or(Ok(""), |it| {
        it.to_str().map_err(|_| BadRequest::Compression)
    });
    let mut compression = Compression::from_name(encoding?)?;
    let mut memory = state.budget.share();
    let body = read(request.into_body(), &mut memory);
    let mut body = time::timeout(BODY_TIME, body)
        .await
        .unwrap_or(Err(BadRequest::Slow))?;
    if style == Style::Grpc {
        let (message, is_compressed) = unframe(body).ok_or(BadRequest::Message)?;
        body = message;
        if !is_compressed {
            compression = Compression::None;
        }
    }
    // One request is decoded at a time, and the others go on.
    let turn = state.decoder.acquire().await;
    let decoding = Arc::clone(state);
    let taken = task::spawn_blocking(move || {
        let body = compression.decompress(body, MAX_BODY_BYTES, &mut memory)?;
        match style {
            Style::Json => decoding.take::<Json>(signal, &body, memory),
            Style::Grpc | Style::Protobuf => decoding.take::<Protobuf>(signal, &body, memory),
        }
    });
    // After a panic, nothing of the request was taken.
    let (rejected, settled) = taken.await.map_err(|_| BadRequest::Closing)??;
    drop(turn);
    if let Some(settled) = settled {
        settled.await.map_err(|_| BadRequest::Closing)?;
    }
    Ok(rejected)
}

/// Reads a body within the limits.
async fn read(mut body: Incoming, memory: &mut Share) -> Result<Bytes, BadRequest> {
    let max_bytes = MAX_BODY_BYTES + PREFIX_BYTES;
    let declared = usize::try_from(body.size_hint().lower());
    if declared.is_ok_and(|it| it > max_bytes) {
        return Err(BadRequest::Size);
    }
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        // A connection that broke gets no answer.
        let frame = frame.map_err(|_| BadRequest::Slow)?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if bytes.len() + data.len() > max_bytes {
            return Err(BadRequest::Size);
        }
        if !memory.grow(data.len()) {
            return Err(BadRequest::Overloaded);
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}
