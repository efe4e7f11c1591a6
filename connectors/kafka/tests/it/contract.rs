//! The contract of every connector, against librdkafka's mock cluster.

use crate::support::Kafka;

baler_connector_testkit::contract_tests!(Kafka);
