//! The connected socket that lapin gets, with TLS or without it.
//!
//! lapin can connect by itself, at a higher cost. Its TLS brings 55 crates. Its socket starts a further
//! thread in the process. A refused connection leaves a task in the runtime: each attempt of an outage
//! would add 15 kB to a reader, whose runtime lives on.

use std::fs;
use std::future::ready;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::pin::Pin;
use std::task::{self, Context, Poll};
use std::time::{Duration, Instant};

use async_rs::traits::Reactor;
use async_rs::util::RuntimeParts;
use async_rs::{Runtime, Tokio};
use baler_common::transport::Failure;
use baler_common::transport::tls::TlsFiles;
use baler_common::transport::uri::Host;
use futures_core::Stream;
use rustls::{DEFAULT_VERSIONS, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::config::AmqpConfig;
use crate::error;

/// A connection with TLS or without it.
pub(super) struct Socket(Box<dyn Connection>);

trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Connection for S {}

impl Socket {
    /// Connects to the host, and sets up TLS if the settings ask for it. Reads the certificates, so
    /// that renewed ones count.
    pub(super) async fn connect(
        config: &AmqpConfig,
        host: &Host,
    ) -> Result<(Self, Attempt), Failure> {
        let failed = |error: io::Error| error::of_setup("connect to", &error.into());
        let tls = match &config.tls {
            None => None,
            Some(files) => {
                let authorities = authorities(files)?;
                Some(files.client(fs::read, DEFAULT_VERSIONS, authorities, &host.name)?)
            }
        };
        let socket = TcpStream::connect((&*host.name, config.port(host))).await;
        let socket = socket.map_err(|error| Failure::of_io("connect to", &error))?;
        socket.set_nodelay(true).map_err(failed)?;
        let socket = socket.into_std().map_err(failed)?;
        let attempt = Attempt(Some(socket.try_clone().map_err(failed)?));
        let socket = TcpStream::from_std(socket).map_err(failed)?;
        let Some((tls, name)) = tls else {
            return Ok((Self(Box::new(socket)), attempt));
        };
        let secured = TlsConnector::from(tls)
            .connect(name, socket)
            .await
            .map_err(failed)?;
        Ok((Self(Box::new(secured)), attempt))
    }
}

/// Ends the connection when it is dropped, unless the attempt succeeded.
///
/// A broker may accept a connection and say nothing. The thread of lapin would wait for it after the
/// attempt was given up, for ever.
pub(super) struct Attempt(Option<std::net::TcpStream>);

impl Attempt {
    pub(super) fn succeeded(mut self) {
        self.0 = None;
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        if let Some(socket) = self.0.take() {
            // It fails if the connection has ended.
            socket.shutdown(Shutdown::Both).ok();
        }
    }
}

/// Reads the authorities that must have signed a broker's certificate: those of the settings, and
/// those of the machine.
fn authorities(files: &TlsFiles) -> Result<RootCertStore, Failure> {
    let mut roots = files
        .authorities(fs::read)?
        .unwrap_or_else(RootCertStore::empty);
    let machine = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(machine.certs);
    if roots.is_empty() {
        let cause = machine.errors.first().map(ToString::to_string);
        let message = format!(
            "this machine trusts no authority ({}); set cacertfile, or install ca-certificates",
            cause.as_deref().unwrap_or("no certificate was found")
        );
        return Err(Failure::retry("connect to", message));
    }
    Ok(roots)
}

impl futures_io::AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        let mut buf = ReadBuf::new(buf);
        task::ready!(Pin::new(&mut self.0).poll_read(cx, &mut buf))?;
        Poll::Ready(Ok(buf.filled().len()))
    }
}

impl futures_io::AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_close(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Returns the runtime of this thread, in the form in which lapin uses it.
pub(super) fn this_runtime() -> Runtime<RuntimeParts<Tokio, Sockets>> {
    let tokio = Tokio::current();
    Runtime::new(RuntimeParts::new(tokio.clone(), Sockets(tokio)))
}

/// The times of Tokio, with our sockets instead of its own. lapin makes no socket.
#[derive(Clone, Debug)]
pub(super) struct Sockets(Tokio);

impl Reactor for Sockets {
    type TcpStream = Socket;
    type Sleep = <Tokio as Reactor>::Sleep;

    fn register<H: Read + Write + Send + 'static>(
        &self,
        _: H,
    ) -> io::Result<impl futures_io::AsyncRead + futures_io::AsyncWrite + Send + Unpin + 'static>
    {
        Err::<Socket, _>(io::ErrorKind::Unsupported.into())
    }

    fn sleep(&self, time: Duration) -> Self::Sleep {
        self.0.sleep(time)
    }

    fn interval(&self, period: Duration) -> impl Stream<Item = Instant> + Send + 'static {
        self.0.interval(period)
    }

    fn tcp_connect_addr(
        &self,
        _: SocketAddr,
    ) -> impl Future<Output = io::Result<Socket>> + Send + 'static {
        ready(Err(io::ErrorKind::Unsupported.into()))
    }
}
