//! The sending end.

mod partitions;
mod producer;
mod state;
#[cfg(test)]
mod tests;
mod topic;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Failure, Notify,
    RejectReason, Rejected, TransportError, WriterStats,
};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::BaseRecord;

use super::SCHEME;
use super::client::create_topic;
use super::config::{KafkaConfig, chunk_of};
use super::error::{ErrorClass, code_of, error_class};
use super::headers::Label;
use partitions::Partitions;
use producer::{Absence, Limits, Producer};
use state::ProducerState;

/// Sends chunks to a topic, one chunk a message.
///
/// A separate thread serves delivery reports. [`offer`](ChunkWriter::offer) copies the chunk into the
/// client's queue and never blocks. Each [`reopen`](ChunkWriter::reopen) makes a new producer, since
/// a fatal error of librdkafka ends the old one.
pub struct KafkaWriter {
    config: KafkaConfig,
    capability: Capability,
    shared: Arc<ProducerState>,
    producer: Option<Producer>,
    limits: Limits,
    /// Whether the topic was created, or existed.
    created: bool,
    absence: Absence,
    partitions: Partitions,
    /// The end of the thread that watches the topic's settings, once it runs.
    watch: Option<Sender<()>>,
}

impl fmt::Debug for KafkaWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaWriter")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl KafkaWriter {
    /// A writer to the configured topic. Like every writer it starts closed.
    pub fn new(config: KafkaConfig) -> Self {
        let durability = durability(&config, 2);
        let mut capability = Capability::new(SCHEME, config.partition_by.order(), durability);
        capability.max_chunk_bytes = chunk_of(config.message_bytes());
        config.window.apply(&mut capability);
        Self {
            shared: ProducerState::unopened(&config),
            partitions: Partitions::new(&config),
            config,
            capability,
            producer: None,
            limits: Limits::default(),
            created: false,
            absence: Absence::default(),
            watch: None,
        }
    }

    /// The topic's `max.message.bytes`, once the writer is open. `None` if the cluster does not say
    /// it. Then only the settings count, until a chunk turns out to be too large.
    pub fn topic_limit(&self) -> Option<u32> {
        self.limits.topic
    }

    fn open(&mut self, by: Instant) -> Result<(), Failure> {
        let producer = Producer::start(&self.config, &self.shared)?;
        if let Some(shape) = self.config.create_topic.filter(|_| !self.created) {
            producer.reach(by)?;
            create_topic(&self.config, shape, by)?;
            self.created = true;
        }
        let found = producer.find(&mut self.absence, by)?;
        self.limits.was_asked &= !self.shared.persistent.topic.take_lower_limit();
        let message_bytes = self.limits.learn(&self.config, by)?;
        // A cluster that does not tell the limit is not asked again and again.
        if self.watch.is_none() && self.limits.topic.is_some() {
            self.watch = topic::watch(&self.config, &self.shared.persistent.topic)?;
        }
        let topic = &self.shared.persistent.topic;
        topic.set_partitions(found.partitions);
        topic.set_message_bytes(message_bytes);
        self.partitions.open(found.partitions);
        self.capability.max_chunk_bytes = chunk_of(message_bytes);
        self.capability.durability = durability(&self.config, found.replicas);
        self.producer = Some(producer);
        Ok(())
    }

    fn broken(&self, failure: &Failure) -> RejectReason {
        RejectReason::Broken(Box::new(failure.at(self.shared.writer.endpoint())))
    }

    /// Puts a chunk that the window has taken into the client's queue.
    fn send(&mut self, chunk: &Chunk) -> Result<(), RejectReason> {
        let Some(client) = self.producer.as_ref().and_then(Producer::client) else {
            return Err(self.broken(&Failure::retry("write to", "it is closed")));
        };
        let label = Label::new(&chunk.meta, self.config.partition_by);
        let header = Header {
            key: label.header.0,
            value: Some(&label.header.1),
        };
        let mut record =
            BaseRecord::with_opaque_to(&self.config.topic, self.shared.number(chunk.ticket))
                .key(&label.key)
                .payload(&*chunk.bytes)
                .headers(OwnedHeaders::new_with_capacity(1).insert(header));
        let (lane, count) = (
            chunk.meta.identity.lane,
            self.shared.persistent.topic.partitions(),
        );
        if let Some(partition) = self.partitions.choose(lane, &label.key, count) {
            record = record.partition(partition);
        }
        let Err((error, _)) = client.send(record) else {
            return Ok(());
        };
        self.shared.writer.lock().give_back(chunk.ticket);
        let code = code_of(&error);
        let failure = match error_class(code) {
            _ if code == RDKafkaErrorCode::QueueFull => return Err(RejectReason::Full),
            ErrorClass::TooLarge => {
                return Err(RejectReason::TooLarge {
                    max_chunk_bytes: self.capability.max_chunk_bytes.get(),
                });
            }
            ErrorClass::Permanent => Failure::last("write to", code.to_string()),
            ErrorClass::InvalidMessage | ErrorClass::Transient => {
                Failure::retry("write to", code.to_string())
            }
        };
        let reason = self.broken(&failure);
        self.shared.writer.fail(failure);
        Err(reason)
    }
}

/// The durability of a confirmed chunk, as far as the client can know.
fn durability(config: &KafkaConfig, replicas: usize) -> Durability {
    match config.client.value("acks").unwrap_or("all") {
        "0" => Durability::None,
        "all" | "-1" if replicas > 1 => Durability::Replicated,
        // The operating system of the broker decides when to write to the disk.
        "all" | "-1" => Durability::Process,
        // Only the leader has it. The next leader may not.
        _ => Durability::Received,
    }
}

impl ChunkWriter for KafkaWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        // The client has the queue.
        let taken = self.shared.writer.take(&chunk, &self.capability);
        taken
            .and_then(|()| self.send(&chunk))
            .map_err(|reason| Rejected { chunk, reason })
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

    fn stats(&self) -> WriterStats {
        let mut stats = WriterStats::default();
        stats.throttled = self.shared.throttled();
        self.shared.persistent.topic.add_to(&mut stats);
        stats
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.producer = None;
        let too_large = self.shared.writer.lock().medium.too_large;
        if let Some(bytes) = too_large {
            self.limits.too_large(bytes, self.shared.alone);
        }
        let alone = self.shared.alone || too_large.is_some();
        self.shared = self.shared.next(alone);
        self.open(by).map_err(|failure| {
            let error = failure.at(self.shared.writer.endpoint());
            self.shared.writer.fail(failure);
            error
        })
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let Some(producer) = self.producer.take() else {
            return CloseReport::default();
        };
        let writer = &self.shared.writer;
        let error = writer.drain(by, Instant::now());
        // This stops further confirmations: the report is complete.
        writer.fail(Failure::retry("write to", "it was closed"));
        let report = writer.close_report(error);
        producer.close(by);
        report
    }
}
