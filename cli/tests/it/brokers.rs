//! The program with real brokers: a private RabbitMQ node, Kafka's mock cluster, and the cluster
//! that `KAFKA_BOOTSTRAP` names.

#[cfg(feature = "kafka")]
mod kafka_positions;
#[cfg(feature = "kafka")]
mod kafka_topic;
mod kieker;
mod readme_commands;
mod real_log;
mod relay;
mod relay_sigterm;
mod session;
mod streams;
mod traces;
mod verify;
