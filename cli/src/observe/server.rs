//! The HTTP server of the figures: a thread of its own, bounded in connections, bytes and time.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use baler_connector_kieker::pattern::{Action, MAX_PATTERN_BYTES};
use bytes::Bytes;
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::header::{ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use super::exposition;
use super::observable::{Check, answer};
use super::observed::Observed;
use crate::http_client;

/// The maximum number of connections served at once. A further one closes another one, an idle one
/// first.
const MAX_CONNECTIONS: usize = 32;

/// The maximum number of connections that the operating system holds until they are accepted. If it
/// were full, a client would try again only after a second.
const BACKLOG: u32 = 1_024;

/// The maximum number of taps at once. It is below the limit of connections, so that scrapes always
/// get through.
const MAX_TAPS: usize = 8;

/// The largest head of a request. hyper accepts no smaller limit.
const MAX_HEAD_BYTES: usize = 8 * 1_024;

/// The maximum number of headers of a request.
const MAX_HEADERS: usize = 64;

/// How long a request's head may take.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);

/// How long a connection may take from its beginning to its end, unless it is a tap.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(15);

/// How long the client of a tap may read nothing before its connection ends.
pub(super) const TAP_PATIENCE: Duration = Duration::from_secs(30);

/// How long connections may take to end when the server does.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// The settings of the server, and the state that it shows.
#[derive(Clone)]
pub(super) struct Service {
    pub(super) observed: Arc<Observed>,
    /// How long the oldest chunk may be unconfirmed while the process is ready.
    pub(super) ready_age: Duration,
    /// Whether the address is a loopback address. Requests must then name it as one.
    pub(super) is_local: bool,
    pub(super) taps: Taps,
    pub(super) tap_patience: Duration,
}

/// The clients that may use `/tap`, which shows records and not only figures.
#[derive(Clone)]
pub(super) enum Taps {
    Closed,
    Open,
    /// Clients that send this value in the header `Authorization`.
    Token(Arc<str>),
}

/// A running server; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Server {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts to serve at this address.
    ///
    /// # Errors
    ///
    /// The address cannot be bound, or there is no thread.
    pub(super) fn start(address: SocketAddr, service: Service) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .build()?;
        let listener = {
            let _entered = runtime.enter();
            listen(address)?
        };
        let address = listener.local_addr()?;
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            runtime.block_on(async {
                let mut connections = Connections::default();
                let (close, closing) = watch::channel(());
                tokio::select! {
                    () = accept(listener, service, &mut connections, closing) => {}
                    // An error means that the server was dropped.
                    _ = stopped => {}
                }
                // Taps see the end of the records, and answers are finished.
                drop(close);
                let ended = async { while connections.tasks.join_next().await.is_some() {} };
                if tokio::time::timeout(CLOSE_TIMEOUT, ended).await.is_err() {
                    tracing::debug!("connections for metrics were cut off at the end");
                }
            });
            // The end does not wait for patterns that are being matched.
            runtime.shutdown_background();
        };
        let thread = thread::Builder::new()
            .name("baler-metrics".to_owned())
            .spawn(serve)?;
        Ok(Self {
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns the address of the server.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }?;
    // As the standard library does: a port can be used again at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The state of a connection. When there are too many, the smallest state is closed first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
enum Phase {
    /// Its request has not come.
    Idle,
    Answering,
    Tap,
}

/// The open connections, oldest first.
#[derive(Default)]
struct Connections {
    open: Vec<(Arc<AtomicU8>, AbortHandle)>,
    tasks: JoinSet<()>,
}

impl Connections {
    fn add(&mut self, stream: TcpStream, service: Service, closing: watch::Receiver<()>) {
        while self.tasks.try_join_next().is_some() {}
        self.open.retain(|(_, task)| !task.is_finished());
        if self.open.len() >= MAX_CONNECTIONS {
            let phases = self
                .open
                .iter()
                .map(|(phase, _)| phase.load(Ordering::Relaxed));
            // The first one of several with the same phase is the oldest.
            if let Some((first, _)) = phases.enumerate().min_by_key(|(_, phase)| *phase) {
                self.open.remove(first).1.abort();
            }
        }
        let phase = Arc::new(AtomicU8::new(Phase::Idle as u8));
        let served = serve(stream, service, closing, Arc::clone(&phase));
        self.open.push((phase, self.tasks.spawn(served)));
    }
}

/// Accepts connections for ever.
async fn accept(
    listener: TcpListener,
    service: Service,
    connections: &mut Connections,
    closing: watch::Receiver<()>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => connections.add(stream, service.clone(), closing.clone()),
            Err(error) => {
                // For example, no descriptors are left. An immediate retry would spin.
                tracing::warn!(%error, "cannot accept a connection for metrics");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        // A request that has come is read before a flood of further connections closes its own.
        tokio::task::yield_now().await;
    }
}

/// Serves one request of one connection.
async fn serve(
    stream: TcpStream,
    service: Service,
    closing: watch::Receiver<()>,
    phase: Arc<AtomicU8>,
) {
    let answering = Arc::clone(&phase);
    let answer = move |request: Request<Incoming>| {
        let (service, closing) = (service.clone(), closing.clone());
        let answering = Arc::clone(&answering);
        async move {
            let response = if request.uri().path().starts_with("/probes") {
                answering.store(Phase::Answering as u8, Ordering::Relaxed);
                service.probes(request).await
            } else {
                service.answer(&request, &closing)
            };
            let phase = match response.extensions().get::<Long>() {
                Some(Long) => Phase::Tap,
                None => Phase::Answering,
            };
            answering.store(phase as u8, Ordering::Relaxed);
            Ok::<_, Infallible>(response)
        }
    };
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .max_headers(MAX_HEADERS)
        // A scraper comes every few seconds, so a new connection costs it little. An idle
        // connection would occupy a place that another client may need.
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service_fn(answer));
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = tokio::time::sleep(CONNECTION_TIMEOUT) => {
            if phase.load(Ordering::Relaxed) != Phase::Tap as u8 {
                return;
            }
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection for metrics ended early");
    }
}

