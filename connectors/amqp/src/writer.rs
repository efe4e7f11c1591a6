//! The sending end. Each connection has one thread, which publishes chunks and takes the answers.
//!
//! ```text
//! owner: offer -> outgoing -+               +-> broker
//!                           | writer thread |
//! owner: confirmations <----+               +<- confirms
//! ```

pub(crate) mod publish;
mod state;
#[cfg(test)]
mod tests;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Failure, Notify,
    Order, Rejected, TransportError, WriterStats,
};
use lapin::Event;

use crate::SCHEME;
use crate::client::{self, Connected};
use crate::config::{AmqpConfig, QueueType};
use crate::error::{self, broker_limit};
use crate::headers;
use publish::InFlight;
pub use state::AmqpWriterCounts;
use state::{ConnectionState, overdue_at, take_outgoing};

/// Publishes chunks to a queue or an exchange, each as one persistent message. It confirms a chunk
/// when the broker has confirmed it.
///
/// A connection has one thread with its own runtime, which publishes and takes the answers. The
/// client library has another thread for the socket. Both end with the connection.
#[derive(Debug)]
pub struct AmqpWriter {
    config: Arc<AmqpConfig>,
    capability: Capability,
    shared: Arc<ConnectionState>,
    thread: Option<JoinHandle<()>>,
}

impl AmqpWriter {
    /// A writer to the configured queue or exchange. Like every writer it starts closed. The broker
    /// may be away.
    pub fn new(config: AmqpConfig) -> Self {
        // A confirmed message of a classic queue is on disk, since it is persistent. A quorum of the
        // nodes has one of the other queues. The queues of an exchange are unknown here.
        let durability = match (config.queue_type, &config.names.queue) {
            (QueueType::Quorum | QueueType::Stream, Some(_)) => Durability::Replicated,
            _ => Durability::Disk,
        };
        let mut capability = Capability::new(SCHEME, Order::PerLane, durability);
        capability.max_chunk_bytes =
            NonZeroUsize::try_from(config.max_chunk_bytes).unwrap_or(NonZeroUsize::MAX);
        config.window.apply(&mut capability);
        Self {
            shared: Arc::new(ConnectionState::unopened(config.to_string())),
            config: Arc::new(config),
            capability,
            thread: None,
        }
    }

    /// The events so far.
    pub fn counts(&self) -> AmqpWriterCounts {
        self.shared.counts()
    }

    /// Ends the connection, if there is one, and its thread. The thread may close it until `by`.
    fn disconnect(&mut self, by: Instant) {
        self.shared.stop(by);
        if let Some(thread) = self.thread.take() {
            // A panic was caught and reported.
            drop(thread.join());
        }
    }

    /// Starts the thread of a connection.
    fn connect(&mut self, by: Instant) -> Result<(), Failure> {
        let (shared, config) = (Arc::clone(&self.shared), Arc::clone(&self.config));
        let failing = Arc::clone(&shared);
        self.thread = Some(client::spawn(
            "baler-amqp-send",
            "publish to",
            move || async move { run(&shared, &config, by).await },
            move |failure| failing.writer.fail(failure),
        )?);
        Ok(())
    }
}

impl ChunkWriter for AmqpWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        self.shared.writer.offer(chunk, &self.capability)?;
        self.shared.work.notify_one();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.shared.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.shared.writer.notify().set(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.shared.writer.notify().set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        // The broker says its limit only when it closes the channel over a message above it. It does
        // not say which message. From now on the writer refuses such chunks as too large.
        let state = self.shared.writer.lock();
        let limit = state.failure().and_then(|it| broker_limit(&it.message));
        drop(state);
        if let Some(limit) = limit.and_then(NonZeroUsize::new) {
            let known = self.capability.max_chunk_bytes;
            self.capability.max_chunk_bytes = known.min(limit);
        }
        self.disconnect(Instant::now());
        self.shared.reset();
        if let Err(failure) = self.connect(by) {
            self.shared.writer.fail(failure);
        }
        self.shared.writer.opened(by, Instant::now())
    }

    fn stats(&self) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.blocked = self.shared.counts().is_blocked;
        stats
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let late = self.shared.writer.drain(by, Instant::now());
        let error = late.or_else(|| {
            let state = self.shared.writer.lock();
            let was_opened = state.medium.counts.connections > 0;
            let failure = state.failure().filter(|_| was_opened);
            failure.map(TransportError::again)
        });
        // If the confirmations took too long, the writer does not wait for the close either.
        self.disconnect(if error.is_none() { by } else { Instant::now() });
        self.shared.writer.close_report(error)
    }
}

impl Drop for AmqpWriter {
    fn drop(&mut self) {
        self.disconnect(Instant::now());
    }
}

/// Connects before `by` and opens the writer. Serves the connection until it is lost or stopped.
async fn run(shared: &ConnectionState, config: &AmqpConfig, by: Instant) {
    let connected = match client::connect_to_publish(config, "baler writer", by).await {
        Ok(connected) => connected,
        Err(failure) => return shared.writer.fail(failure),
    };
    let mut in_flight = InFlight::new(connected.channel.clone(), config);
    shared.open();
    let served = serve(shared, config, &connected, &mut in_flight).await;
    match served {
        // The owner has all reports already.
        Ok(by) => drop(connected.close(by).await),
        Err(failure) => {
            // Earlier answers still count. The first error is reported.
            drop(shared.take_answers(None, &mut in_flight));
            shared.writer.fail(failure);
        }
    }
}

/// Publishes and takes answers until it is stopped. Returns the deadline for closing the connection.
async fn serve(
    shared: &ConnectionState,
    config: &AmqpConfig,
    connected: &Connected,
    in_flight: &mut InFlight,
) -> Result<Instant, Failure> {
    let mut events = connected.connection.events_listener();
    loop {
        let (chunks, overdue) = {
            let mut state = shared.writer.lock();
            if let Some(by) = state.medium.stop {
                return Ok(by);
            }
            let chunks = take_outgoing(&mut state);
            (chunks, overdue_at(&state, in_flight.oldest(), config))
        };
        if !chunks.is_empty() {
            for chunk in chunks {
                let lane = chunk.meta.identity.lane;
                in_flight.publish(lane, chunk.bytes, headers::properties(&chunk.meta));
            }
            continue;
        }
        tokio::select! {
            () = shared.work.notified() => {}
            answer = in_flight.next_answer() => {
                shared.take_answers(Some(answer), in_flight)?;
            }
            event = client::next(&mut events) => match event {
                Some(Event::ConnectionBlocked(_)) => shared.set_blocked(true),
                Some(Event::ConnectionUnblocked) => shared.set_blocked(false),
                Some(Event::Error(error)) => return Err(error::of_use("publish to", &error)),
                Some(_) => {}
                None => return Err(Failure::retry("publish to", "the connection ended")),
            },
            () = client::sleep_until(overdue) => {
                let time = config.confirm_timeout;
                let message = format!("nothing was confirmed for {time:?}");
                return Err(Failure::retry("publish to", message));
            }
        }
    }
}
