//! From a name to a connection on which both sides have said hello.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::Failure;

use crate::config::{TcpConfig, silence};
use crate::error::{ProtocolError, ProtocolErrorKind, failed};
use crate::headers::{ConnectionLimits, Hello, Role};
use crate::security::{ACCEPTED, CHALLENGE_BYTES};
#[cfg(feature = "tls")]
use crate::tls::{self, TlsSession};

/// A connection on which both sides have said hello.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) socket: Socket,
    pub(crate) limits: ConnectionLimits,
    /// How long the receiver may be silent.
    pub(crate) silence: Duration,
}

/// What a read or write waits for at least: the operating system takes 0 for "for ever".
const LEAST: Duration = Duration::from_millis(1);

/// The first bytes of an alert of TLS, with which a receiver with TLS answers a plain hello.
const TLS_ALERT: [u8; 2] = [0x15, 0x03];

/// Connects, and says hello, before `by` and within the configured time.
pub(crate) fn connect(config: &TcpConfig, by: Instant) -> Result<Connected, Failure> {
    let by = by.min(Instant::now() + config.connect_timeout);
    let mut last = Failure::retry("connect to", "the name has no address");
    for address in resolve(config, by)? {
        let left = by.saturating_duration_since(Instant::now()).max(LEAST);
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return greet(stream, config, by),
            Err(error) => last = failed("connect to", &error),
        }
    }
    Err(last)
}

/// Looks up a name in a thread of its own, since that cannot be given a deadline.
fn resolve(config: &TcpConfig, by: Instant) -> Result<Vec<SocketAddr>, Failure> {
    let port = config.port();
    if let Ok(address) = config.host.name.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let (found, looked_up) = mpsc::sync_channel(1);
    let name = config.host.name.to_string();
    thread::Builder::new()
        .name("baler-tcp-name".into())
        .spawn(move || {
            let addresses = (name.as_str(), port).to_socket_addrs();
            // Nobody waits any more once the deadline is over.
            found.send(addresses.map(Iterator::collect)).ok();
        })
        .map_err(|error| failed("look up", &error))?;
    let left = by.saturating_duration_since(Instant::now());
    match looked_up.recv_timeout(left) {
        Ok(addresses) => addresses.map_err(|error| failed("look up", &error)),
        Err(_) => Err(Failure::retry("look up", "no answer in time")),
    }
}

/// Agrees on TLS, says hello and hears the receiver's.
fn greet(stream: TcpStream, config: &TcpConfig, by: Instant) -> Result<Connected, Failure> {
    let hello = config.hello(Role::Sender);
    let left = || Some(by.saturating_duration_since(Instant::now()).max(LEAST));
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_write_timeout(left()))
        .map_err(|error| failed("set up", &error))?;
    let mut socket = Socket::agree(stream, config, by)?;
    let said = socket.write_all(&hello.to_bytes());
    said.map_err(|error| failed("say hello to", &error))?;

    let bytes = read_exact::<{ Hello::BYTES }>(&mut socket, by)?;
    let theirs =
        Hello::read(&bytes, Role::Receiver).map_err(|kind| broken("the receiver's hello", kind))?;
    if theirs.has_token() {
        let wrong = |kind| broken("the receiver's hello", kind);
        let source = config.token.as_ref();
        let token = source
            .ok_or_else(|| wrong(ProtocolErrorKind::TokenMissing))?
            .read()?;
        let challenge = read_exact::<CHALLENGE_BYTES>(&mut socket, by)?;
        let proof = token.prove(hello, theirs, &challenge);
        socket
            .stream
            .set_write_timeout(left())
            .and_then(|()| socket.write_all(proof.as_ref()))
            .map_err(|error| failed("say hello to", &error))?;
        if read_exact(&mut socket, by)? != [ACCEPTED] {
            return Err(wrong(ProtocolErrorKind::Token));
        }
    }
    let silence = silence(&theirs);
    socket
        .stream
        .set_write_timeout(None)
        .and_then(|()| socket.stream.set_read_timeout(Some(silence)))
        .map_err(|error| failed("set up", &error))?;
    Ok(Connected {
        socket,
        limits: hello.limits.min(theirs.limits),
        silence,
    })
}

