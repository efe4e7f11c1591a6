//! The sending end.

mod limits;
mod offsets;
mod produce;
mod producer;
mod state;

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Durability, Failure, Notify, Order,
    RejectReason, Rejected, TransportError, WriterStats,
};
use rdkafka::error::RDKafkaErrorCode;

use crate::SCHEME;
use crate::client::admin::Admin;
use crate::config::{KafkaConfig, PartitionBy, chunk_of};
use crate::error::{Concern, concern};
use crate::headers::Label;
use limits::{Limits, TooLarge};
use produce::{Envelope, produce};
use producer::{Producer, Topic};
use state::ProducerState;

/// Sends chunks to a topic, one chunk a message.
///
/// A thread of its own serves delivery reports; [`offer`](ChunkWriter::offer) puts the chunk into
/// the client's queue, which shares its memory, and never blocks. Each [`reopen`](ChunkWriter::reopen) makes a new producer,
/// since errors that librdkafka calls fatal end one.
pub struct KafkaWriter {
    config: KafkaConfig,
    /// The configured topic, once the writer was opened.
    topic: CString,
    capability: Capability,
    producer_state: Arc<ProducerState>,
    producer: Option<Producer>,
    /// Whether each message is a batch of its own, after a batch was above the topic's limit.
    alone: bool,
    limits: Limits,
    /// Whether the topic was created, or was there.
    created: bool,
    /// How many partitions the topic has, and which one is next in turn.
    partitions: i32,
    turn: i32,
}

impl fmt::Debug for KafkaWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaWriter")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl KafkaWriter {
    /// A writer to the configured topic; like every writer it starts closed.
    pub fn new(config: KafkaConfig) -> Self {
        let order = match config.partition_by {
            PartitionBy::Producer | PartitionBy::Lane => Order::PerLane,
            PartitionBy::RoundRobin => Order::Unordered,
        };
        let mut capability = Capability::new(SCHEME, order, Durability::Replicated);
        capability.max_chunk_bytes = config.max_chunk_bytes();
        config.window.apply(&mut capability);
        capability.durability = durability(&config, 2);
        Self {
            producer_state: ProducerState::unopened(&config.endpoint),
            config,
            capability,
            producer: None,
            alone: false,
            limits: Limits::default(),
            created: false,
            partitions: 1,
            turn: 0,
            topic: CString::default(),
        }
    }

    /// The topic's `max.message.bytes`, once the writer is open; nothing if the cluster does not
    /// say it. Then only the settings count, until a chunk turns out to be too large.
    pub fn topic_limit(&self) -> Option<u32> {
        self.limits.topic()
    }

    fn open(&mut self, by: Instant, too_large: Option<TooLarge>) -> Result<(), Failure> {
        self.config
            .check_topic()
            .map_err(|error| Failure::last("open", error.to_string()))?;
        self.topic = CString::new(&*self.config.topic)
            .map_err(|error| Failure::last("open", error.to_string()))?;
        let producer = Producer::start(&self.config, &self.producer_state, self.alone)?;
        if let Some(shape) = self.config.create_topic.filter(|_| !self.created) {
            producer.reach(&self.producer_state, by)?;
            Admin::start(&self.config)?.create(&self.config.topic, shape, by)?;
            self.created = true;
        }
        let Topic {
            partitions,
            replicas,
        } = producer.find(&self.config.topic, &self.producer_state, by)?;
        let message_bytes = self.limits.learn(&self.config, too_large, by)?;
        self.capability.max_chunk_bytes = chunk_of(message_bytes);
        self.partitions = partitions;
        self.capability.durability = durability(&self.config, replicas);
        self.producer = Some(producer);
        Ok(())
    }

    fn broken(&self, failure: &Failure) -> RejectReason {
        RejectReason::Broken(Box::new(failure.at(&self.config.endpoint)))
    }

    /// Hands a chunk to the client's queue.
    fn send(&mut self, chunk: &Chunk) -> Result<(), RejectReason> {
        let Some(client) = self.producer.as_ref().and_then(Producer::client) else {
            let failure = Failure::retry("write to", "it is closed");
            return Err(self.broken(&failure));
        };
        let label = Label::new(&chunk.meta, self.config.partition_by);
        let in_turn = self.config.partition_by == PartitionBy::RoundRobin;
        let envelope = Envelope {
            topic: &self.topic,
            partition: in_turn.then(|| self.turn % self.partitions.max(1)),
            label: &label,
        };
        let sent = Box::new(self.producer_state.lend(chunk));
        let Err(code) = produce(client, &envelope, sent) else {
            self.turn = self.turn.checked_add(1).unwrap_or(0);
            return Ok(());
        };
        if code == RDKafkaErrorCode::QueueFull {
            self.producer_state.give_back(chunk.ticket, true);
            return Err(RejectReason::Full);
        }
        self.producer_state.give_back(chunk.ticket, false);
        if concern(code) == Concern::Size {
            return Err(RejectReason::TooLarge {
                max_chunk_bytes: self.capability.max_chunk_bytes.get(),
            });
        }
        let failure = match concern(code) {
            Concern::Everything => Failure::last("write to", code.to_string()),
            _ => Failure::retry("write to", code.to_string()),
        };
        self.producer_state.fail(failure.clone());
        Err(self.broken(&failure))
    }
}

