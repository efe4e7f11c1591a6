//! A proxy before a Kafka cluster.

mod protocol;
mod relay;
mod sasl;
mod tls;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::faults::{FaultError, TcpProxy};
pub use sasl::KafkaSasl;
pub use tls::KafkaTls;

/// Stands before a Kafka cluster, with a [`TcpProxy`] before each broker. Every answer names these
/// proxies instead of the brokers, so that no client bypasses them.
///
/// Its switches are the switches of [`TcpProxy`]. They apply to all brokers, including brokers that
/// are found later. With TLS they apply to the encrypted bytes. Versions of requests whose answers
/// would name brokers elsewhere (KIP-951) are not offered.
#[derive(Debug)]
pub struct KafkaProxy {
    bootstrap_servers: String,
    shared: Arc<KafkaProxyState>,
}

/// The security that a proxy demands of clients; by default none. Brokers need none of it.
#[derive(Debug, Clone, Default)]
pub struct KafkaSecurity {
    /// TLS between clients and the proxy.
    pub tls: Option<KafkaTls>,
    /// Authentication of clients.
    pub sasl: Option<KafkaSasl>,
}

/// The state that the threads share.
#[derive(Debug, Default)]
struct KafkaProxyState {
    tls: Option<Arc<rustls::ServerConfig>>,
    sasl: Option<KafkaSasl>,
    state: Mutex<Fronts>,
}

#[derive(Debug, Default)]
struct Fronts {
    /// The fronts, by the host and port that the cluster names.
    fronts: BTreeMap<(String, u16), Front>,
    switches: Switches,
    closed: bool,
}

/// The switches, for brokers that are found later.
#[derive(Debug, Clone, Copy, Default)]
struct Switches {
    frozen: bool,
    delay: Duration,
    bytes_per_second: Option<u64>,
    throttle: Duration,
}

/// The front of a broker: the proxy that misbehaves, and after it the relay that renames.
#[derive(Debug)]
struct Front {
    proxy: TcpProxy,
    relay: SocketAddr,
}

impl KafkaProxy {
    /// Starts a proxy before the brokers at `host:port,host:port`, in plain text.
    ///
    /// # Errors
    ///
    /// The address of a broker is malformed, or no port of the loopback can be opened.
    pub fn start(bootstrap_servers: &str) -> Result<Self, FaultError> {
        Self::before(bootstrap_servers, KafkaProxyState::default())
    }

    /// Starts a proxy before the brokers at `host:port,host:port`, to which it speaks plain text.
    ///
    /// # Errors
    ///
    /// As [`start`](Self::start), or the certificates cannot be used.
    pub fn start_secure(
        bootstrap_servers: &str,
        security: &KafkaSecurity,
    ) -> Result<Self, FaultError> {
        let tls = security.tls.as_ref().map(KafkaTls::server).transpose()?;
        let shared = KafkaProxyState {
            tls,
            sasl: security.sasl.clone(),
            ..KafkaProxyState::default()
        };
        Self::before(bootstrap_servers, shared)
    }

    fn before(bootstrap_servers: &str, shared: KafkaProxyState) -> Result<Self, FaultError> {
        let mut proxy = Self {
            bootstrap_servers: String::new(),
            shared: Arc::new(shared),
        };
        let mut names = Vec::new();
        for broker in bootstrap_servers.split(',') {
            let (host, port) = broker
                .rsplit_once(':')
                .and_then(|(host, port)| Some((host, port.parse().ok()?)))
                .ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))
                .map_err(FaultError::io(format!("find the broker {broker}")))?;
            let address = proxy.shared.front(host, port);
            let address = address.map_err(FaultError::io("listen on the loopback"))?;
            names.push(address.to_string());
        }
        proxy.bootstrap_servers = names.join(",");
        Ok(proxy)
    }

    /// Returns the addresses for clients: `127.0.0.1:port` for each broker, with commas between.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Ends every connection in both directions.
    pub fn cut(&self) {
        self.shared.each(TcpProxy::cut);
    }

    /// Lets the current connections stand still for good without an end, while new ones work.
    pub fn abandon(&self) {
        self.shared.each(TcpProxy::abandon);
    }

    /// Cuts the connections of each broker after this many more bytes towards it, perhaps in the
    /// middle of a frame.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.each(|proxy| proxy.cut_after(bytes));
    }

    /// Sets whether the proxy is frozen: nothing is forwarded either way and nothing breaks, as
    /// with half-open connections. The buffers of the operating system keep the bytes that clients
    /// send meanwhile. They are forwarded after the freeze.
    pub fn set_frozen(&self, frozen: bool) {
        self.shared.switch(|switches| switches.frozen = frozen);
    }

    /// Delays each piece that is forwarded.
    pub fn set_delay(&self, delay: Duration) {
        self.shared.switch(|switches| switches.delay = delay);
    }

    /// Bounds the rate of each direction of each connection.
    pub fn set_bytes_per_second(&self, rate: Option<u64>) {
        self.shared
            .switch(|switches| switches.bytes_per_second = rate);
    }

    /// Holds clients back as a broker does whose quota they exceed (KIP-219). Answers to requests
    /// that bring or fetch messages come at once and state the time (`throttle_time_ms`). The
    /// connection is not read for that time, in whole milliseconds. Zero ends it.
    pub fn set_throttle(&self, time: Duration) {
        self.shared.lock().switches.throttle = time;
    }

    /// Returns the number of connections that were forwarded so far.
    pub fn connections(&self) -> usize {
        let state = self.shared.lock();
        let fronts = state.fronts.values();
        fronts.map(|front| front.proxy.connections()).sum()
    }
}

