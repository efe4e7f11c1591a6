//! A TCP proxy that misbehaves on demand.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Stands between two ends of TCP connections. It listens on a port of the loopback and forwards
/// both ways, until a switch makes it misbehave. Every switch applies to all its connections.
///
/// After an idea of toxiproxy. Its threads end with their connections and with the proxy.
#[derive(Debug)]
pub struct TcpProxy {
    address: SocketAddr,
    shared: Arc<ProxyState>,
}

#[derive(Debug, Default)]
struct ProxyState {
    switches: Mutex<Switches>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Switches {
    target: Option<SocketAddr>,
    closed: bool,
    frozen: bool,
    delay: Duration,
    bytes_per_second: Option<u64>,
    /// The number of bytes that still go from the connecting to the listening side before the cut.
    cut_after: Option<u64>,
    streams: Vec<TcpStream>,
    /// Connections of an earlier generation stand still for good.
    generation: usize,
    abandoned: Vec<TcpStream>,
    connections: usize,
}

/// The direction of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    ToTarget,
    FromTarget,
}

impl TcpProxy {
    /// Starts a proxy without a target: connections are closed as soon as they are made.
    ///
    /// # Errors
    ///
    /// No port of the loopback can be opened.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(ProxyState::default());
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accept(&listener, &accepting));
        Ok(Self { address, shared })
    }

    /// Returns the address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the target of new connections; without a target they are closed at once.
    pub fn set_target(&self, target: Option<SocketAddr>) {
        self.shared.update(|switches| switches.target = target);
    }

    /// Ends every connection in both directions.
    pub fn cut(&self) {
        self.shared.update(Switches::cut);
    }

    /// Cuts every connection after this many more bytes towards the target.
    pub fn cut_after(&self, bytes: u64) {
        self.shared
            .update(|switches| switches.cut_after = Some(bytes));
    }

    /// Sets whether the proxy is frozen: nothing is forwarded either way and nothing breaks, as
    /// with a half-open connection.
    pub fn set_frozen(&self, frozen: bool) {
        self.shared.update(|switches| switches.frozen = frozen);
    }

    /// Lets the current connections stand still for good without an end, while new ones work. A
    /// peer sees the same when the other side loses its power.
    pub fn abandon(&self) {
        self.shared.update(|switches| {
            switches.generation += 1;
            let streams = std::mem::take(&mut switches.streams);
            switches.abandoned.extend(streams);
        });
    }

    /// Delays each piece that is forwarded.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.update(|switches| switches.delay = delay);
    }

    /// Bounds the rate of each direction of each connection.
    pub fn set_bytes_per_second(&self, rate: Option<u64>) {
        self.shared
            .update(|switches| switches.bytes_per_second = rate);
    }

    /// Returns the number of connections that were forwarded so far.
    pub fn connections(&self) -> usize {
        self.shared.lock().connections
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.shared.update(|switches| {
            switches.closed = true;
            switches.cut();
            shut(&mut switches.abandoned);
        });
        // Wakes the thread that accepts. If this fails, the thread is not waiting.
        drop(TcpStream::connect(self.address));
    }
}

impl ProxyState {
    fn lock(&self) -> MutexGuard<'_, Switches> {
        self.switches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, change: impl FnOnce(&mut Switches)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }

    /// Waits while the proxy is frozen. Returns how many of `bytes` may be forwarded, and the pause
    /// before.
    fn admit(&self, generation: usize, way: Way, bytes: usize) -> Admitted {
        let mut switches = self
            .changed
            .wait_while(self.lock(), |switches| switches.frozen && !switches.closed)
            .unwrap_or_else(PoisonError::into_inner);
        if switches.closed {
            return Admitted::Cut;
        }
        if switches.generation != generation {
            return Admitted::Forget;
        }
        let mut admitted = bytes as u64;
        if let (Way::ToTarget, Some(left)) = (way, &mut switches.cut_after) {
            admitted = admitted.min(*left);
            *left -= admitted;
        }
        let rate = switches.bytes_per_second;
        let nanos = rate.map_or(0, |rate| admitted * 1_000_000_000 / rate.max(1));
        let admitted = usize::try_from(admitted).expect("it is at most `bytes`");
        Admitted::Forward(admitted, switches.delay + Duration::from_nanos(nanos))
    }
}

impl Switches {
    fn cut(&mut self) {
        shut(&mut self.streams);
        self.cut_after = None;
    }
}

fn shut(streams: &mut Vec<TcpStream>) {
    for stream in streams.drain(..) {
        // It may be closed already.
        stream.shutdown(Shutdown::Both).ok();
    }
}

/// The decision about a piece.
enum Admitted {
    /// Forward this number of bytes after a pause.
    Forward(usize, Duration),
    /// Forget it: the connection stands still for good.
    Forget,
    /// The connections are cut.
    Cut,
}

fn accept(listener: &TcpListener, shared: &Arc<ProxyState>) {
    for client in listener.incoming() {
        let Ok(client) = client else { continue };
        let target = {
            let switches = shared.lock();
            if switches.closed {
                return;
            }
            switches.target
        };
        let Some(server) = target.and_then(|target| TcpStream::connect(target).ok()) else {
            continue;
        };
        // A connection that cannot be set up is dropped, like a cut connection.
        connect(client, server, shared).ok();
    }
}

fn connect(client: TcpStream, server: TcpStream, shared: &Arc<ProxyState>) -> io::Result<()> {
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let ends = [client.try_clone()?, server.try_clone()?];
    let forwards = [
        (Way::ToTarget, client.try_clone()?, server.try_clone()?),
        (Way::FromTarget, server, client),
    ];
    let mut generation = 0;
    shared.update(|switches| {
        switches.streams.extend(ends);
        switches.connections += 1;
        generation = switches.generation;
    });
    for (way, from, to) in forwards {
        let shared = Arc::clone(shared);
        thread::spawn(move || forward(generation, way, from, to, &shared));
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a slow network is what was asked for"
)]
fn forward(
    generation: usize,
    way: Way,
    mut from: TcpStream,
    mut to: TcpStream,
    shared: &ProxyState,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        let (admitted, pause) = match shared.admit(generation, way, read) {
            Admitted::Forward(admitted, pause) => (admitted, pause),
            Admitted::Forget => continue,
            Admitted::Cut => break,
        };
        if !pause.is_zero() {
            thread::sleep(pause);
        }
        if to.write_all(&buffer[..admitted]).is_err() {
            break;
        }
        if admitted < read {
            shared.update(Switches::cut);
            break;
        }
    }
    if shared.lock().generation != generation {
        // The other end must not notice it.
        return;
    }
    // The other direction ends with this one; it may have ended already.
    from.shutdown(Shutdown::Both).ok();
    to.shutdown(Shutdown::Both).ok();
}