/// Marks a response without a time limit.
#[derive(Debug, Clone, Copy)]
struct Long;

impl Service {
    fn answer(&self, request: &Request<Incoming>, closing: &watch::Receiver<()>) -> Response<Body> {
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
            let headers = response.headers_mut();
            headers.insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        if let Some(refusal) = self.misdirected(request) {
            return refusal;
        }
        match request.uri().path() {
            "/metrics" => text(
                StatusCode::OK,
                exposition::CONTENT_TYPE,
                self.observed.metrics(),
            ),
            "/livez" => health(Vec::new()),
            "/readyz" => health(self.observed.checks(self.ready_age)),
            "/tap" => self.tap(request, closing.clone()),
            _ => plain(
                StatusCode::NOT_FOUND,
                "there are /metrics, /livez, /readyz and /tap\n",
            ),
        }
    }

    fn misdirected(&self, request: &Request<Incoming>) -> Option<Response<Body>> {
        // A web page can make its own name resolve to a loopback address (DNS rebinding). A browser
        // on this machine would then let it read the answers.
        (self.is_local && !names_loopback(request)).then(|| {
            plain(
                StatusCode::MISDIRECTED_REQUEST,
                "this is a loopback address: use localhost or 127.0.0.1 in the URL\n",
            )
        })
    }

    /// Lists the probes of connected programs, or switches them.
    async fn probes(self, mut request: Request<Incoming>) -> Response<Body> {
        if let Some(refusal) = self.misdirected(&request) {
            return refusal;
        }
        let Some(access) = &self.observed.probes else {
            return plain(
                StatusCode::NOT_FOUND,
                "this command switches no probes: start it with --probes-token FILE\n",
            );
        };
        if !has_token(&request, &access.authorization) {
            return plain(
                StatusCode::UNAUTHORIZED,
                "the token is missing or wrong: use --token-file FILE\n",
            );
        }
        let action = match (request.method(), request.uri().path()) {
            (&Method::GET, "/probes") => None,
            (&Method::POST, "/probes/activate") => Some(Action::Activate),
            (&Method::POST, "/probes/deactivate") => Some(Action::Deactivate),
            _ => {
                return plain(
                    StatusCode::NOT_FOUND,
                    "there are GET /probes, POST /probes/activate and POST /probes/deactivate\n",
                );
            }
        };
        let pattern = match pattern_of(request.body_mut()).await {
            Ok(pattern) => pattern,
            Err((status, message)) => return plain(status, message),
        };
        let probes = Arc::clone(&access.probes);
        // A flood of signatures takes seconds to match. Figures and health are served meanwhile.
        let answered = tokio::task::spawn_blocking(move || match action {
            None => Ok(probes.list().to_string()),
            Some(action) => {
                let switched = probes.switch(action, &pattern);
                switched.map(|change| change.to_string())
            }
        });
        match answered.await {
            Ok(Ok(answer)) => text(StatusCode::OK, "application/json", answer),
            Ok(Err(error)) => text(
                StatusCode::BAD_REQUEST,
                "text/plain; charset=utf-8",
                error + "\n",
            ),
            // A panic, which the hook has reported.
            Err(_) => plain(StatusCode::INTERNAL_SERVER_ERROR, "a thread panicked\n"),
        }
    }

