//! The receiving end.

mod answer;
mod server;
mod socket;
mod state;

use std::collections::{HashMap, VecDeque};
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::{Instant, SystemTime};

use baler_common::transport::{
    ChunkIdentity, ChunkReader, Delivery, Epoch, Failure, Order, ProducerId, ReaderCapability,
    ReaderCloseReport, ReaderStats, Received, Settled, Token, TransportError, Verdict, panic_text,
};
use rustls::DEFAULT_VERSIONS;
use tokio::runtime;
use tokio::sync::watch;

use crate::SCHEME;
use crate::config::OtlpReaderConfig;
use crate::protocol::{ALPN_HTTP1, ALPN_HTTP2};
use socket::Socket;
use state::{Event, Pending, ReaderState};

/// Listens, and makes chunks of the requests of senders of OTLP, by gRPC and by HTTP.
///
/// One thread serves all connections, and another decodes. A request is answered after all of its chunks are settled.
#[derive(Debug)]
pub struct OtlpReader {
    endpoint: Box<str>,
    address: Option<SocketAddr>,
    capability: ReaderCapability,
    state: Arc<ReaderState>,
    events: Receiver<Event>,
    /// Chunks that were received and not handed out. Chunks that were given back come first.
    ready: VecDeque<Pending>,
    handed_out: HashMap<Token, Pending>,
    demand: usize,
    next_token: u64,
    /// The deadline of closing; none while the reader is open.
    stop: watch::Sender<Option<Instant>>,
    thread: Option<JoinHandle<()>>,
}

impl OtlpReader {
    /// Listens at the configured address.
    ///
    /// # Errors
    ///
    /// The address or the path is taken, or does not belong to this machine; trying again may help.
    /// Or a file for TLS cannot be used.
    pub fn bind(config: OtlpReaderConfig) -> Result<Self, TransportError> {
        let endpoint: Box<str> = config.to_string().into();
        let fail = |error| Failure::of_io("listen at", &error).at(&endpoint);
        let acceptor = match &config.tls {
            None => None,
            Some(files) => {
                let tls = files.server(fs::read, DEFAULT_VERSIONS);
                let mut tls = tls.map_err(|failure| failure.at(&endpoint))?;
                let protocols = [ALPN_HTTP2, ALPN_HTTP1].map(<[u8]>::to_vec);
                Arc::make_mut(&mut tls).alpn_protocols = protocols.into();
                Some(tls.into())
            }
        };
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fail)?;
        let socket = {
            let _context = runtime.enter();
            Socket::bind(&config.place).map_err(fail)?
        };
        let address = socket.local_addr().map_err(fail)?;
        let (sender, events) = channel();
        // Each reader is a producer of its own.
        let epoch = Epoch::at(SystemTime::now());
        let first = ChunkIdentity::first(ProducerId::random(), epoch, 0);
        let state = Arc::new(ReaderState::new(&config, first, sender));
        let (stop, stopped) = watch::channel(None);
        let serving = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("baler-otlp-serve".into())
            .spawn(move || {
                let max_connections = config.max_connections.get();
                let serving = server::listen(socket, acceptor, max_connections, serving, stopped);
                runtime.block_on(serving);
                // Do not wait for a request that is decoded in vain.
                runtime.shutdown_background();
            })
            .map_err(fail)?;
        Ok(Self {
            endpoint,
            address,
            capability: ReaderCapability::new(SCHEME, Order::Unordered),
            state,
            events,
            ready: VecDeque::new(),
            handed_out: HashMap::new(),
            demand: usize::MAX,
            next_token: 0,
            stop,
            thread: Some(thread),
        })
    }

    /// Returns the address at which the reader listens. For port 0 it has the port that the
    /// operating system chose. A Unix socket has none.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Hands out the oldest chunk, if the demand allows it.
    fn hand_out(&mut self) -> Option<Delivery> {
        if self.handed_out.len() >= self.demand {
            return None;
        }
        let pending = self.ready.pop_front()?;
        let token = Token(self.next_token);
        self.next_token += 1;
        let delivery = pending.delivery(token, &self.endpoint);
        self.handed_out.insert(token, pending);
        Some(delivery)
    }

    /// Returns why the thread has ended although the reader is open. Nobody starts it again.
    fn ended(&mut self) -> Failure {
        match self.thread.take().map(JoinHandle::join) {
            Some(Err(panic)) => {
                let message = format!("this end panicked: {}", panic_text(panic.as_ref()));
                Failure::last("listen at", message)
            }
            _ => Failure::last("listen at", "its thread has ended"),
        }
    }

    /// Tells the senders of all unsettled chunks to send them again, and ends the thread.
    fn stop(&mut self, by: Instant) {
        self.state.is_closing.store(true, Ordering::Release);
        self.ready.clear();
        self.handed_out.clear();
        drop(std::mem::replace(&mut self.events, channel().1));
        self.stop.send_replace(Some(by));
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }
}

impl ChunkReader for OtlpReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        loop {
            if let Some(delivery) = self.hand_out() {
                return Ok(Received::Chunk(delivery));
            }
            let left = by.saturating_duration_since(Instant::now());
            match self.events.recv_timeout(left) {
                Ok(Event::Chunk(pending)) => self.ready.push_back(pending),
                Ok(Event::Failed(failure)) => return Err(failure.at(&self.endpoint)),
                Err(_) if self.thread.as_ref().is_some_and(JoinHandle::is_finished) => {
                    return Err(self.ended().at(&self.endpoint));
                }
                Err(_) => return Ok(Received::Idle),
            }
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let Some(mut pending) = self.handed_out.remove(&token) else {
            return Ok(Settled::Stale);
        };
        match verdict {
            Verdict::Ack | Verdict::Reject => pending.settle(),
            Verdict::Retry => {
                pending.redelivered = true;
                let later = |it: &Pending| it.sequence() > pending.sequence();
                let place = self.ready.iter().position(later);
                let place = place.unwrap_or(self.ready.len());
                self.ready.insert(place, pending);
            }
        }
        Ok(Settled::Done)
    }

    fn waits_for(&self) -> Option<&'static str> {
        // A listener cannot know whether records are in flight.
        self.state.counts.all().is_empty().then_some("sender")
    }

    fn stats(&self) -> ReaderStats {
        let mut stats = ReaderStats::default();
        stats.counts = self.state.counts.all();
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        let unsettled = self.handed_out.len();
        self.stop(by);
        ReaderCloseReport {
            unsettled,
            ..ReaderCloseReport::default()
        }
    }
}

impl Drop for OtlpReader {
    fn drop(&mut self) {
        self.stop(Instant::now());
    }
}
