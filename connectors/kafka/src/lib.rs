#![doc = include_str!("../README.md")]

mod client;
mod config;
mod embedded;
mod error;
mod headers;
mod plain;
mod reader;
mod settings;
mod writer;

use baler_common::transport::{Medium, OpenReader, ReaderFactory, Readership};
pub use config::{KafkaConfig, NewTopicShape, PartitionBy};
pub use embedded::{EmbeddedCluster, RequestFault, RequestKind};
pub use error::KafkaConfigError;
pub use plain::PlainProducer;
pub use reader::{KafkaBrowser, KafkaReader};
pub use writer::KafkaWriter;

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "kafka";

/// The scheme of URIs with a cluster inside the process: `kafka+mock:topic`.
pub const EMBEDDED_SCHEME: &str = "kafka+mock";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME],
    writer: |uri| Ok(Box::new(KafkaWriter::new(KafkaConfig::from_uri(uri)?))),
    receiver: |uri, _follow| {
        let config = KafkaConfig::from_uri(uri)?;
        Ok(ReaderFactory::new(Readership::Shared, move || {
            let cluster = config.embedded_cluster();
            Ok(OpenReader {
                listens_on: cluster.and_then(|it| it.bootstrap_servers().parse().ok()),
                ..KafkaReader::open(config.clone())?.into()
            })
        }))
    },
    browser: Some(|uri, browse| {
        let config = KafkaConfig::from_uri(uri)?;
        let open = move || KafkaBrowser::open(config.clone(), browse);
        Ok(ReaderFactory::browser(open))
    }),
};

/// Kafka with a cluster inside the process. Other processes cannot reach it, so it has no browser.
pub const EMBEDDED_MEDIUM: Medium = Medium {
    schemes: &[EMBEDDED_SCHEME],
    browser: None,
    ..MEDIUM
};
