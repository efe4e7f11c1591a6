#![doc = include_str!("../README.md")]

mod error;
mod kafka;
mod proxy;
mod rabbitmq;
mod wait;

pub use error::FaultError;
pub use kafka::KafkaProxy;
#[cfg(feature = "tls")]
pub use kafka::KafkaTls;
pub use proxy::TcpProxy;
pub use rabbitmq::{RABBITMQ_MAX_MESSAGE_BYTES, RabbitMqCluster, RabbitMqNode};
