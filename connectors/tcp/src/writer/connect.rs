//! From a name to a connection on which both sides have said hello.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::transport::Failure;

use crate::config::{TcpConfig, silence};
use crate::error::{ProtocolError, ProtocolErrorKind, failed};
use crate::hello::{ConnectionLimits, Hello, Role};
use crate::security::{ACCEPTED, CHALLENGE_BYTES};

/// A connection on which both sides have said hello.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) stream: TcpStream,
    pub(super) limits: ConnectionLimits,
    /// How long the receiver may be silent.
    pub(super) silence: Duration,
}

/// What a read or write waits for at least: the operating system takes 0 for "for ever".
const LEAST: Duration = Duration::from_millis(1);

/// Connects, and says hello, before `by` and within the configured time.
pub(super) fn connect(config: &TcpConfig, by: Instant) -> Result<Connected, Failure> {
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

/// Says hello and hears the receiver's.
fn greet(mut stream: TcpStream, config: &TcpConfig, by: Instant) -> Result<Connected, Failure> {
    let hello = config.hello(Role::Sender);
    let left = || Some(by.saturating_duration_since(Instant::now()).max(LEAST));
    let said = stream
        .set_nodelay(true)
        .and_then(|()| stream.set_write_timeout(left()))
        .and_then(|()| stream.write_all(&hello.to_bytes()));
    said.map_err(|error| failed("say hello to", &error))?;

    let bytes = read_exact::<{ Hello::BYTES }>(&mut stream, by)?;
    let broken = |kind| {
        Failure::from(&ProtocolError {
            offset: 0,
            reading: "the receiver's hello",
            kind,
        })
    };
    let theirs = Hello::read(&bytes, Role::Receiver).map_err(broken)?;
    if theirs.has_token() {
        let file = config.token_file.as_ref();
        let token = file
            .ok_or_else(|| broken(ProtocolErrorKind::TokenMissing))?
            .read()?;
        let challenge = read_exact::<CHALLENGE_BYTES>(&mut stream, by)?;
        let proof = token.prove(hello, theirs, &challenge);
        stream
            .set_write_timeout(left())
            .and_then(|()| stream.write_all(proof.as_ref()))
            .map_err(|error| failed("say hello to", &error))?;
        if read_exact(&mut stream, by)? != [ACCEPTED] {
            return Err(broken(ProtocolErrorKind::Token));
        }
    }
    let silence = silence(&theirs);
    stream
        .set_write_timeout(None)
        .and_then(|()| stream.set_read_timeout(Some(silence)))
        .map_err(|error| failed("set up", &error))?;
    Ok(Connected {
        stream,
        limits: hello.limits.min(theirs.limits),
        silence,
    })
}

/// Reads so many bytes before `by`.
fn read_exact<const N: usize>(stream: &mut TcpStream, by: Instant) -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    let mut known = 0;
    while let Some(rest @ [_, ..]) = bytes.get_mut(known..) {
        // Set before each read: the deadline is for all of them.
        let left = by.saturating_duration_since(Instant::now()).max(LEAST);
        let read = stream
            .set_read_timeout(Some(left))
            .and_then(|()| stream.read(rest));
        match read {
            Ok(0) => {
                let message = "the connection was closed instead of an answer";
                return Err(Failure::retry("say hello to", message));
            }
            Ok(read) => known += read,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return Err(Failure::retry("say hello to", "no answer in time"));
            }
            Err(error) => return Err(failed("say hello to", &error)),
        }
        if Instant::now() >= by && known < N {
            return Err(Failure::retry("say hello to", "no answer in time"));
        }
    }
    Ok(bytes)
}
