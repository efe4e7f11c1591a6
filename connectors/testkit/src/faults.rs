#![doc = include_str!("faults/README.md")]
#![allow(
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command, and acknowledges nothing"
)]

mod error;
mod free_port;
mod kafka;
mod process_group;
mod proxy;
mod rabbitmq;

pub use error::FaultError;
pub use free_port::free_port;
pub use kafka::{KafkaProxy, KafkaSasl, KafkaSecurity, KafkaTls};
pub use process_group::ProcessGroupGuard;
pub use proxy::TcpProxy;
pub use rabbitmq::{RABBITMQ_MAX_MESSAGE_BYTES, RabbitMqCluster, RabbitMqNode};
