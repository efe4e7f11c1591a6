//! The sending end.

mod answer;
mod bell;
mod counts;
mod line;
mod link;
mod publish;
mod state;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Failure, Notify, Order,
    Rejected, TransportError, WriterStats,
};

use crate::SCHEME;
use crate::config::{AmqpConfig, QueueType};
use crate::connect;
use crate::error::broker_limit;
pub use counts::AmqpWriterCounts;
use link::Link;

/// Publishes chunks to a queue or an exchange, each as one persistent message, and confirms what
/// the broker confirmed.
///
/// A connection has one thread with a runtime in it (the client library has another one for the
/// socket). Neither blocks [`offer`](ChunkWriter::offer), and both end with the connection.
/// The calling thread puts a chunk on its way itself, and takes the answers to those before; the
/// writer's own thread sleeps unless somebody waits for an answer.
pub struct AmqpWriter {
    config: Arc<AmqpConfig>,
    endpoint: Box<str>,
    capability: Capability,
    link: Arc<Link>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for AmqpWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AmqpWriter")
            .field("endpoint", &self.endpoint)
            .finish_non_exhaustive()
    }
}

impl AmqpWriter {
    /// A writer to the configured queue or exchange; like every writer it starts closed, and the
    /// broker need not be there yet.
    pub fn new(config: AmqpConfig) -> Self {
        // A confirmed message of a classic queue is on disk (it is persistent), one of the others
        // on a quorum of the nodes. Which kind an exchange leads to is its owner's to know.
        let durability = match (config.queue_type, &config.names.queue) {
            (QueueType::Quorum | QueueType::Stream, Some(_)) => Durability::Replicated,
            _ => Durability::Disk,
        };
        let mut capability = Capability::new(SCHEME, Order::PerLane, durability);
        capability.max_chunk_bytes =
            NonZeroUsize::try_from(config.max_chunk_bytes).unwrap_or(NonZeroUsize::MAX);
        config.window.apply(&mut capability);
        Self {
            endpoint: config.to_string().into(),
            config: Arc::new(config),
            capability,
            link: Arc::default(),
            thread: None,
        }
    }

    /// What happened so far.
    pub fn counts(&self) -> AmqpWriterCounts {
        self.link.counts()
    }

    /// Ends the connection, if there is one, and its thread, which may say good-bye until `by`.
    fn disconnect(&mut self, by: Instant) {
        self.link.stop(by);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has ended as well.
            drop(thread.join());
        }
    }

    fn connect(&mut self, by: Instant) -> Result<(), Failure> {
        let (opened, opening) = mpsc::sync_channel(1);
        self.link.reset();
        let (link, config) = (Arc::clone(&self.link), Arc::clone(&self.config));
        self.thread = Some(connect::spawn("baler-amqp-send", move || {
            publish::run(link, config, opened, by)
        })?);
        let left = by.saturating_duration_since(Instant::now());
        match opening.recv_timeout(left) {
            Ok(result) => result,
            Err(RecvTimeoutError::Timeout) => {
                Err(Failure::retry("connect to", "no answer in time"))
            }
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::retry("connect to", "the connecting thread ended"))
            }
        }
    }
}

impl ChunkWriter for AmqpWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if let Some(failure) = self.link.failure() {
            return Err(Rejected::broken(chunk, failure.at(&self.endpoint)));
        }
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        self.link.offer(chunk, &self.capability)
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        match self.link.confirmations(out, &self.endpoint) {
            None => Ok(()),
            Some(failure) => Err(failure.at(&self.endpoint)),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.link.set_notify(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.link.set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        // The broker tells its limit only by closing the channel over a message above it, and not
        // which one that was: from now on such chunks are handed back as too large.
        let limit = self
            .link
            .failure()
            .and_then(|failure| broker_limit(&failure.message));
        if let Some(limit) = limit.and_then(NonZeroUsize::new) {
            let known = self.capability.max_chunk_bytes;
            self.capability.max_chunk_bytes = known.min(limit);
        }
        self.disconnect(Instant::now());
        self.connect(by).map_err(|failure| {
            self.link.fail(failure.clone());
            failure.at(&self.endpoint)
        })
    }

    fn stats(&self) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.blocked = self.link.counts().is_blocked;
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let error = self
            .link
            .drain(by)
            .map(|failure| failure.at(&self.endpoint));
        // What was not confirmed in time is not worth waiting for a good-bye.
        self.disconnect(if error.is_none() { by } else { Instant::now() });
        let mut report = CloseReport {
            error,
            ..CloseReport::default()
        };
        // Whether it is broken was told by the line above.
        self.link
            .confirmations(&mut report.confirmations, &self.endpoint);
        report.unconfirmed = self.link.unconfirmed();
        report
    }
}

impl Drop for AmqpWriter {
    fn drop(&mut self) {
        self.disconnect(Instant::now());
    }
}
