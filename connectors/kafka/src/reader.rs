//! The receiving end.

mod browser;
mod commit;
mod lane;
mod last_chunks;
mod state;
#[cfg(test)]
mod tests;
mod worker;

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Instant;

use baler_common::transport::{
    ChunkReader, Failure, ReaderCapability, ReaderCloseReport, ReaderStats, Received, Settled,
    Token, TransportError, Verdict,
};
use rdkafka::consumer::Consumer;

use crate::SCHEME;
use crate::client;
use crate::config::{KafkaConfig, chunk_of};
pub use browser::KafkaBrowser;
use lane::Reset;
use state::ReaderState;
use worker::{Callbacks, Client};

/// Receives chunks from a topic, as a member of a consumer group.
///
/// A separate thread polls. So the group sees a living member, however long the owner needs for a
/// chunk. Each partition has a watermark, which never passes an unsettled chunk. The reader commits
/// the watermarks at intervals (`auto.commit.interval.ms`), when partitions leave, and at the end.
pub struct KafkaReader {
    capability: ReaderCapability,
    shared: Arc<ReaderState>,
    /// Empty once only the thread holds it.
    client: Option<Arc<Client>>,
    /// It closes when the thread ends.
    ended: Receiver<()>,
    /// Keeps the embedded cluster alive, if there is one.
    config: KafkaConfig,
}

impl fmt::Debug for KafkaReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaReader")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

/// The largest response that the client takes, its default of `receive.message.max.bytes`.
const RECEIVE_MAX_BYTES: usize = 100_000_000;

impl KafkaReader {
    /// Joins the group. Brokers that are away are found when they return.
    ///
    /// # Errors
    ///
    /// librdkafka does not take the settings together, or the thread cannot be started.
    pub fn open(config: KafkaConfig) -> Result<Self, TransportError> {
        let at = |failure: Failure| failure.at(&config.endpoint);
        let failed = |error: &dyn fmt::Display| at(Failure::last("open", error.to_string()));
        let shared = Arc::new(ReaderState::new(&config.endpoint));
        let mut callbacks = Callbacks {
            shared: Arc::clone(&shared),
            revoke_timeout: config.revoke_timeout,
            reset: Reset::Start,
            topic: config.topic.clone(),
            tokens: config.client.tokens(),
            client: OnceLock::new(),
        };
        let settings = config.consumer().map_err(at)?;
        callbacks.reset = Reset::new(settings.get("auto.offset.reset"));
        if settings.get("statistics.interval.ms") != Some("0") {
            shared.lock().says_connected = true;
        }
        let client = client::consumer(&settings, callbacks).map_err(at)?;
        client
            .subscribe(&[&config.topic])
            .map_err(|error| failed(&error))?;
        let client = Arc::new(client);
        client
            .context()
            .client
            .get_or_init(|| Arc::downgrade(&client));
        let polled = Arc::clone(&client);
        let polling = Arc::clone(&shared);
        let (running, ended) = channel::<()>();
        thread::Builder::new()
            .name("baler-kafka-read".into())
            .spawn(move || {
                let ran = Failure::catching("read from", || worker::run(polled, &polling));
                if let Err(failure) = ran {
                    // Nobody starts the thread again.
                    polling.fail(Failure::last(failure.operation, failure.message));
                }
                drop(running);
            })
            .map_err(|error| failed(&error))?;
        let mut capability = ReaderCapability::new(SCHEME, config.partition_by.order());
        let largest = config
            .client
            .value("receive.message.max.bytes")
            .and_then(|bytes| bytes.parse().ok())
            .unwrap_or(RECEIVE_MAX_BYTES);
        let largest = largest.max(chunk_of(config.message_bytes()).get());
        capability.max_chunk_bytes = NonZeroUsize::new(largest).unwrap_or(NonZeroUsize::MIN);
        Ok(Self {
            capability,
            shared,
            client: Some(client),
            ended,
            config,
        })
    }

    /// Makes the polling thread commit until `commit_by` and leave the group.
    fn end(&mut self, commit_by: Instant) {
        self.client = None;
        self.shared.stop(commit_by);
    }
}

impl ChunkReader for KafkaReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.shared.update(|state| state.demand = chunks);
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        let received = self.shared.receive(by);
        received.map_err(|failure| failure.at(&self.config.endpoint))
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let store = |commit| {
            let client = self.client.as_ref();
            client.is_some_and(|client| worker::store(client, &[commit]))
        };
        Ok(self.shared.settle(token, verdict, store))
    }

    fn waits_for(&self) -> Option<&'static str> {
        self.shared.lock().waits_for()
    }

    fn stats(&self) -> ReaderStats {
        self.shared.lock().stats()
    }

    fn close(mut self: Box<Self>, by: Instant) -> ReaderCloseReport {
        let unsettled = self.shared.lock().held.len();
        // The rest of the time is for leaving the group. So the report includes a refused commit.
        self.end(Instant::now() + client::time_left(by) / 2);
        let error = match self.ended.recv_timeout(client::time_left(by)) {
            // Nothing is ever sent: the channel closes when the thread ends.
            Ok(()) | Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                self.shared.lock().uncommitted.take()
            }
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                let message = "the group was not left in time; the last commit may be missing";
                Some(Failure::retry("close", message))
            }
        };
        let error = error.map(|failure| failure.at(&self.config.endpoint));
        ReaderCloseReport {
            unsettled,
            error,
            unreported: 0,
        }
    }
}

impl Drop for KafkaReader {
    fn drop(&mut self) {
        self.end(Instant::now() + self.config.revoke_timeout);
    }
}
