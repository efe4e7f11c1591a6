//! Media without Baler: one message a record, with the client library alone.

use std::any::Any;
#[cfg(feature = "amqp")]
use std::time::Duration;
#[cfg(any(feature = "amqp", feature = "kafka"))]
use std::time::Instant;

#[cfg(feature = "amqp")]
use baler_connector_amqp::{AmqpConfig, PlainPublisher};
#[cfg(feature = "kafka")]
use baler_connector_kafka::{EmbeddedCluster, KafkaConfig, PlainProducer};
use baler_rig::Failure as Unmeasured;
use baler_rig::sweep::PlainWriter;

use super::{media, parse, wrong};
use crate::exit::Failure;

/// How long connecting may take.
#[cfg(feature = "amqp")]
const PATIENCE: Duration = Duration::from_secs(30);

/// Connects the client library of a medium alone. With `awaiting`, each message is confirmed before
/// the next one is sent.
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

/// Starts a Kafka cluster in this process, with one topic. Returns its address, and the cluster.
///
/// # Errors
///
/// It cannot be started, or the program was built without Kafka.
#[cfg_attr(
    not(feature = "kafka"),
    expect(unused_variables, reason = "this build has no Kafka")
)]
pub(crate) fn embedded_cluster(
    topic: &str,
    partitions: u16,
) -> Result<(String, Box<dyn Any>), Unmeasured> {
    #[cfg(feature = "kafka")]
    {
        let cluster = EmbeddedCluster::start(topic, partitions)
            .map_err(Unmeasured::cannot("start a cluster"))?;
        Ok((cluster.bootstrap_servers().to_owned(), Box::new(cluster)))
    }
    #[cfg(not(feature = "kafka"))]
    Err(Unmeasured::new("this program was built without Kafka"))
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
