//! The receiving end.

mod connection;
mod link;
mod listener;
mod state;

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::non_zero;
use baler_common::number::to_u64;
use baler_common::transport::{
    self, ChunkReader, Delivery, Failure, Order, ReaderCapability, ReaderCloseReport, Received,
    Settled, Token, TransportError, Verdict, panic_text,
};
use tokio::runtime;
use tokio::sync::watch;

use crate::adaptive::Bridge;
use crate::config::KiekerTcpConfig;
use crate::{SCHEME, schema, time_left};
use state::{Event, Pending, ReaderState};

pub use state::ReaderStats;

/// Listens, and makes chunks of the records of many senders of Kieker.
///
/// One thread serves all connections. While chunks that wait for the owner or for its verdict take
/// all the memory, TCP holds the senders back.
#[derive(Debug)]
pub struct KiekerTcpReader {
    endpoint: Box<str>,
    address: SocketAddr,
    registry_address: Option<SocketAddr>,
    capability: ReaderCapability,
    state: Arc<ReaderState>,
    events: Receiver<Event>,
    /// Chunks that were received and not handed out. Chunks that were given back come first.
    ready: VecDeque<Pending>,
    handed_out: HashMap<Token, Pending>,
    demand: usize,
    next_token: u64,
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
}

impl KiekerTcpReader {
    /// Listens at the configured address, and at the second port if there is one.
    ///
    /// # Errors
    ///
    /// An address is taken, or does not belong to this machine; trying again may help. Or the
    /// schema cannot be read, which is final.
    pub fn bind(config: KiekerTcpConfig) -> Result<Self, TransportError> {
        Self::bind_with(config, Arc::default())
    }

    /// As [`bind`](Self::bind). The patterns of `bridge` switch the probes of senders that speak the
    /// [adaptive protocol](crate::adaptive); without patterns all of them are active.
    ///
    /// # Errors
    ///
    /// As [`bind`](Self::bind).
    pub fn bind_with(config: KiekerTcpConfig, bridge: Arc<Bridge>) -> Result<Self, TransportError> {
        let endpoint: Box<str> = config.to_string().into();
        let fail = |error| Failure::of_io("listen at", &error).at(&endpoint);
        let catalog = schema::catalog(config.schema.as_deref());
        let catalog = catalog.map_err(|failure| failure.at(&endpoint))?;
        let listen = |port| {
            let listener = TcpListener::bind((&*config.host, port))?;
            listener.set_nonblocking(true)?;
            let address = listener.local_addr()?;
            io::Result::Ok((listener, address))
        };
        let (listener, address) = listen(config.port).map_err(fail)?;
        let registry = config.registry_port.map(listen).transpose().map_err(fail)?;
        let registry_address = registry.as_ref().map(|(_, address)| *address);
        let registry = registry.map(|(listener, _)| listener);
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(fail)?;
        let mut capability = ReaderCapability::new(SCHEME, Order::PerLane);
        capability.redelivers = false;
        capability.max_chunk_bytes = non_zero!(16 << 20);
        let (sender, events) = channel();
        let state = Arc::new(ReaderState::new(&config, catalog, bridge, sender));
        let (stop, stopped) = watch::channel(false);
        let serving = Arc::clone(&state);
        let thread = thread::Builder::new()
            .name("baler-kieker-serve".into())
            .spawn(move || {
                runtime.block_on(listener::listen(
                    listener, registry, config, serving, stopped,
                ));
            })
            .map_err(fail)?;
        Ok(Self {
            endpoint,
            address,
            registry_address,
            capability,
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
    /// operating system chose.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Returns the address at which the reader listens for strings, if senders have two sockets.
    pub fn registry_addr(&self) -> Option<SocketAddr> {
        self.registry_address
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> ReaderStats {
        self.state.stats()
    }

    /// Hands out the oldest chunk, if the demand allows it.
    fn hand_out(&mut self) -> Option<Delivery> {
        if self.handed_out.len() >= self.demand {
            return None;
        }
        let pending = self.ready.pop_front()?;
        let token = Token(self.next_token);
        self.next_token = self.next_token.wrapping_add(1);
        let delivery = pending.delivery(token);
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

    fn stop(&mut self) {
        self.stop.send_replace(true);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }
}

impl ChunkReader for KiekerTcpReader {
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
            match self.events.recv_timeout(time_left(by)) {
                Ok(Event::Chunk(pending)) => self.ready.push_back(pending),
                Ok(Event::Report { report, .. }) => {
                    let damaged = report.map_err(|failure| failure.at(&self.endpoint))?;
                    return Ok(Received::Damaged(damaged));
                }
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
        if verdict == Verdict::Retry {
            pending.redelivered = true;
            let later = |it: &Pending| it.arrival > pending.arrival;
            let place = self.ready.iter().position(later);
            let place = place.unwrap_or(self.ready.len());
            self.ready.insert(place, pending);
        }
        Ok(Settled::Done)
    }

    fn waits_for(&self) -> Option<&'static str> {
        // A listener cannot know whether records are in flight.
        (self.state.stats().connections == 0).then_some("sender")
    }

    fn stats(&self) -> transport::ReaderStats {
        let mut stats = transport::ReaderStats::default();
        stats.unreported = self.state.stats().damaged_untold;
        stats
    }

    fn close(mut self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        self.stop();
        let is_damage = |event: &Event| matches!(event, Event::Report { report: Ok(_), .. });
        let unreported = self.events.try_iter().filter(is_damage).count();
        ReaderCloseReport {
            unsettled: self.handed_out.len(),
            unreported: to_u64(unreported),
            error: None,
        }
    }
}

impl Drop for KiekerTcpReader {
    fn drop(&mut self) {
        self.stop();
    }
}
