//! A client that sends one HTTP request over a connection, for the figures and taps of processes.
//!
//! URL -> connection -> head of the answer -> body, whole or piece by piece

use std::error::Error;
use std::future::poll_fn;
use std::io::{self, Read};
use std::pin::Pin;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf as _, Bytes};
use hyper::body::{Body as _, Incoming};
use hyper::header::{AUTHORIZATION, HOST};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::runtime::{self, Runtime};
use tokio::time::{timeout, timeout_at};

use crate::exit::Failure;

const HTTP_PORT: u16 = 80;

/// An answer whose body may still be on its way. Reading it waits without a limit.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    body: Incoming,
    /// The part of the body that has arrived and is not read yet.
    arrived: Bytes,
    /// Drives the connection while the body is read.
    runtime: Runtime,
}

/// Requests a URL. Returns when the head of the answer is there.
///
/// # Errors
///
/// The URL is wrong, or nobody answers within the limit.
pub(crate) fn get(
    url: &str,
    headers: &[(&str, &str)],
    limit: Duration,
) -> Result<HttpAnswer, String> {
    send(Method::GET, url, headers, "", limit)
}

/// As [`get`], with another method and a body.
///
/// # Errors
///
/// As [`get`].
pub(crate) fn send(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
    limit: Duration,
) -> Result<HttpAnswer, String> {
    let runtime = runtime::Builder::new_current_thread()
        .enable_io()
        .enable_time()
        .build()
        .map_err(|error| error.to_string())?;
    let answer =
        runtime.block_on(async { timeout(limit, request(method, url, headers, body)).await });
    match answer.unwrap_or_else(|_| Err(format!("no answer within {limit:?}").into())) {
        Ok(answer) => Ok(HttpAnswer {
            status: answer.status(),
            body: answer.into_body(),
            arrived: Bytes::new(),
            runtime,
        }),
        Err(error) => {
            // The name of the host may still be looked up.
            runtime.shutdown_background();
            Err(error.to_string())
        }
    }
}

async fn request(
    method: Method,
    url: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> Result<Response<Incoming>, Box<dyn Error>> {
    let uri: Uri = url.parse().map_err(|_| format!("`{url}` is no URL"))?;
    let authority = uri.authority().ok_or("the URL has no host")?;
    let (credentials, address) = match authority.as_str().rsplit_once('@') {
        Some((credentials, address)) => (Some(credentials), address),
        None => (None, authority.as_str()),
    };
    let host = authority
        .host()
        .trim_start_matches('[')
        .trim_end_matches(']');
    let port = authority.port_u16().unwrap_or(HTTP_PORT);
    let stream = TokioIo::new(TcpStream::connect((host, port)).await?);
    let (mut sender, connection) = hyper::client::conn::http1::handshake(stream).await?;
    // Its error is also the error of the answer.
    tokio::spawn(async { connection.await.ok() });
    let path = uri.path_and_query().map_or("/", |it| it.as_str());
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    if !headers.iter().any(|(name, _)| *name == HOST) {
        request = request.header(HOST, address);
    }
    if let Some(credentials) = credentials {
        let credentials = STANDARD.encode(credentials);
        request = request.header(AUTHORIZATION, format!("Basic {credentials}"));
    }
    let request = request.body(body.to_owned())?;
    Ok(sender.send_request(request).await?)
}

/// Returns the next piece of a body, or `None` at its end.
pub(crate) async fn piece(body: &mut Incoming) -> Result<Option<Bytes>, String> {
    loop {
        let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
        match frame.transpose().map_err(|error| error.to_string())? {
            None => return Ok(None),
            Some(frame) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
        }
    }
}

impl HttpAnswer {
    /// Reads the rest of the body as text.
    ///
    /// # Errors
    ///
    /// The body is larger than `max_bytes`, does not end until `by`, or breaks off.
    pub(crate) fn text(mut self, max_bytes: usize, by: Instant) -> Result<String, String> {
        let mut text = Vec::new();
        let read = async {
            while let Some(piece) = piece(&mut self.body).await? {
                if text.len() + piece.len() > max_bytes {
                    return Err(format!("the answer has more than {max_bytes} bytes"));
                }
                text.extend_from_slice(&piece);
            }
            Ok(())
        };
        let read = self
            .runtime
            .block_on(async { timeout_at(by.into(), read).await });
        read.unwrap_or_else(|_| Err("the answer does not end in time".to_owned()))?;
        String::from_utf8(text).map_err(|error| error.to_string())
    }
}

impl Read for HttpAnswer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.arrived.is_empty() {
            match self.runtime.block_on(piece(&mut self.body)) {
                Ok(Some(piece)) => self.arrived = piece,
                Ok(None) => return Ok(0),
                Err(error) => return Err(io::Error::other(error)),
            }
        }
        let count = (&*self.arrived).read(buffer)?;
        self.arrived.advance(count);
        Ok(count)
    }
}

/// Returns the URL of an address, without a slash at its end.
///
/// # Errors
///
/// The scheme is not http, or the host is missing.
pub(crate) fn base_url(address: &str) -> Result<String, Failure> {
    let base = match address.split_once("://") {
        Some(("http", _)) => address.to_owned(),
        Some((scheme, _)) => {
            return Err(Failure::configuration(format!(
                "{scheme}: is not how metrics are served; write http://host:port or host:port"
            )));
        }
        None => format!("http://{address}"),
    };
    let base = base.trim_end_matches('/').to_owned();
    if base.parse::<Uri>().is_err() || base == "http:" {
        return Err(Failure::configuration(format!(
            "`{address}` is no address; write http://host:port or host:port"
        )));
    }
    Ok(base)
}

#[cfg(test)]
mod tests;
