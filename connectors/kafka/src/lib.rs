#![doc = include_str!("../README.md")]

mod admin;
mod browser;
mod config;
mod embedded;
mod error;
mod headers;
mod plain;
mod reader;
mod secrets;
mod settings;
mod stats;
mod token;
mod topic;
mod writer;

pub use browser::{Browse, KafkaBrowser};
pub use config::{KafkaConfig, PartitionBy};
pub use embedded::{EmbeddedCluster, RequestFault, RequestKind};
pub use error::KafkaConfigError;
pub use plain::PlainProducer;
pub use reader::KafkaReader;
pub use topic::{NewTopicShape, ShapeError};
pub use writer::KafkaWriter;

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "kafka";

/// The scheme of URIs with a cluster inside the process: `kafka+mock:topic`.
pub const EMBEDDED_SCHEME: &str = "kafka+mock";