/// What the receiver said first, or did not say, cannot be.
fn broken(reading: &'static str, kind: ProtocolErrorKind) -> Failure {
    Failure::from(&ProtocolError {
        offset: 0,
        reading,
        kind,
    })
}

/// A connection to a receiver, for one thread that reads and one that writes.
#[derive(Debug, Clone)]
pub(crate) struct Socket {
    stream: Arc<TcpStream>,
    #[cfg(feature = "tls")]
    tls: Option<Arc<TlsSession>>,
}

impl Socket {
    /// Agrees with the receiver on TLS, if the settings want it.
    #[cfg(feature = "tls")]
    fn agree(stream: TcpStream, config: &TcpConfig, by: Instant) -> Result<Self, Failure> {
        let mut tls = None;
        if let Some(files) = &config.tls {
            let session = TlsSession::new(tls::session(files, &config.host.name)?);
            loop {
                let left = by.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Failure::retry("say hello to", "no answer in time"));
                }
                let step = stream
                    .set_read_timeout(Some(left.max(LEAST)))
                    .and_then(|()| session.shake_hands(&stream));
                if step.map_err(|error| unanswered(&error))? {
                    break;
                }
            }
            tls = Some(Arc::new(session));
        }
        let stream = Arc::new(stream);
        Ok(Self { stream, tls })
    }

    /// Connections without TLS are all that this build has.
    #[cfg(not(feature = "tls"))]
    #[expect(clippy::unnecessary_wraps, reason = "with TLS it can fail")]
    fn agree(stream: TcpStream, _: &TcpConfig, _: Instant) -> Result<Self, Failure> {
        let stream = Arc::new(stream);
        Ok(Self { stream })
    }

    /// Ends the connection, and what both threads wait for.
    pub(crate) fn shut_down(&self) {
        // It may be gone already.
        self.stream.shutdown(Shutdown::Both).ok();
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.read(&self.stream, buffer);
        }
        (&*self.stream).read(buffer)
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return tls.write(&self.stream, parts);
        }
        (&*self.stream).write_vectored(parts)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Why the receiver's answer could not be read. What TLS finds wrong does not pass by itself.
fn unanswered(error: &io::Error) -> Failure {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Failure::retry("say hello to", "no answer in time")
        }
        // Of rustls: no other source of this kind is read here.
        ErrorKind::InvalidData => {
            let reason = error.to_string().into();
            broken("the TLS handshake", ProtocolErrorKind::Handshake { reason })
        }
        _ => failed("say hello to", error),
    }
}

/// Reads `N` bytes before `by`.
fn read_exact<const N: usize>(socket: &mut Socket, by: Instant) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let mut known = 0;
    while let Some(rest @ [_, ..]) = bytes.get_mut(known..) {
        // Set before each read: the deadline is for all of them.
        let left = by.saturating_duration_since(Instant::now()).max(LEAST);
        let read = socket
            .stream
            .set_read_timeout(Some(left))
            .and_then(|()| socket.read(rest));
        match read {
            Ok(0) if bytes.starts_with(&TLS_ALERT) => {
                let message = "the receiver speaks TLS; write tcp+tls: instead of tcp:";
                return Err(Failure::last("say hello to", message));
            }
            Ok(0) => {
                let message = "the connection was closed instead of an answer";
                return Err(Failure::retry("say hello to", message));
            }
            Ok(read) => known += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(unanswered(&error)),
        }
        if Instant::now() >= by && known < N {
            return Err(Failure::retry("say hello to", "no answer in time"));
        }
    }
    Ok(bytes)
}