/// What a confirmation means, as far as the client can know.
fn durability(config: &KafkaConfig, replicas: usize) -> Durability {
    match config.client.value("acks").unwrap_or("all") {
        "0" => Durability::None,
        "all" | "-1" if replicas > 1 => Durability::Replicated,
        // Brokers leave it to the operating system when to write to the disk.
        "all" | "-1" => Durability::Process,
        // The leader alone: another one that takes over may not have it.
        _ => Durability::Received,
    }
}

impl ChunkWriter for KafkaWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let max_chunk_bytes = self.capability.max_chunk_bytes.get();
        let result = if let Some(failure) = self.producer_state.failure() {
            Err(self.broken(&failure))
        } else if chunk.bytes.len() > max_chunk_bytes {
            Err(RejectReason::TooLarge { max_chunk_bytes })
        } else if self.producer_state.take(&chunk, &self.capability) {
            self.send(&chunk)
        } else {
            Err(RejectReason::Full)
        };
        result.map_err(|reason| Rejected { chunk, reason })
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        match self.producer_state.confirmations(out) {
            None => Ok(()),
            Some(failure) => Err(failure.at(&self.config.endpoint)),
        }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.producer_state.set_notify(notify);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.producer_state.set_awaited(awaited);
    }

    fn stats(&self) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.throttled = self.producer_state.throttled();
        stats
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        let too_large = match self.producer_state.chunk_too_large() {
            Some(bytes) => Some(TooLarge::Chunk { bytes }),
            None => self
                .producer_state
                .batch_too_large()
                .then_some(TooLarge::Batch),
        };
        self.alone |= too_large == Some(TooLarge::Batch);
        self.producer = None;
        self.producer_state = self.producer_state.next(self.alone);
        self.open(by, too_large).map_err(|failure| {
            self.producer_state.fail(failure.clone());
            failure.at(&self.config.endpoint)
        })
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let mut report = CloseReport::default();
        let Some(producer) = self.producer.take() else {
            return report;
        };
        let failure = self.producer_state.drain(by);
        // From here on nothing is confirmed any more: what follows is the whole account.
        self.producer_state
            .fail(Failure::retry("write to", "it was closed"));
        self.producer_state.confirmations(&mut report.confirmations);
        report.unconfirmed = self.producer_state.unconfirmed();
        report.error = failure.map(|failure| failure.at(&self.config.endpoint));
        producer.close(by);
        report
    }
}
