//! Connects a sender: from a host name to a connection on which both sides have said hello.

use std::io::{self, ErrorKind};
use std::time::Duration;

use baler_common::transport::Failure;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, lookup_host};

use crate::config::{TcpConfig, silence};
use crate::error::ProtocolErrorKind;
use crate::headers::{ConnectionLimits, Hello, Role};
use crate::security::{ACCEPTED, CHALLENGE_BYTES};

/// A connection with TLS or without it.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection on which both sides have said hello.
pub(crate) struct Connected {
    pub(crate) stream: Box<dyn Stream>,
    pub(crate) limits: ConnectionLimits,
    /// The longest silence of the receiver.
    pub(crate) silence: Duration,
}

/// The first bytes of an alert of TLS, with which a receiver with TLS answers a plain hello.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// Connects, sets up TLS, sends this side's hello and reads the receiver's.
pub(crate) async fn connect(config: &TcpConfig) -> Result<Connected, Failure> {
    let addresses = lookup_host((&*config.host.name, config.port())).await;
    let mut last = Failure::retry("connect to", "the name has no address");
    for address in addresses.map_err(|error| Failure::of_io("look up", &error))? {
        match TcpStream::connect(address).await {
            Ok(socket) => return greet(socket, config).await,
            Err(error) => last = Failure::of_io("connect to", &error),
        }
    }
    Err(last)
}

async fn greet(socket: TcpStream, config: &TcpConfig) -> Result<Connected, Failure> {
    socket
        .set_nodelay(true)
        .map_err(|error| Failure::of_io("set up", &error))?;
    let mut stream = secure(socket, config).await?;
    let unsent = |error| Failure::of_io("say hello to", &error);
    let wrong = |kind| broken("the receiver's hello", kind);
    let hello = config.hello(Role::Sender);
    send(&mut stream, &hello.to_bytes()).await.map_err(unsent)?;
    let answer = read::<{ Hello::BYTES }>(&mut stream).await?;
    let theirs = Hello::read(&answer, Role::Receiver).map_err(wrong)?;
    if theirs.has_token() {
        let token = config.read_token()?;
        let token = token.ok_or_else(|| wrong(ProtocolErrorKind::TokenMissing))?;
        let challenge = read::<CHALLENGE_BYTES>(&mut stream).await?;
        let proof = token.prove(hello, theirs, &challenge);
        send(&mut stream, proof.as_ref()).await.map_err(unsent)?;
        if read(&mut stream).await? != [ACCEPTED] {
            return Err(wrong(ProtocolErrorKind::Token));
        }
    }
    Ok(Connected {
        stream,
        limits: hello.limits.min(theirs.limits),
        silence: silence(&theirs),
    })
}

/// Sets up TLS with the receiver, if the settings ask for it.
#[cfg(feature = "tls")]
async fn secure(socket: TcpStream, config: &TcpConfig) -> Result<Box<dyn Stream>, Failure> {
    let Some(files) = &config.tls else {
        return Ok(Box::new(socket));
    };
    let (connector, name) = crate::tls::connector(files, &config.host.name)?;
    let connected = connector.connect(name, socket).await;
    Ok(Box::new(connected.map_err(|error| unanswered(&error))?))
}

/// Returns the connection as it is: this build has no TLS.
#[cfg(not(feature = "tls"))]
#[expect(clippy::unused_async, reason = "with TLS it waits")]
async fn secure(socket: TcpStream, _: &TcpConfig) -> Result<Box<dyn Stream>, Failure> {
    Ok(Box::new(socket))
}

/// Reads `N` bytes.
async fn read<const N: usize>(stream: &mut Box<dyn Stream>) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let mut rest = bytes.as_mut_slice();
    while !rest.is_empty() {
        let read = stream.read_buf(&mut rest).await;
        if read.map_err(|error| unanswered(&error))? > 0 {
            continue;
        }
        return Err(if bytes.starts_with(&TLS_ALERT) {
            let message = "the receiver speaks TLS; write tcp+tls: instead of tcp:";
            Failure::last("say hello to", message)
        } else {
            let message = "the connection was closed instead of an answer";
            Failure::retry("say hello to", message)
        });
    }
    Ok(bytes)
}

/// Writes the bytes and flushes the stream, so that TLS holds nothing back.
pub(crate) async fn send(
    stream: &mut (impl AsyncWrite + Unpin + ?Sized),
    bytes: &[u8],
) -> io::Result<()> {
    stream.write_all(bytes).await?;
    stream.flush().await
}

/// Returns the failure of a greeting that breaks the protocol.
fn broken(reading: &'static str, kind: ProtocolErrorKind) -> Failure {
    Failure::from(&kind.at(0, reading))
}

/// Returns the failure of a read of the receiver's answer. An error of TLS is final.
fn unanswered(error: &io::Error) -> Failure {
    match error.kind() {
        // Only rustls returns an error of this kind here.
        ErrorKind::InvalidData => {
            let reason = error.to_string().into();
            broken("the TLS handshake", ProtocolErrorKind::Handshake { reason })
        }
        _ => Failure::of_io("say hello to", error),
    }
}
