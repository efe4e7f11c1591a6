//! The receiving end.

mod admission;
mod claims;
mod connection;
mod progress;
mod state;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::transport::{
    self, ChunkReader, Failure, Order, ReaderCapability, ReaderCloseReport, Received, Settled,
    Token, TransportError, Verdict,
};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::{runtime, time};

use crate::SCHEME;
use crate::config::TcpConfig;
#[cfg(feature = "tls")]
use crate::tls;
use admission::Settings;
use state::ReaderState;
pub use state::ReaderStats;

/// The pause after a connection could not be accepted, for example for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(100);

/// Listens, and receives the chunks of many [`TcpWriter`](crate::TcpWriter)s.
///
/// One thread serves all connections. It reads no more than its memory and the senders' windows
/// allow. It acknowledges a chunk once the owner has settled this chunk and all chunks before it of
/// the same connection.
#[derive(Debug)]
pub struct TcpReader {
    endpoint: Box<str>,
    address: SocketAddr,
    capability: ReaderCapability,
    state: Arc<ReaderState>,
    /// The deadline of closing; none while the reader is open.
    stop: watch::Sender<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpReader {
    /// Listens at the configured address.
    ///
    /// # Errors
    ///
    /// The address is taken, or does not belong to this machine; trying again may help. Or the
    /// token's file, or a file for TLS, cannot be used.
    pub fn bind(config: TcpConfig) -> Result<Self, TransportError> {
        let endpoint: Box<str> = config.to_string().into();
        // Find a wrong token at the start, not at the first sender.
        config
            .read_token()
            .map_err(|failure| failure.at(&endpoint))?;
        #[cfg(feature = "tls")]
        let acceptor = match &config.tls {
            Some(files) => Some(tls::acceptor(files).map_err(|failure| failure.at(&endpoint))?),
            None => None,
        };
        let fail = |error: std::io::Error| Failure::of_io("listen at", &error).at(&endpoint);
        let listener =
            TcpListener::bind((config.host.name.as_ref(), config.port())).map_err(fail)?;
        listener.set_nonblocking(true).map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fail)?;
        let mut capability = ReaderCapability::new(SCHEME, Order::PerLane);
        if let Ok(bytes) = config.max_chunk_bytes.try_into() {
            capability.max_chunk_bytes = bytes;
        }
        let state = Arc::new(ReaderState::new(&config));
        let (stop, stopped) = watch::channel(None);
        let serving = Arc::clone(&state);
        let settings = Arc::new(Settings {
            config,
            #[cfg(feature = "tls")]
            acceptor,
        });
        let thread = thread::Builder::new()
            .name("baler-tcp-serve".into())
            .spawn(move || {
                let listening = listen(listener, &settings, &serving, stopped);
                let served = Failure::catching("listen at", || runtime.block_on(listening));
                if let Err(failure) = served {
                    // Nobody starts the thread again.
                    serving.push_failure(Failure::last(failure.operation, failure.message));
                }
            })
            .map_err(fail)?;
        Ok(Self {
            endpoint,
            address,
            capability,
            state,
            stop,
            thread: Some(thread),
        })
    }

    /// Returns the address at which the reader listens. For port 0 it has the port that the
    /// operating system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> ReaderStats {
        self.state.stats()
    }

    /// Returns a function that returns the counts, for use while the reader has another owner.
    pub fn stats_handle(&self) -> impl Fn() -> ReaderStats + Send + Sync + use<> {
        let state = Arc::clone(&self.state);
        move || state.stats()
    }

    /// Stops the thread that serves the connections, by this time.
    fn stop(&mut self, by: Instant) {
        self.stop.send_replace(Some(by));
        if let Some(thread) = self.thread.take() {
            // A panic was caught and reported.
            drop(thread.join());
        }
    }
}

impl ChunkReader for TcpReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.state.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        self.state
            .receive(by)
            .map_err(|failure| failure.at(&self.endpoint))
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        Ok(self.state.settle(token, verdict))
    }

    fn waits_for(&self) -> Option<&'static str> {
        // A listener cannot know whether chunks are in flight.
        (self.state.stats().connections == 0).then_some("sender")
    }

    fn stats(&self) -> transport::ReaderStats {
        let mut stats = transport::ReaderStats::default();
        stats.unreported = self.state.stats().damaged_untold;
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        let unsettled = self.state.unsettled();
        self.stop(by);
        ReaderCloseReport {
            unsettled,
            unreported: self.state.waiting_damage(),
            error: None,
        }
    }
}

impl Drop for TcpReader {
    fn drop(&mut self) {
        self.stop(Instant::now());
    }
}

/// Accepts and serves connections until the reader stops.
async fn listen(
    listener: TcpListener,
    settings: &Arc<Settings>,
    state: &Arc<ReaderState>,
    mut stop: watch::Receiver<Option<Instant>>,
) {
    let listener = match tokio::net::TcpListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return state.push_failure(Failure::of_io("listen at", &error)),
    };
    let most = settings.config.max_connections.get();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            // A change and the end of the channel both mean that the reader stops.
            _ = stop.changed() => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) if connections.len() < most => {
                    let serving = connection::serve(
                        stream,
                        peer,
                        Arc::clone(settings),
                        Arc::clone(state),
                        stop.clone(),
                    );
                    connections.spawn(serving);
                }
                Ok(_) => state.count(|stats| stats.connections_turned_away += 1),
                Err(error) => {
                    state.push_failure(Failure::of_io("accept at", &error));
                    time::sleep(PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    let by = stop.borrow().unwrap_or_else(Instant::now);
    let farewells = async { while connections.join_next().await.is_some() {} };
    // Connections that have not ended by then are cut.
    time::timeout_at(by.into(), farewells).await.ok();
}
