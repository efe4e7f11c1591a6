#![doc = include_str!("../README.md")]

pub mod adaptive;
mod config;
mod headers;
pub mod log;
pub mod messages;
mod reader;
mod schema;
mod writer;

use std::sync::Arc;

use adaptive::Bridge;
use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{Browse, Medium, OpenReader, ReaderFactory, Readership};
pub use baler_files::schema::read_schema;
pub use config::KiekerTcpConfig;
pub use log::{KiekerLogConfig, KiekerLogReader};
pub use reader::{KiekerTcpReader, ReaderStats};
pub use schema::read_schema;
pub use writer::{
    KiekerLogWriter, KiekerLogWriterConfig, KiekerTcpWriter, KiekerTcpWriterConfig, LogCompression,
    LogFormat, WriterCounts,
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
    receiver: |uri, _follow| adaptive_receiver(uri, Arc::default()),
    browser: None,
};

/// Receives streams of Kieker's records. The patterns of `bridge` switch the probes of senders that
/// speak the [adaptive protocol](adaptive).
///
/// # Errors
///
/// The URI is wrong; see [`KiekerTcpConfig::from_uri`].
pub fn adaptive_receiver(uri: Uri, bridge: Arc<Bridge>) -> Result<ReaderFactory, UriError> {
    let config = KiekerTcpConfig::from_uri(uri)?;
    Ok(ReaderFactory::new(Readership::OneProcess, move || {
        let reader = KiekerTcpReader::bind_with(config.clone(), Arc::clone(&bridge))?;
        let address = reader.local_addr();
        let warning = format!(
            "any host that reaches {address} can send records, since Kieker's protocol has neither \
             passwords nor encryption; listen on 127.0.0.1 or in a network of its own"
        );
        Ok(OpenReader {
            listens_on: Some(address),
            warning: (!address.ip().is_loopback()).then(|| warning.into()),
            ..reader.into()
        })
    }))
}

/// Logs, for programs that open media by URI.
pub const LOG_MEDIUM: Medium = Medium {
    schemes: &[LOG_SCHEME],
    writer: |uri| {
        let config = KiekerLogWriterConfig::from_uri(uri)?;
        Ok(Box::new(KiekerLogWriter::new(config)))
    },
    receiver: |uri, follow| {
        let config = KiekerLogConfig::from_uri(uri, follow)?;
        Ok(ReaderFactory::new(Readership::OneProcess, move || {
            KiekerLogReader::open(config.clone())
        }))
    },
    browser: Some(|uri, browse| {
        let mut config = KiekerLogConfig::from_uri(uri, browse != Browse::UntilNow)?;
        config.follow = browse != Browse::UntilNow;
        config.from_now = browse == Browse::FromNow;
        // A browser leaves no trace.
        config.position_file = None;
        Ok(ReaderFactory::browser(move || {
            KiekerLogReader::open(config.clone())
        }))
    }),
};
