//! The contract of every connector, against librdkafka's mock cluster.

use crate::support::Kafka;

// The client mends connections by itself: no group `breaks`.
baler_connector_testkit::contract_tests!(Kafka: reads redelivers stalls many_writers many_readers);
