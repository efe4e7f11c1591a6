//! A proxy before a Kafka cluster.

mod protocol;
mod relay;
mod sasl;
mod splice;
mod tls;

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::{FaultError, TcpProxy};
pub use sasl::KafkaSasl;
pub use tls::KafkaTls;

/// Stands before a Kafka cluster: has a [`TcpProxy`] before each broker, and names those instead of
/// the brokers in every answer, so that no client goes past it.
///
/// Its switches are those of [`TcpProxy`], for all brokers, those that are found later included.
/// Where it speaks TLS, they concern the bytes as they are on the wire.
/// Versions of requests whose answers would name brokers elsewhere (KIP-951) are not offered.
#[derive(Debug)]
pub struct KafkaProxy {
    bootstrap_servers: String,
    shared: Arc<KafkaProxyState>,
}

/// What clients must do before a proxy hears them; by default nothing. Brokers are asked for none of
/// it.
#[derive(Debug, Clone, Default)]
pub struct KafkaSecurity {
    /// Speak TLS to it.
    pub tls: Option<KafkaTls>,
    /// Authenticate.
    pub sasl: Option<KafkaSasl>,
}

/// What the threads share.
#[derive(Debug, Default)]
struct KafkaProxyState {
    tls: Option<Arc<rustls::ServerConfig>>,
    sasl: Option<KafkaSasl>,
    state: Mutex<Fronts>,
}

#[derive(Debug, Default)]
struct Fronts {
    /// By the host and port that the cluster names.
    fronts: BTreeMap<(String, u16), Front>,
    switches: Switches,
    closed: bool,
}

/// What was switched, for brokers that are found later.
#[derive(Debug, Clone, Copy, Default)]
struct Switches {
    frozen: bool,
    delay: Duration,
    bytes_per_second: Option<u64>,
    throttle: Duration,
}

/// What stands before a broker: the proxy that misbehaves, and behind it the relay that renames.
#[derive(Debug)]
struct Front {
    proxy: TcpProxy,
    relay: SocketAddr,
}

impl KafkaProxy {
    /// Starts before the brokers at `host:port,host:port`, in plain text.
    ///
    /// # Errors
    ///
    /// A broker is malformed, or no port of the loopback can be listened on.
    pub fn start(bootstrap_servers: &str) -> Result<Self, FaultError> {
        Self::before(bootstrap_servers, KafkaProxyState::default())
    }

    /// Starts before the brokers at `host:port,host:port`, to which it speaks plain text.
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

    /// Where to connect to: `127.0.0.1:port`, once for each broker, with commas between.
    pub fn bootstrap_servers(&self) -> &str {
        &self.bootstrap_servers
    }

    /// Resets every connection.
    pub fn cut(&self) {
        self.shared.each(TcpProxy::cut);
    }

    /// Lets the connections of now stand still for good without an end, while new ones work.
    pub fn abandon(&self) {
        self.shared.each(TcpProxy::abandon);
    }

    /// Cuts the connections of each broker after this many more bytes towards it: in the middle of a
    /// frame, as it happens.
    pub fn cut_after(&self, bytes: u64) {
        self.shared.each(|proxy| proxy.cut_after(bytes));
    }

    /// While frozen, nothing is forwarded either way and nothing breaks: half-open connections. What
    /// clients send meanwhile is swallowed by the buffers of the operating system, and forwarded
    /// once it thaws.
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

    /// Holds clients back as brokers do whose quota they exceed (KIP-219): answers to requests that
    /// bring or fetch messages come at once and say for how long (`throttle_time_ms`), and the
    /// connection is not read from for that time, in whole milliseconds. Zero ends it.
    pub fn set_throttle(&self, time: Duration) {
        self.shared.lock().switches.throttle = time;
    }

    /// How many connections were forwarded so far.
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
        // Each ends its connections as it is dropped.
        for front in std::mem::take(&mut state.fronts).into_values() {
            // Wakes the thread that accepts; if this fails it is not waiting.
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

    /// Where clients find a broker; it gets a front if it has none.
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

    /// What to name instead of a broker.
    fn instead_of(self: &Arc<Self>, host: &str, port: i32) -> Option<(String, u16)> {
        let address = self.front(host, u16::try_from(port).ok()?).ok()?;
        Some((address.ip().to_string(), address.port()))
    }

    /// For how long clients are held back after each answer.
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
        // A broker that is away ends the connection, as one that dies does.
        if let (Ok(client), Ok(broker)) = (client, TcpStream::connect((&**host, *port))) {
            let shared = Arc::clone(shared);
            thread::spawn(move || shared.serve(client, &broker));
        }
    }
}
