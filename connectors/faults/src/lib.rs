#![doc = include_str!("../README.md")]

mod error;
mod kafka;
mod leash;
mod proxy;
mod rabbitmq;
mod wait;

pub use error::FaultError;
pub use kafka::KafkaProxy;
#[cfg(feature = "security")]
pub use kafka::{KafkaSasl, KafkaSecurity, KafkaTls};
pub use leash::Leash;
pub use proxy::TcpProxy;
pub use rabbitmq::{RABBITMQ_MAX_MESSAGE_BYTES, RabbitMqCluster, RabbitMqNode};
