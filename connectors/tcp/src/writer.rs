//! The sending end.

mod connection;
mod state;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Instant;

use baler_common::number::to_usize;
use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Failure, Notify,
    Order, Rejected, TransportError,
};

use crate::SCHEME;
use crate::config::TcpConfig;
use crate::headers::{ConnectionLimits, Role};
use state::ConnectionState;

/// Sends chunks to one [`TcpReader`](crate::TcpReader).
///
/// Each connection has a thread, which writes all waiting chunks together and reads
/// acknowledgements. The thread never blocks [`offer`](ChunkWriter::offer), and ends with the
/// connection.
#[derive(Debug)]
pub struct TcpWriter {
    config: TcpConfig,
    capability: Capability,
    state: Arc<ConnectionState>,
    thread: Option<JoinHandle<()>>,
}

impl TcpWriter {
    /// Creates a writer to the receiver at the configured address. Like every writer it starts
    /// closed.
    pub fn new(config: TcpConfig) -> Self {
        let mut capability = Capability::new(SCHEME, Order::PerLane, Durability::Received);
        apply(&mut capability, config.hello(Role::Sender).limits);
        Self {
            capability,
            state: Arc::new(ConnectionState::new(&config.to_string())),
            thread: None,
            config,
        }
    }

    /// Ends the connection, if there is one, and its thread.
    fn disconnect(&mut self) {
        self.state.fail(Failure::retry("write to", "it was closed"));
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic was caught and reported.
            drop(thread.join());
        }
    }

    /// Starts the thread of a connection.
    fn connect(&mut self, by: Instant) -> Result<(), Failure> {
        let (config, state) = (self.config.clone(), Arc::clone(&self.state));
        let thread = thread::Builder::new()
            .name("baler-tcp-send".into())
            .spawn(move || {
                let run = || connection::run(&config, &state, by);
                if let Err(failure) = Failure::catching("write to", run).and_then(|ran| ran) {
                    state.fail(failure);
                }
            });
        self.thread = Some(thread.map_err(|error| Failure::of_io("set up", &error))?);
        Ok(())
    }
}

/// Puts the limits of a connection into a capability.
fn apply(capability: &mut Capability, limits: ConnectionLimits) {
    let nonzero = |value: u64| {
        let value = to_usize(value);
        NonZeroUsize::new(value).unwrap_or(NonZeroUsize::MIN)
    };
    capability.max_chunk_bytes = nonzero(u64::from(limits.max_chunk_bytes));
    capability.window_chunks = nonzero(u64::from(limits.window_chunks));
    capability.window_bytes = nonzero(limits.window_bytes);
}

impl ChunkWriter for TcpWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        self.state.writer.offer(chunk, &self.capability)?;
        self.state.work.notify_one();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.state.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.state.writer.notify().set(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.state.writer.notify().set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.disconnect();
        self.state.reset();
        let by = by.min(Instant::now() + self.config.connect_timeout);
        if let Err(failure) = self.connect(by) {
            self.state.fail(failure);
        }
        let writer = &self.state.writer;
        writer.opened(by, Instant::now())?;
        if let Some(limits) = writer.lock().medium.limits {
            apply(&mut self.capability, limits);
        }
        Ok(())
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let mut error = None;
        if self.thread.is_some() {
            self.state.writer.lock().medium.closing = true;
            self.state.work.notify_one();
            error = self.state.writer.drain(by, Instant::now());
            if error.is_none() {
                // Everything is acknowledged, so the socket has room for the last frame.
                self.join();
            }
        }
        self.disconnect();
        self.state.writer.close_report(error)
    }
}

impl Drop for TcpWriter {
    fn drop(&mut self) {
        self.disconnect();
    }
}
