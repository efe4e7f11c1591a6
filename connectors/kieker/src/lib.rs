#![doc = include_str!("../README.md")]

mod config;
pub mod log;
mod reader;
mod schema;
mod writer;

use baler_common::transport::{Medium, OpenReader, Readership, Receiver};
pub use config::KiekerTcpConfig;
pub use reader::{KiekerTcpReader, ReaderStats};
pub use writer::{
    KiekerLogWriter, KiekerLogWriterConfig, KiekerTcpWriter, KiekerTcpWriterConfig, KiekerWriter,
    LogCompression, LogFormat, WriterCounts,
};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "kieker+tcp";

/// The scheme of the URIs of logs.
pub const LOG_SCHEME: &str = "kieker-log";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME],
    writer: |uri| {
        let config = KiekerTcpWriterConfig::from_uri(uri)?;
        Ok(Box::new(KiekerTcpWriter::new(config)))
    },
    receiver: |uri, _follow| {
        let config = KiekerTcpConfig::from_uri(uri)?;
        Ok(Receiver::new(Readership::OneProcess, move || {
            let reader = KiekerTcpReader::bind(config.clone())?;
            let address = reader.local_addr();
            let warning = format!(
                "whoever reaches {address} can send records, since Kieker's protocol has neither \
                 passwords nor encryption; listen on 127.0.0.1 or in a network of its own"
            );
            Ok(OpenReader {
                listens_on: Some(address),
                warning: (!address.ip().is_loopback()).then(|| warning.into()),
                ..reader.into()
            })
        }))
    },
    browser: None,
};
