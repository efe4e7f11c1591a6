//! A cluster of librdkafka's mock brokers.

use std::num::{NonZeroU16, NonZeroU32};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_kafka::{EmbeddedCluster, KafkaConfig, KafkaReader, KafkaWriter, PartitionBy};
use baler_connector_testkit::TestMedium;

pub(crate) const TOPIC: &str = "chunks";

pub(crate) const PARTITIONS: u16 = 4;

/// Small limits, so that the cases that reach them are quick.
pub(crate) fn limited(mut config: KafkaConfig) -> KafkaConfig {
    let small = |value| NonZeroU32::new(value).unwrap();
    config.max_message_bytes = Some(small(20_512));
    config.window.chunks = small(32);
    config.window.bytes = small(60_000);
    config.partition_by = PartitionBy::Lane;
    config
}

/// The topic of the tests, with small limits, by way of somebody else: a proxy.
pub(crate) fn config(bootstrap: &str) -> KafkaConfig {
    of_tests(KafkaConfig::new(bootstrap, TOPIC))
}

fn of_tests(config: KafkaConfig) -> KafkaConfig {
    limited(config)
        // The mock waits for the session of a member that left; this is the shortest it takes. A
        // member that beats while the mock forms its group is often sent back to the beginning.
        .client_settings(&[
            ("session.timeout.ms", "6000"),
            ("heartbeat.interval.ms", "3000"),
        ])
        .unwrap()
}

/// A deadline in the near future.
pub(crate) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(10)
}

/// A cluster of mock brokers with one topic of four partitions.
pub(crate) struct Kafka {
    pub(crate) cluster: Arc<EmbeddedCluster>,
}

impl Kafka {
    pub(crate) fn with_brokers(brokers: u16) -> Self {
        let cluster = EmbeddedCluster::with_brokers(NonZeroU16::new(brokers).unwrap()).unwrap();
        cluster.create_topic(TOPIC, PARTITIONS, brokers).unwrap();
        Self {
            cluster: Arc::new(cluster),
        }
    }

    pub(crate) fn config(&self) -> KafkaConfig {
        of_tests(KafkaConfig::in_cluster(Arc::clone(&self.cluster), TOPIC))
    }

    /// With settings of librdkafka.
    pub(crate) fn config_with(&self, settings: &[(&str, &str)]) -> KafkaConfig {
        self.config().client_settings(settings).unwrap()
    }

    pub(crate) fn writer_with(&self, config: KafkaConfig) -> Box<dyn ChunkWriter> {
        Box::new(KafkaWriter::new(config))
    }

    pub(crate) fn reader_with(&self, config: KafkaConfig) -> Box<dyn ChunkReader> {
        Box::new(KafkaReader::open(config).unwrap())
    }
}

impl TestMedium for Kafka {
    fn fresh() -> Self {
        Self::with_brokers(1)
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        self.writer_with(self.config())
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        self.reader_with(self.config())
    }

    fn stall(&mut self) {
        self.cluster.broker_down(1).unwrap();
    }

    fn resume(&mut self) {
        self.cluster.broker_up(1).unwrap();
    }
}