impl Drop for KafkaProxy {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        // Each proxy ends its connections when it is dropped.
        for front in std::mem::take(&mut state.fronts).into_values() {
            // Wakes the thread that accepts. If this fails, the thread is not waiting.
            drop(TcpStream::connect(front.relay));
        }
    }
}

impl KafkaProxyState {
    fn lock(&self) -> MutexGuard<'_, Fronts> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn each(&self, act: impl Fn(&TcpProxy)) {
        for front in self.lock().fronts.values() {
            act(&front.proxy);
        }
    }

    fn switch(&self, change: impl FnOnce(&mut Switches)) {
        let mut state = self.lock();
        change(&mut state.switches);
        for front in state.fronts.values() {
            state.switches.set(&front.proxy);
        }
    }

    /// Returns the address at which clients find a broker. Creates a front if the broker has none.
    fn front(self: &Arc<Self>, host: &str, port: u16) -> io::Result<SocketAddr> {
        let mut state = self.lock();
        let name = (host.to_owned(), port);
        if let Some(front) = state.fronts.get(&name) {
            return Ok(front.proxy.address());
        }
        if state.closed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = listener.local_addr()?;
        let proxy = TcpProxy::start()?;
        proxy.set_target(Some(relay));
        state.switches.set(&proxy);
        let address = proxy.address();
        state.fronts.insert(name.clone(), Front { proxy, relay });
        drop(state);
        let shared = Arc::clone(self);
        thread::spawn(move || accept(&listener, &name, &shared));
        Ok(address)
    }

    /// Returns the host and port to name instead of a broker.
    fn instead_of(self: &Arc<Self>, host: &str, port: i32) -> Option<(String, u16)> {
        // An answer without a broker has an empty name.
        if host.is_empty() {
            return None;
        }
        let address = self.front(host, u16::try_from(port).ok()?).ok()?;
        Some((address.ip().to_string(), address.port()))
    }

    /// Returns the time for which clients are held back after each answer.
    fn throttle(&self) -> Duration {
        self.lock().switches.throttle
    }

    /// Serves a client's connection to a broker until one of them ends.
    fn serve(self: &Arc<Self>, client: TcpStream, broker: &TcpStream) -> io::Result<()> {
        let client = match &self.tls {
            Some(tls) => tls::decrypted(client, Arc::clone(tls))?,
            None => client,
        };
        relay::serve(&client, broker, self)
    }
}

impl Switches {
    fn set(self, proxy: &TcpProxy) {
        proxy.set_frozen(self.frozen);
        proxy.set_delay(self.delay);
        proxy.set_bytes_per_second(self.bytes_per_second);
    }
}

fn accept(listener: &TcpListener, broker: &(String, u16), shared: &Arc<KafkaProxyState>) {
    for client in listener.incoming() {
        if shared.lock().closed {
            return;
        }
        let (host, port) = broker;
        // A broker that is away ends the connection, like a broker that dies.
        if let (Ok(client), Ok(broker)) = (client, TcpStream::connect((&**host, *port))) {
            let shared = Arc::clone(shared);
            thread::spawn(move || shared.serve(client, &broker));
        }
    }
}
