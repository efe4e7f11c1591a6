#![doc = include_str!("../README.md")]

mod client;
mod config;
mod error;
mod headers;
mod kieker_plain;
mod plain;
mod reader;
mod writer;

use baler_common::transport::uri::UriError;
use baler_common::transport::{Browse, Medium, ReaderFactory, Readership};
pub use config::{AmqpConfig, QueueType};
pub use kieker_plain::KiekerPlainReader;
#[doc(hidden)]
pub use kieker_plain::fuzzing as kieker_plain_fuzzing;
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
        if config.is_kieker_plain {
            let why = "format=kieker-plain is one of readers; write chunks, which Kieker's \
                       ChunkingAmqpReader reads with --container kieker";
            return Err(UriError::refused(why));
        }
        Ok(Box::new(AmqpWriter::new(config)))
    },
    receiver: |uri, _follow| {
        let config = AmqpConfig::from_uri(uri)?;
        if config.is_kieker_plain {
            let open = move || KiekerPlainReader::new(config.clone());
            return Ok(ReaderFactory::new(Readership::OneProcess, open));
        }
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
