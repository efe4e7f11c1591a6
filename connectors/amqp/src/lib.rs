#![doc = include_str!("../README.md")]

mod client;
mod config;
mod error;
mod headers;
mod plain;
mod publish;
mod reader;
mod topology;
mod writer;

pub use config::{AmqpConfig, QueueType};
pub use plain::PlainPublisher;
pub use reader::{AmqpReader, AmqpReaderCounts};
pub use writer::{AmqpWriter, AmqpWriterCounts};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "amqp";

/// The scheme of this medium's URIs with TLS.
pub const SCHEME_TLS: &str = "amqps";
