//! The receiving end.

mod claims;
mod connection;
mod counts;
mod progress;
#[cfg(test)]
mod schedules;
mod serve;
mod shared;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::transport::{
    ChunkReader, Order, ReaderCapability, ReaderCloseReport, Received, Settled, Token,
    TransportError, Verdict,
};
use tokio::runtime;
use tokio::sync::watch;

use crate::SCHEME;
use crate::config::TcpConfig;
use crate::error::failed;
#[cfg(feature = "tls")]
use crate::tls;
use connection::Settings;
pub use counts::TcpReaderCounts;
use shared::Shared;

/// Listens, and takes chunks of many [`TcpWriter`](crate::TcpWriter)s.
///
/// One thread serves all connections; it reads no more than its memory and the senders' windows
/// allow, and sends an acknowledgement once the owner has settled a chunk and every one before it
/// of the same connection.
#[derive(Debug)]
pub struct TcpReader {
    endpoint: Box<str>,
    address: SocketAddr,
    capability: ReaderCapability,
    shared: Arc<Shared>,
    /// When everything must be over, once that is known.
    stop: watch::Sender<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl TcpReader {
    /// Listens at the configured address.
    ///
    /// # Errors
    ///
    /// The address is taken, or not one of this machine: trying again may help. Or the file of the
    /// token, or one that TLS needs, cannot be used.
    pub fn bind(config: TcpConfig) -> Result<Self, TransportError> {
        let endpoint: Box<str> = config.to_string().into();
        if let Some(source) = &config.token {
            // A wrong token is found at the start, not at the first sender.
            source.read().map_err(|failure| failure.at(&endpoint))?;
        }
        #[cfg(feature = "tls")]
        let acceptor = match &config.tls {
            Some(files) => Some(tls::acceptor(files).map_err(|failure| failure.at(&endpoint))?),
            None => None,
        };
        let fail = |error: std::io::Error| failed("listen at", &error).at(&endpoint);
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
        let shared = Arc::new(Shared::new(&config));
        let (stop, stopped) = watch::channel(None);
        let serving = Arc::clone(&shared);
        let settings = Arc::new(Settings {
            config,
            #[cfg(feature = "tls")]
            acceptor,
        });
        let thread = thread::Builder::new()
            .name("baler-tcp-serve".into())
            .spawn(move || runtime.block_on(serve::serve(listener, &settings, &serving, stopped)))
            .map_err(fail)?;
        Ok(Self {
            endpoint,
            address,
            capability,
            shared,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens; tells the port when 0 was configured.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// What happened so far, and will; readable from any thread.
    pub fn counts(&self) -> Arc<TcpReaderCounts> {
        Arc::clone(&self.shared.counts)
    }

    /// Ends the thread that serves the connections, by this time.
    fn stop(&mut self, by: Instant) {
        self.stop.send_replace(Some(by));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }
}

impl ChunkReader for TcpReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.shared.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        self.shared
            .receive(by)
            .map_err(|failure| failure.at(&self.endpoint))
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        Ok(self.shared.settle(token, verdict))
    }

    fn waits_for(&self) -> Option<&'static str> {
        // What is on its way a listener cannot know.
        (self.shared.counts.connections() == 0).then_some("sender")
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        let unsettled = self.shared.unsettled();
        self.stop(by);
        ReaderCloseReport {
            unsettled,
            error: None,
        }
    }
}

impl Drop for TcpReader {
    fn drop(&mut self) {
        self.stop(Instant::now());
    }
}
