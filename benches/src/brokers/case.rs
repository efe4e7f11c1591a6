//! What is measured: one case a row.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::args::Args;

/// Which broker.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Broker {
    /// A RabbitMQ node of its own.
    Amqp,
    /// The cluster that `KAFKA_BOOTSTRAP` names.
    Kafka,
    /// librdkafka's mock cluster, in a process of its own. It keeps 5 MiB a partition and drops
    /// the oldest without a word, which a load that is only written does not mind.
    KafkaMock,
}

impl Broker {
    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Amqp => "amqp",
            Self::Kafka => "kafka",
            Self::KafkaMock => "kafka-mock",
        }
    }
}

/// How records get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Way {
    /// Through Baler's controller, with so many records a chunk.
    Baler(u32),
    /// One message a record with the client library at its best: publishes are pipelined over
    /// AMQP; for Kafka one thread sends and serves delivery reports.
    Plain,
    /// As `Plain`, with the client library's own thread for delivery reports.
    PlainThreaded,
    /// One message a record, each awaited before the next: what one writes first.
    Awaiting,
}

impl Way {
    /// All names.
    pub(super) const NAMES: [&str; 4] = ["baler", "plain", "plain-threaded", "plain-awaiting"];

    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Baler(_) => "baler",
            Self::Plain => "plain",
            Self::PlainThreaded => "plain-threaded",
            Self::Awaiting => "plain-awaiting",
        }
    }

    /// How many records a message has.
    pub const fn chunk_records(self) -> u32 {
        match self {
            Self::Baler(records) => records,
            Self::Plain | Self::PlainThreaded | Self::Awaiting => 1,
        }
    }
}

/// What is measured for one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    /// Which broker.
    pub broker: Broker,
    /// How records get there.
    pub way: Way,
}

impl Case {
    /// All that were asked for, in the order of the table.
    pub(super) fn all(args: &Args) -> Vec<Self> {
        let mut cases = Vec::new();
        for broker in args.brokers() {
            let plain: &[Way] = match broker {
                Broker::Amqp => &[Way::Awaiting, Way::Plain],
                _ => &[Way::Awaiting, Way::PlainThreaded, Way::Plain],
            };
            let baler = args.chunk_records.iter().copied().map(Way::Baler);
            let ways = plain.iter().copied().chain(baler);
            let wanted =
                |way: &Way| args.way.is_empty() || args.way.iter().any(|it| it == way.name());
            let ways = ways.filter(wanted);
            cases.extend(ways.map(|way| Self { broker, way }));
        }
        cases
    }

    /// How many records make a repetition of about a second: as many as that take, within an
    /// order of magnitude, on two cores.
    pub(super) const fn records(self) -> u64 {
        match (self.broker, self.way) {
            (Broker::Amqp, Way::Awaiting) => 8_000,
            (Broker::Amqp, Way::Plain | Way::PlainThreaded) => 60_000,
            (_, Way::Awaiting) => 4_000,
            (_, Way::Plain | Way::PlainThreaded) => 1_000_000,
            (Broker::Amqp, Way::Baler(0..16)) => 60_000,
            (_, Way::Baler(0..16)) => 400_000,
            (Broker::Amqp, Way::Baler(16..256)) => 300_000,
            (_, Way::Baler(16..256)) => 3_000_000,
            // No more than 40 MB: a RabbitMQ node with 512 MB to spare keeps them for a while.
            (Broker::Amqp, Way::Baler(_)) => 2_000_000,
            (_, Way::Baler(_)) => 8_000_000,
        }
    }
}
