//! The sending end.

mod state;
mod threads;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Notify, Order, Rejected,
    TransportError,
};

use crate::config::TcpConfig;
use crate::headers::{ConnectionLimits, Role};
use crate::{SCHEME, client};
use state::WriterState;

/// Sends chunks to one [`TcpReader`](crate::TcpReader).
///
/// A connection has two threads: one writes what was offered, as many chunks at a time as there
/// are; one reads acknowledgements, and finds out when the peer is gone.
/// Neither blocks [`offer`](ChunkWriter::offer), and both end with the connection.
pub struct TcpWriter {
    config: TcpConfig,
    endpoint: Box<str>,
    capability: Capability,
    state: Arc<WriterState>,
    /// The one that writes first.
    threads: Vec<JoinHandle<()>>,
}

impl fmt::Debug for TcpWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpWriter")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl TcpWriter {
    /// A writer to the receiver at the configured address; like every writer it starts closed.
    pub fn new(config: TcpConfig) -> Self {
        let mut capability = Capability::new(SCHEME, Order::PerLane, Durability::Received);
        apply(&mut capability, config.hello(Role::Sender).limits);
        Self {
            endpoint: config.to_string().into(),
            capability,
            state: Arc::default(),
            threads: Vec::new(),
            config,
        }
    }

    /// Ends the connection, if there is one, and its threads.
    fn disconnect(&mut self) {
        self.state.hang_up();
        for thread in self.threads.drain(..) {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }

    fn connect(&mut self, by: Instant) -> Result<(), TransportError> {
        let connected =
            client::connect(&self.config, by).map_err(|failure| failure.at(&self.endpoint))?;
        apply(&mut self.capability, connected.limits);
        let threads = state::start(&self.state, &connected, self.config.heartbeat);
        self.threads = threads.map_err(|failure| {
            self.state.hang_up();
            failure.at(&self.endpoint)
        })?;
        Ok(())
    }
}

/// Puts the limits of a connection into a capability.
fn apply(capability: &mut Capability, limits: ConnectionLimits) {
    let nonzero = |value: u64| {
        let value = usize::try_from(value).unwrap_or(usize::MAX);
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
        if let Some(failure) = self.state.failure() {
            return Err(Rejected::broken(chunk, failure.at(&self.endpoint)));
        }
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        self.state.offer(chunk, &self.capability)
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        match self.state.confirmations(out) {
            None => Ok(()),
            Some(failure) => Err(failure.at(&self.endpoint)),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.state.set_notify(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.state.set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.disconnect();
        self.state.forget();
        self.connect(by)
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let error = self
            .state
            .drain(by)
            .map(|failure| failure.at(&self.endpoint));
        if error.is_none() && !self.threads.is_empty() {
            // Everything is acknowledged, so there is room for the last frame.
            drop(self.threads.remove(0).join());
        }
        self.disconnect();
        let mut report = CloseReport {
            error,
            ..CloseReport::default()
        };
        // The report has the failure already.
        self.state.confirmations(&mut report.confirmations);
        report.unconfirmed = self.state.unconfirmed();
        report
    }
}

impl Drop for TcpWriter {
    fn drop(&mut self) {
        self.disconnect();
    }
}
