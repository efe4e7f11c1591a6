#![doc = include_str!("../README.md")]

mod error;
mod proxy;
mod rabbitmq;
mod wait;

pub use error::FaultError;
pub use proxy::TcpProxy;
pub use rabbitmq::{RABBITMQ_MAX_MESSAGE_BYTES, RabbitMqCluster, RabbitMqNode};
