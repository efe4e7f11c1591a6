//! The contract of every connector, against librdkafka's mock cluster.

use std::sync::Arc;

use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_kafka::KafkaConfig;
use baler_connector_testkit::TestMedium;

use crate::support::{Kafka, TOPIC, limited};

// The client mends connections by itself: no group `breaks`.
baler_connector_testkit::contract_tests!(Kafka: reads redelivers stalls many_writers many_readers);

mod kip_848 {
    // The mock's members beat every three seconds.
    baler_connector_testkit::contract_tests!(super::Consumers: reads redelivers many_readers);
}

/// Readers use the group protocol of KIP-848.
struct Consumers(Kafka);

impl TestMedium for Consumers {
    fn fresh() -> Self {
        Self(Kafka::fresh())
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        self.0.writer()
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        let config = limited(KafkaConfig::in_cluster(Arc::clone(&self.0.cluster), TOPIC));
        let settings = [("group.protocol", "consumer")];
        self.0
            .reader_with(config.client_settings(&settings).unwrap())
    }
}