    /// Streams the chunks that pass.
    fn tap(&self, request: &Request<Incoming>, mut closing: watch::Receiver<()>) -> Response<Body> {
        match &self.taps {
            Taps::Open => {}
            Taps::Closed => {
                return plain(
                    StatusCode::FORBIDDEN,
                    "records are shown on loopback addresses alone; --metrics-tap FILE allows it \
                     here, with a token\n",
                );
            }
            Taps::Token(token) => {
                if !has_token(request, token) {
                    return plain(
                        StatusCode::UNAUTHORIZED,
                        "the token is missing or wrong: tap with --token-file FILE\n",
                    );
                }
            }
        }
        if request.method() == Method::HEAD {
            return text(StatusCode::OK, TAP_TYPE, String::new());
        }
        let Some(mut tap) = self.observed.taps.tap(MAX_TAPS) else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "too many taps already\n");
        };
        let (sender, frames) = mpsc::channel(1);
        let patience = self.tap_patience;
        tokio::spawn(async move {
            loop {
                let frame = tokio::select! {
                    // Chunks that passed before the end are shown before it.
                    biased;
                    frame = tap.next() => frame,
                    () = sender.closed() => return,
                    _ = closing.changed() => return,
                };
                // Unread chunks wait in the ring, which is bounded, and not here.
                let Some(frame) = frame else { return };
                let sent = tokio::time::timeout(patience, sender.send(frame));
                if !matches!(sent.await, Ok(Ok(()))) {
                    return;
                }
            }
        });
        let mut response = Response::new(Body::Frames(frames));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(TAP_TYPE));
        response.extensions_mut().insert(Long);
        response
    }
}

/// Whether the header `Host` is a loopback address. No browser leaves this header out.
fn names_loopback(request: &Request<Incoming>) -> bool {
    let Some(host) = request.headers().get(HOST) else {
        return true;
    };
    let authority = host.to_str().ok().and_then(|host| host.parse().ok());
    authority.is_some_and(|authority: Authority| {
        let host = authority.host();
        let address = host.trim_start_matches('[').trim_end_matches(']');
        host.eq_ignore_ascii_case("localhost")
            || address.parse().is_ok_and(|it: IpAddr| it.is_loopback())
    })
}

/// Whether the header `Authorization` has this value. The time does not depend on where they
/// differ.
fn has_token(request: &Request<Incoming>, authorization: &str) -> bool {
    let given = request.headers().get(AUTHORIZATION);
    is_same(
        given.map_or(&b""[..], HeaderValue::as_bytes),
        authorization.as_bytes(),
    )
}

/// Compares secrets in a time that does not depend on where they differ.
fn is_same(given: &[u8], token: &[u8]) -> bool {
    let pairs = given.iter().zip(token);
    let differences = pairs.fold(0, |all, (a, b)| all | (a ^ b));
    given.len() == token.len() && differences == 0
}

/// Reads a body that is a pattern. Returns the answer if it is none.
async fn pattern_of(body: &mut Incoming) -> Result<String, (StatusCode, &'static str)> {
    let mut bytes = Vec::new();
    let mut is_too_long = false;
    while let Some(piece) = http_client::piece(body)
        .await
        .map_err(|_| (StatusCode::BAD_REQUEST, "the pattern is incomplete\n"))?
    {
        // A client that is still sending would not see an answer, so the rest is read, too.
        is_too_long |= bytes.len() + piece.len() > MAX_PATTERN_BYTES;
        if !is_too_long {
            bytes.extend_from_slice(&piece);
        }
    }
    if is_too_long {
        return Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            "the pattern is longer than 2,048 bytes\n",
        ));
    }
    String::from_utf8(bytes).map_err(|_| (StatusCode::BAD_REQUEST, "the pattern is not UTF-8\n"))
}

enum Body {
    /// Frames that come one by one.
    Frames(mpsc::Receiver<Bytes>),
    Text(Bytes),
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = match &mut *self {
            Self::Frames(frames) => std::task::ready!(frames.poll_recv(context)),
            Self::Text(text) => Some(std::mem::take(text)).filter(|text| !text.is_empty()),
        };
        Poll::Ready(bytes.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(text) if text.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Frames(_) => SizeHint::default(),
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
        }
    }
}

/// The content type of a stream of chunks; METRICS.md describes its frames.
const TAP_TYPE: &str = "application/vnd.baler.chunks";

fn health(checks: Vec<Check>) -> Response<Body> {
    let (is_ready, document) = answer(checks);
    let status = match is_ready {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    text(status, "application/json", document)
}

fn plain(status: StatusCode, message: &'static str) -> Response<Body> {
    text(status, "text/plain; charset=utf-8", message.to_owned())
}

fn text(status: StatusCode, content_type: &'static str, text: String) -> Response<Body> {
    let mut response = Response::new(Body::Text(text.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
