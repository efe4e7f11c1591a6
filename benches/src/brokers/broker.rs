//! A broker to write to, apart from the process that writes, and what has arrived there.

use std::time::{Duration, Instant};

use baler_common::container::ChunkDecoder;
use baler_faults::RabbitMqNode;
use baler_rig::checksum::Checksum;
use baler_rig::plain_row;

use super::args::{Args, kafka_bootstrap};
use super::case::{Broker, Way};
use super::clients::{Amqp, Kafka};
use super::task::{Writing, Written};
use super::writing::Calls;
use baler_rig::lines::understand;

use crate::failure::Failure;
use crate::mock::MockBroker;
use crate::role::Role;

/// How long a child process may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A quorum queue's log is in memory up to 512 MB by default, which is all that the node may have:
/// it would block the connection in the middle of a repetition.
const RABBITMQ: &str = "raft.wal_max_size_bytes = 33554432";

/// The name of the queue or topic.
const NAME: &str = "baler-benches";

/// A broker that runs.
pub(super) struct Running {
    broker: Broker,
    address: String,
    name: String,
    queue_type: &'static str,
    seed: u64,
    client: Client,
    /// Ends with this value.
    _process: Process,
}

enum Client {
    Amqp(Box<Amqp>),
    Kafka(Kafka),
}

enum Process {
    RabbitMq(#[expect(dead_code, reason = "held until the end")] Box<RabbitMqNode>),
    Mock(#[expect(dead_code, reason = "held until the end")] MockBroker),
    Elsewhere,
}

impl Running {
    pub(super) fn start(broker: Broker, args: &Args) -> Result<Self, Failure> {
        let mut name = NAME.to_owned();
        let (process, address) = match broker {
            Broker::Amqp => {
                let node = RabbitMqNode::prepare_with(RABBITMQ)
                    .and_then(|node| node.restart().map(|()| node))
                    .map_err(Failure::cannot("start RabbitMQ"))?;
                let address = node.address().to_string();
                (Process::RabbitMq(Box::new(node)), address)
            }
            Broker::KafkaMock => {
                let cluster = MockBroker::start(NAME, 1)?;
                let address = cluster.address().to_owned();
                (Process::Mock(cluster), address)
            }
            Broker::Kafka => {
                name = format!("{NAME}-{}", std::process::id());
                let address = kafka_bootstrap();
                let none = || Failure::new("KAFKA_BOOTSTRAP names no cluster");
                (Process::Elsewhere, address.ok_or_else(none)?)
            }
        };
        let client = match broker {
            Broker::Amqp => Client::Amqp(Box::new(Amqp::connect(&address)?)),
            Broker::Kafka | Broker::KafkaMock => Client::Kafka(Kafka::connect(&address)?),
        };
        if let (Broker::Kafka, Client::Kafka(kafka)) = (broker, &client) {
            kafka.create(&name)?;
        }
        Ok(Self {
            broker,
            address,
            name,
            queue_type: args.queue_type.name(),
            seed: args.seed,
            client,
            _process: process,
        })
    }

    /// Writes with a process of its own, and looks whether as many messages arrived.
    pub(super) fn write(&self, way: Way, records: u64, warm_up: u64) -> Result<Written, Failure> {
        self.arriving(way, records, warm_up, |_, _| Ok(()))
    }

    /// As [`Running::write`], and looks whether the records are those of the load.
    pub(super) fn write_and_read(&self, way: Way, records: u64) -> Result<(), Failure> {
        let found = |before: u64, messages: u64| {
            let payloads = match &self.client {
                Client::Kafka(kafka) => kafka.read(&self.name, before, messages)?,
                Client::Amqp(amqp) => {
                    let mut payloads = Vec::new();
                    while let Some(payload) = amqp.get(&self.name)? {
                        payloads.push(payload);
                    }
                    payloads
                }
            };
            let mut decoder = ChunkDecoder::default();
            let mut found = Checksum::default();
            for payload in payloads {
                match way {
                    Way::Baler(_) => {
                        let decoded = decoder.decode(&payload);
                        found.add(&decoded.map_err(Failure::cannot("decode a chunk"))?.batch);
                    }
                    _ => found.add(&plain_row::read(&payload)?),
                }
            }
            let calls = Calls::new(self.seed, records);
            let sent: Vec<_> = calls.take(records).copied().collect();
            let expected = Checksum::of_calls(calls.workload(), &sent);
            if found == expected.map_err(Failure::cannot("make the load"))? {
                return Ok(());
            }
            let found = found.records;
            Err(Failure::new(format!(
                "{found} records arrived of {records}, or others than were sent"
            )))
        };
        self.arriving(way, records, 0, found).map(drop)
    }

    fn arriving(
        &self,
        way: Way,
        records: u64,
        warm_up: u64,
        look: impl FnOnce(u64, u64) -> Result<(), Failure>,
    ) -> Result<Written, Failure> {
        if let Client::Amqp(amqp) = &self.client {
            amqp.declare(&self.name, self.queue_type)?;
        }
        let before = self.arrived()?;
        let written = self.child(way, records, warm_up)?;
        let expected = written.all_messages;
        if written.records != records {
            let confirmed = written.records;
            let message = format!("{confirmed} records of {records} were confirmed");
            return Err(Failure::new(message));
        }
        let by = Instant::now() + PATIENCE;
        loop {
            let arrived = self.arrived()? - before;
            if arrived == expected {
                break;
            }
            // The length of a quorum queue is known a moment later.
            if arrived > expected || Instant::now() > by {
                let message = format!("{arrived} messages arrived, {expected} were sent");
                return Err(Failure::new(message));
            }
        }
        look(before, expected)?;
        if let Client::Amqp(amqp) = &self.client {
            amqp.delete(&self.name)?;
        }
        Ok(written)
    }

    /// How many messages there are, or ever were.
    fn arrived(&self) -> Result<u64, Failure> {
        match &self.client {
            Client::Amqp(amqp) => amqp.waiting(&self.name),
            Client::Kafka(kafka) => kafka.end(&self.name),
        }
    }

    fn child(&self, way: Way, records: u64, warm_up: u64) -> Result<Written, Failure> {
        let role = Role::Write(Writing {
            broker: self.broker,
            way,
            address: self.address.clone(),
            name: self.name.clone(),
            queue_type: self.queue_type.to_owned(),
            records,
            warm_up,
            seed: self.seed,
        });
        let child = role.start()?;
        let line = child.line(Instant::now() + PATIENCE);
        let line = line.map_err(Failure::cannot("hear of the writing process"))?;
        child
            .end(PATIENCE)
            .map_err(Failure::cannot("end the writing process"))?;
        understand(&line)
    }
}
