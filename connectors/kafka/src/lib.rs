#![doc = include_str!("../README.md")]

mod browser;
mod client;
mod config;
mod embedded;
mod error;
mod headers;
mod plain;
mod reader;
mod writer;

pub use browser::{Browse, KafkaBrowser};
pub use config::{KafkaConfig, NewTopicShape, PartitionBy};
pub use embedded::{EmbeddedCluster, RequestFault, RequestKind};
pub use error::KafkaConfigError;
pub use plain::PlainProducer;
pub use reader::KafkaReader;
pub use writer::KafkaWriter;

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "kafka";

/// The scheme of URIs with a cluster inside the process: `kafka+mock:topic`.
pub const EMBEDDED_SCHEME: &str = "kafka+mock";
