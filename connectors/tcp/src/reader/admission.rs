//! Admits a sender: TLS, its hello, and its proof.

use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time;
#[cfg(feature = "tls")]
use tokio_rustls::TlsAcceptor;

use super::state::ReaderState;
use crate::client::{Stream, send};
use crate::config::TcpConfig;
use crate::error::{ProtocolError, ProtocolErrorKind};
use crate::headers::{Hello, Role};
use crate::security::{self, ACCEPTED, PROOF_BYTES, Proof, REFUSED};

/// The first bytes of Kieker's writers with one socket: a string follows.
const KIEKER: [u8; 4] = [0xff; 4];

/// The least free room of a buffer for a read. With less room, a new buffer is made.
pub(super) const LEAST_ROOM: usize = 4 << 10;

/// The time in which a refused sender may read the reason.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The end of a connection.
#[derive(Debug)]
pub(super) enum End {
    /// The sender sent its last frame, or no byte at all.
    Bye,
    /// This side stops.
    Stopped,
    /// The connection was cut, or the sender was silent.
    Lost,
    /// The sender broke the protocol. Contains the bytes that were not read yet.
    Broken(ProtocolError, Bytes),
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Lost
    }
}

impl From<time::error::Elapsed> for End {
    fn from(_: time::error::Elapsed) -> Self {
        Self::Lost
    }
}

/// The settings with which a reader accepts connections.
pub(super) struct Settings {
    pub(super) config: TcpConfig,
    #[cfg(feature = "tls")]
    pub(super) acceptor: Option<TlsAcceptor>,
}

/// Sets up TLS with the sender, if the settings ask for it. Also returns the sender's proof.
#[cfg(feature = "tls")]
pub(super) async fn secure(
    socket: TcpStream,
    settings: &Settings,
) -> Result<(Box<dyn Stream>, Proof), End> {
    socket.set_nodelay(true)?;
    let Some(acceptor) = &settings.acceptor else {
        return Ok((Box::new(socket), Proof::None));
    };
    let timeout = settings.config.connect_timeout;
    match time::timeout(timeout, acceptor.accept(socket).into_fallible()).await? {
        Ok(stream) => {
            let (_, session) = stream.get_ref();
            let certificates = session.peer_certificates();
            let proof = certificates
                .and_then(<[_]>::first)
                .map_or(Proof::None, |it| Proof::Certificate(it.as_ref().into()));
            Ok((Box::new(stream), proof))
        }
        // Only rustls returns an error of this kind here.
        Err((error, mut socket)) if error.kind() == io::ErrorKind::InvalidData => {
            farewell(&mut socket, &[]).await;
            let reason = error.to_string().into();
            let error = ProtocolErrorKind::Handshake { reason }.at(0, "the TLS handshake");
            Err(End::Broken(error, Bytes::new()))
        }
        Err(_) => Err(End::Lost),
    }
}

/// Returns the connection as it is: this build has no TLS.
#[cfg(not(feature = "tls"))]
pub(super) async fn secure(
    socket: TcpStream,
    _: &Settings,
) -> Result<(Box<dyn Stream>, Proof), End> {
    socket.set_nodelay(true)?;
    Ok((Box::new(socket), Proof::None))
}

/// Reads the sender's hello, answers it and checks the token, within the configured time. Returns
/// the hello and the bytes after it.
pub(super) async fn greet(
    stream: &mut dyn Stream,
    config: &TcpConfig,
    state: &ReaderState,
) -> Result<(Hello, BytesMut), End> {
    let broken = |kind: ProtocolErrorKind, bytes: BytesMut| {
        End::Broken(kind.at(0, "the sender's hello"), bytes.freeze())
    };
    let mut bytes = BytesMut::with_capacity(LEAST_ROOM);
    let heard = time::timeout(config.connect_timeout, async {
        while (bytes.len() < Hello::BYTES && Hello::may_start(&bytes))
            || (bytes.len() < KIEKER.len() && KIEKER.starts_with(&bytes))
        {
            if stream.read_buf(&mut bytes).await? == 0 {
                break;
            }
        }
        io::Result::Ok(())
    });
    let heard = heard.await;
    if bytes.is_empty() {
        // The peer only checked whether the port is open.
        return Err(End::Bye);
    }
    if bytes.starts_with(&KIEKER) {
        let address = config.host.to_string().into();
        return Err(broken(ProtocolErrorKind::Kieker { address }, bytes));
    }
    if !Hello::may_start(&bytes) {
        return Err(broken(ProtocolErrorKind::Magic, bytes));
    }
    let Some(hello) = bytes.first_chunk() else {
        let kind = heard.map_or_else(
            |_| ProtocolErrorKind::Silence {
                milliseconds: config.connect_timeout.as_millis(),
            },
            |_| ProtocolErrorKind::Ended,
        );
        return Err(broken(kind, bytes));
    };
    let hello = Hello::read(hello, Role::Sender);
    if !matches!(hello, Err(ProtocolErrorKind::Checksum { .. })) {
        // A sender of another version reads the versions of this side in the answer.
        let answer = config.hello(Role::Receiver).to_bytes();
        time::timeout(config.connect_timeout, send(stream, &answer)).await??;
    }
    match hello {
        Ok(hello) => {
            let mut rest = bytes.split_off(Hello::BYTES);
            let admitted = admit(stream, config, state, hello, &mut rest);
            match time::timeout(config.connect_timeout, admitted).await? {
                Ok(()) => Ok((hello, rest)),
                Err(None) => Err(End::Lost),
                Err(Some(kind)) => Err(broken(kind, bytes)),
            }
        }
        Err(kind) => Err(broken(kind, bytes)),
    }
}

/// Checks that the sender has the token, if one is demanded. `rest` holds the bytes after the
/// sender's hello; the proof is removed from it.
async fn admit(
    stream: &mut dyn Stream,
    config: &TcpConfig,
    state: &ReaderState,
    hello: Hello,
    rest: &mut BytesMut,
) -> Result<(), Option<ProtocolErrorKind>> {
    if !config.has_token() {
        return Ok(());
    }
    if !hello.has_token() {
        return Err(Some(ProtocolErrorKind::TokenMissing));
    }
    let read = config
        .read_token()
        .and_then(|token| Ok((token, security::challenge()?)));
    let (token, challenge) = read.map_err(|failure| {
        state.push_failure(failure);
        None
    })?;
    send(stream, &challenge).await.map_err(|_| None)?;
    while rest.len() < PROOF_BYTES {
        if stream.read_buf(rest).await.map_err(|_| None)? == 0 {
            return Err(None);
        }
    }
    let proof = rest.split_to(PROOF_BYTES);
    let ours = config.hello(Role::Receiver);
    let proved = token.is_some_and(|it| it.is_proved(hello, ours, &challenge, &proof));
    let answer = if proved { ACCEPTED } else { REFUSED };
    send(stream, &[answer]).await.map_err(|_| None)?;
    if proved {
        Ok(())
    } else {
        Err(Some(ProtocolErrorKind::Token))
    }
}

/// Sends a last answer, and closes the connection when the peer has read it.
///
/// Closing at once could lose the answer, because unread bytes reset the connection.
pub(super) async fn farewell(stream: &mut (impl AsyncRead + AsyncWrite + Unpin), answer: &[u8]) {
    let answered = async {
        send(stream, answer).await?;
        stream.shutdown().await?;
        tokio::io::copy(stream, &mut tokio::io::sink()).await
    };
    time::timeout(CLOSE_TIMEOUT, answered).await.ok();
}
