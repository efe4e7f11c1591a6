#![doc = include_str!("../README.md")]

mod client;
mod compression;
mod config;
mod decode;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod limits;
mod mapping;
mod protocol;
mod reader;
pub mod types;
mod writer;

use baler_common::transport::{Medium, OpenReader, ReaderFactory, Readership};

pub use compression::Compression;
pub use config::{Others, OtlpReaderConfig, OtlpWriterConfig};
pub use error::{BadRequest, Malformed};
pub use reader::OtlpReader;
pub use writer::OtlpWriter;

/// The short scheme of URIs for OTLP/gRPC.
pub const SCHEME: &str = "otlp";

/// The scheme of URIs for files of JSON lines, which are only written.
pub const SCHEME_FILE: &str = "otlp+file";

/// The scheme of URIs for OTLP/gRPC.
pub const SCHEME_GRPC: &str = "otlp+grpc";

/// The scheme of URIs for OTLP/HTTP.
pub const SCHEME_HTTP: &str = "otlp+http";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME, SCHEME_FILE, SCHEME_GRPC, SCHEME_HTTP],
    writer: |uri| Ok(Box::new(OtlpWriter::new(OtlpWriterConfig::from_uri(uri)?))),
    receiver: |uri, _follow| {
        let config = OtlpReaderConfig::from_uri(uri)?;
        Ok(ReaderFactory::new(Readership::OneProcess, move || {
            let reader = OtlpReader::bind(config.clone())?;
            let address = reader.local_addr();
            let warning = format!("any host that reaches {address} can send records");
            Ok(OpenReader {
                listens_on: Some(address),
                warning: (!address.ip().is_loopback()).then(|| warning.into()),
                ..reader.into()
            })
        }))
    },
    browser: None,
};
