#![doc = include_str!("../README.md")]

mod client;
mod config;
mod error;
mod headers;
mod plain;
mod reader;
mod writer;

use baler_common::transport::{Browse, Medium, ReaderFactory, Readership};
pub use config::{AmqpConfig, QueueType};
pub use plain::PlainPublisher;
pub use reader::{AmqpReader, AmqpReaderCounts};
pub use writer::{AmqpWriter, AmqpWriterCounts};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "amqp";

/// The scheme of this medium's URIs with TLS.
pub const SCHEME_TLS: &str = "amqps";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME, SCHEME_TLS],
    writer: |uri| {
        let config = AmqpConfig::from_uri(uri)?;
        Ok(Box::new(AmqpWriter::new(config)))
    },
    receiver: |uri, _follow| {
        let config = AmqpConfig::from_uri(uri)?;
        let open = move || AmqpReader::new(config.clone());
        Ok(ReaderFactory::new(Readership::Shared, open))
    },
    browser: Some(|uri, browse| {
        let config = AmqpConfig::from_uri(uri)?;
        let config = match browse {
            Browse::FromNow | Browse::FromOldest => config.tap(browse == Browse::FromOldest)?,
            Browse::UntilNow => config.inspect()?,
        };
        let mut browser = ReaderFactory::browser(move || AmqpReader::new(config.clone()));
        // What comes of a queue must go back to it.
        browser.only_looks = browse != Browse::UntilNow;
        Ok(browser)
    }),
};
