//! The receiving end.

mod ledger;
mod position;
mod state;
#[cfg(test)]
mod tests;
mod worker;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use baler_common::transport::{
    ChunkReader, Failure, Order, ReaderCapability, ReaderCloseReport, ReaderStats, Received,
    Settled, Token, TransportError, Verdict,
};

use crate::SCHEME;
use crate::client;
use crate::config::{AmqpConfig, QueueType, TapTarget};
use ledger::Ledger;
use position::StreamPosition;
pub(crate) use position::{lock_beside, open_file};
use state::ReaderState;

/// Reads chunks from a queue, alone or beside other readers that share its chunks, or from a
/// stream, all of it for itself.
///
/// One thread with a runtime in it connects, and connects again when the connection or the
/// consumer is lost (the client library has another one for the socket). What was handed out then
/// is stale, and comes again.
#[derive(Debug)]
pub struct AmqpReader {
    capability: ReaderCapability,
    shared: Arc<ReaderState>,
    thread: Option<JoinHandle<()>>,
}

impl AmqpReader {
    /// Starts to read. The broker need not be there yet.
    ///
    /// # Errors
    ///
    /// The configuration names no queue or one for each lane, or no thread can be started.
    pub fn new(config: AmqpConfig) -> Result<Self, TransportError> {
        let endpoint = config.to_string();
        let impossible = |message: &str| Failure::last("read from", message).at(&endpoint);
        let Some(queue) = config.names.queue.clone() else {
            return Err(impossible("a reader needs the setting queue"));
        };
        // A tap has one queue for all lanes.
        if config.names.lanes.is_some() && config.tap_target != Some(TapTarget::Exchange) {
            let message = format!(
                "with lane_queues each lane has a queue of its own; name one of them, without lane_queues: \
                 queue={queue}.0"
            );
            return Err(impossible(&message));
        }
        let mut capability = ReaderCapability::new(SCHEME, Order::PerLane);
        capability.max_chunk_bytes =
            NonZeroUsize::try_from(config.max_chunk_bytes).unwrap_or(NonZeroUsize::MAX);
        let max_chunk_bytes = capability.max_chunk_bytes.get();
        let ledger = match config.queue_type {
            QueueType::Stream => Ledger::of_stream(StreamPosition::from(config.start)),
            QueueType::Classic | QueueType::Quorum => Ledger::default(),
        };
        let shared = Arc::new(ReaderState::new(&endpoint, &queue, max_chunk_bytes, ledger));
        let (ours, config) = (Arc::clone(&shared), Arc::new(config));
        let thread = client::spawn("baler-amqp-read", move || worker::run(ours, config, queue));
        let thread = thread.map_err(|failure| failure.at(&endpoint))?;
        Ok(Self {
            capability,
            shared,
            thread: Some(thread),
        })
    }

    /// What happened so far.
    pub fn counts(&self) -> AmqpReaderCounts {
        self.shared.counts()
    }

    fn disconnect(&mut self, by: Instant) {
        self.shared.stop(by);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }
}

impl ChunkReader for AmqpReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.shared.set_demand(chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        self.shared.receive(by)
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        Ok(self.shared.settle(token, verdict))
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.shared.waits_for()
    }

    fn stats(&self) -> ReaderStats {
        self.shared.stats()
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        self.disconnect(by);
        let (unsettled, error) = self.shared.end();
        ReaderCloseReport { unsettled, error }
    }
}

impl Drop for AmqpReader {
    fn drop(&mut self) {
        self.disconnect(Instant::now());
    }
}

/// What happened at a reader since it was made, over all its connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct AmqpReaderCounts {
    /// Connections that were made, and everything declared on them.
    pub connections: u64,
    /// Messages that the broker delivered, repetitions included.
    pub delivered: u64,
    /// Those of them that the broker says it delivered before.
    pub redelivered: u64,
    /// How often a message was delivered before at most (`x-delivery-count`, of quorum queues).
    pub max_delivery_count: u64,
    /// Messages that a stream no longer had when they were due, by its limits.
    pub gone: u64,
    /// Messages above the limit, which were rejected.
    pub damaged: u64,
    /// How often a connection was lost, could not be made, or the broker cancelled the consumer.
    pub failures: u64,
}
