//! Accepts connections, and joins the two connections of a sender.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{Damaged, Failure, Origin};
use bytes::Bytes;
use socket2::{SockRef, TcpKeepalive};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time;

use super::connection::serve;
use super::state::ReaderState;
use crate::SCHEME;
use crate::config::KiekerTcpConfig;

/// The pause after a connection could not be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// How long one of a sender's two connections waits for the other.
const PAIRING: Duration = Duration::from_secs(10);

/// The silence after which the operating system checks whether the sender's machine still exists.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// One of a sender's two connections, which waits for the other.
struct Half {
    stream: TcpStream,
    peer: SocketAddr,
    is_registry: bool,
    since: Instant,
}

/// Accepts and serves connections until the reader stops.
pub(super) async fn listen(
    listener: TcpListener,
    registry: Option<TcpListener>,
    config: KiekerTcpConfig,
    state: Arc<ReaderState>,
    mut stop: watch::Receiver<bool>,
) {
    let registry = registry.map(tokio::net::TcpListener::from_std).transpose();
    let (listener, registry) = match (tokio::net::TcpListener::from_std(listener), registry) {
        (Ok(listener), Ok(registry)) => (listener, registry),
        (Err(error), _) | (_, Err(error)) => {
            return state.push_failure(Failure::of_io("listen at", &error));
        }
    };
    let mut connections = JoinSet::new();
    let mut halves: Vec<Half> = Vec::new();
    loop {
        let (accepted, is_registry) = tokio::select! {
            // A change and the end of the channel both mean that the reader stops.
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => (accepted, false),
            Some(accepted) = accept(registry.as_ref()) => (accepted, true),
        };
        let (stream, peer) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                state.push_failure(Failure::of_io("accept at", &error));
                time::sleep(PAUSE).await;
                continue;
            }
        };
        for half in halves.extract_if(.., |half| half.since.elapsed() >= PAIRING) {
            state.push_damaged(unpaired(&half));
        }
        if connections.len() + halves.len() >= config.max_connections.get() {
            state.count(|stats| stats.connections_turned_away += 1);
            continue;
        }
        let keepalive = TcpKeepalive::new().with_time(KEEPALIVE);
        // If this fails, a sender whose machine is lost only stays in the count of connections.
        SockRef::from(&stream).set_tcp_keepalive(&keepalive).ok();
        // A verdict does not wait until the sender has confirmed the one before.
        stream.set_nodelay(true).ok();
        let half = Half {
            stream,
            peer,
            is_registry,
            since: Instant::now(),
        };
        let (records, strings) = if registry.is_none() {
            (half, None)
        } else if let Some((records, strings)) = pair(&mut halves, half) {
            (records, Some(strings.stream))
        } else {
            continue;
        };
        connections.spawn(serve(
            records.stream,
            strings,
            records.peer,
            config.max_age,
            Arc::clone(&state),
            stop.clone(),
        ));
    }
}

/// Accepts the next connection of the second port; `None` if there is no second port.
async fn accept(
    listener: Option<&tokio::net::TcpListener>,
) -> Option<std::io::Result<(TcpStream, SocketAddr)>> {
    Some(listener?.accept().await)
}

/// Returns the report of a connection for which no second connection came.
fn unpaired(half: &Half) -> Damaged {
    let port = if half.is_registry {
        "port of strings"
    } else {
        "port of records"
    };
    let reason = format!(
        "only the connection to the {port} came within {} s; a sender with one socket needs a \
         reader without registry_port",
        PAIRING.as_secs()
    );
    Damaged {
        token: None,
        bytes: Bytes::new(),
        origin: Origin {
            endpoint: format!("{SCHEME}://{}", half.peer).into(),
            lane: half.peer.to_string().into(),
            position: 0,
        },
        reason: reason.into(),
        peer: Some(half.peer.ip()),
    }
}

/// Joins a connection with the oldest connection of the same host that came to the other port. The
/// first one of the result carries records. Without such a connection this one waits.
fn pair(halves: &mut Vec<Half>, half: Half) -> Option<(Half, Half)> {
    let fits = |it: &Half| it.is_registry != half.is_registry && it.peer.ip() == half.peer.ip();
    let Some(place) = halves.iter().position(fits) else {
        halves.push(half);
        return None;
    };
    let other = halves.remove(place);
    Some(if half.is_registry {
        (other, half)
    } else {
        (half, other)
    })
}
