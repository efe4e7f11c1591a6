//! Media without Baler: one message a record, with the client library alone.

#[cfg(feature = "amqp")]
use std::time::Duration;
#[cfg(any(feature = "amqp", feature = "kafka"))]
use std::time::Instant;

#[cfg(feature = "amqp")]
use baler_connector_amqp::{AmqpConfig, PlainPublisher};
#[cfg(feature = "kafka")]
use baler_connector_kafka::{EmbeddedCluster, KafkaConfig, PlainProducer};
use baler_rig::Failure as Unmeasured;
use baler_rig::sweep::{Cluster, PlainWriter};

use super::{media, parse, wrong};
use crate::exit::Failure;

/// How long to connect.
#[cfg(feature = "amqp")]
const PATIENCE: Duration = Duration::from_secs(30);

/// The client library of a medium alone, connected; `awaiting`: each message before the next.
///
/// # Errors
///
/// The URI is wrong, the medium cannot be reached, or it has no messages.
#[cfg_attr(
    not(any(feature = "amqp", feature = "kafka")),
    expect(
        unused_variables,
        reason = "no medium of this build has a client library"
    )
)]
pub(crate) fn plain_writer(text: &str, awaiting: bool) -> Result<Box<dyn PlainWriter>, Failure> {
    let (uri, endpoint) = parse(text)?;
    match uri.scheme() {
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => {
            let config = AmqpConfig::from_uri(uri).map_err(wrong(&endpoint))?;
            let by = Instant::now() + PATIENCE;
            let publisher = PlainPublisher::connect(&config, awaiting, by)?;
            Ok(Box::new(Amqp(publisher)))
        }
        #[cfg(feature = "kafka")]
        "kafka" => {
            let config = KafkaConfig::from_uri(uri).map_err(wrong(&endpoint))?;
            Ok(Box::new(Kafka(PlainProducer::new(&config, awaiting)?)))
        }
        _ => {
            media().of(&uri).map_err(wrong(&endpoint))?;
            let why = "nothing can be compared with what is sent there";
            Err(wrong(&endpoint)(why))
        }
    }
}

/// A Kafka cluster in this process, with one topic.
///
/// # Errors
///
/// It cannot be started, or the program was built without Kafka.
#[cfg(feature = "kafka")]
pub(crate) fn embedded_cluster(
    topic: &str,
    partitions: u16,
) -> Result<Box<dyn Cluster>, Unmeasured> {
    let cluster = EmbeddedCluster::start(topic, partitions);
    Ok(Box::new(Embedded(
        cluster.map_err(Unmeasured::cannot("start a cluster"))?,
    )))
}

/// A Kafka cluster in this process, with one topic.
///
/// # Errors
///
/// The program was built without Kafka.
#[cfg(not(feature = "kafka"))]
pub(crate) fn embedded_cluster(
    _topic: &str,
    _partitions: u16,
) -> Result<Box<dyn Cluster>, Unmeasured> {
    Err(Unmeasured::new("this program was built without Kafka"))
}

#[cfg(feature = "kafka")]
struct Embedded(EmbeddedCluster);

#[cfg(feature = "kafka")]
impl Cluster for Embedded {
    fn address(&self) -> String {
        self.0.bootstrap_servers().to_owned()
    }
}

#[cfg(feature = "amqp")]
struct Amqp(PlainPublisher);

#[cfg(feature = "amqp")]
impl PlainWriter for Amqp {
    fn publish(&mut self, rows: &[Vec<u8>]) -> Result<(), Unmeasured> {
        self.0.publish(rows).map_err(Unmeasured::cannot("publish"))
    }

    fn confirmed(&self) -> u64 {
        self.0.confirmed()
    }

    fn settle(&mut self, by: Instant) -> Result<(), Unmeasured> {
        self.0.settle(by).map_err(Unmeasured::cannot("publish"))
    }
}

#[cfg(feature = "kafka")]
struct Kafka(PlainProducer);

#[cfg(feature = "kafka")]
impl PlainWriter for Kafka {
    fn publish(&mut self, rows: &[Vec<u8>]) -> Result<(), Unmeasured> {
        self.0.publish(rows).map_err(Unmeasured::cannot("produce"))
    }

    fn confirmed(&self) -> u64 {
        self.0.confirmed()
    }

    fn settle(&mut self, by: Instant) -> Result<(), Unmeasured> {
        self.0.settle(by).map_err(Unmeasured::cannot("produce"))
    }
}
