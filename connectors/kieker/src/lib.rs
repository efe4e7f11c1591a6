#![doc = include_str!("../README.md")]

mod config;
pub mod log;
mod reader;

use baler_common::transport::uri::UriError;
use baler_common::transport::{Medium, OpenReader, Readership, Receiver};
pub use config::KiekerTcpConfig;
pub use reader::{KiekerTcpReader, ReaderStats};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "kieker+tcp";

/// This medium, for programs that open media by URI. It has no writer.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME],
    writer: |_| {
        Err(UriError::refused(
            "kieker+tcp: only listens for Kieker's senders; send to tcp:, a broker or a folder, \
             with --container kieker if Kieker's tools read it",
        ))
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
