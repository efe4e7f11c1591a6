//! The receiving end.

mod landmark;
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
    ChunkReader, Failure, LaneLag, Order, ReaderCapability, ReaderCloseReport, ReaderStats,
    Received, Settled, Token, TransportError, Verdict,
};

use crate::SCHEME;
use crate::client;
use crate::config::{AmqpConfig, QueueType, TapTarget};
use ledger::Ledger;
use position::StreamPosition;
pub use state::AmqpReaderCounts;
use state::ReaderState;

/// Reads chunks from a queue or from a stream. The readers of a queue share its chunks; each reader
/// of a stream gets all of them.
///
/// One thread with its own runtime connects, and connects again when the connection or the consumer
/// is lost. The client library has another thread for the socket. After a loss the chunks that were
/// handed out are stale, and come again.
#[derive(Debug)]
pub struct AmqpReader {
    capability: ReaderCapability,
    shared: Arc<ReaderState>,
    thread: Option<JoinHandle<()>>,
}

impl AmqpReader {
    /// Starts to read. The broker may be away.
    ///
    /// # Errors
    ///
    /// The configuration names no queue or a queue for each lane, or no thread can be started.
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
        let failing = Arc::clone(&shared);
        let thread = client::spawn(
            "baler-amqp-read",
            "read from",
            move || worker::run(ours, config),
            move |failure| {
                // Nobody starts the thread again.
                failing.fail(Failure::last(failure.operation, failure.message));
            },
        );
        let thread = thread.map_err(|failure| failure.at(&endpoint))?;
        Ok(Self {
            capability,
            shared,
            thread: Some(thread),
        })
    }

    /// The events so far.
    pub fn counts(&self) -> AmqpReaderCounts {
        self.shared.lock().counts
    }

    fn disconnect(&mut self, by: Instant) {
        self.shared.order(|state| state.stop = Some(by));
        if let Some(thread) = self.thread.take() {
            // A panic was caught and reported.
            drop(thread.join());
        }
    }
}

impl ChunkReader for AmqpReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.shared.order(|state| state.demand = chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        self.shared.receive(by)
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        Ok(self.shared.settle(token, verdict))
    }

    fn waits_for(&self) -> Option<&'static str> {
        let state = self.shared.lock();
        match (state.connected, state.prefetch) {
            (false, _) => Some("broker"),
            (true, 0) => Some("queue"),
            // The broker does not say that a queue is empty. But it delivers at once to a consumer
            // that has subscribed.
            (true, _) => None,
        }
    }

    fn stats(&self) -> ReaderStats {
        let state = self.shared.lock();
        let mut stats = ReaderStats::default();
        stats.reconnects = state.counts.connections.saturating_sub(1);
        stats.removals = state.counts.removals;
        stats.removed = state.counts.gone;
        stats.connected = Some(state.connected);
        stats.lag.extend(state.lag().map(|chunks| LaneLag {
            lane: self.shared.queue.clone(),
            chunks,
        }));
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        self.disconnect(by);
        let state = self.shared.lock();
        let failure = state.close_failure.as_ref();
        ReaderCloseReport {
            unsettled: state.ledger.handed(),
            error: failure.map(|failure| failure.at(&self.shared.endpoint)),
            unreported: 0,
        }
    }
}

impl Drop for AmqpReader {
    fn drop(&mut self) {
        self.disconnect(Instant::now());
    }
}
