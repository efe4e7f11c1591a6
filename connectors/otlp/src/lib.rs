#![doc = include_str!("../README.md")]

mod client;
mod compression;
mod config;
mod convert;
mod decode;
mod error;
#[doc(hidden)]
pub mod fuzzing;
mod headers;
mod limits;
mod mapping;
mod protocol;
mod reader;
mod sink;
mod telemetry;
pub mod types;
mod writer;

use std::net::SocketAddr;

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

/// The scheme of URIs for OTLP/HTTP with TLS.
pub const SCHEME_HTTPS: &str = "otlp+https";

/// The scheme of URIs for OTLP/gRPC with TLS.
pub const SCHEME_TLS: &str = "otlp+tls";

/// The scheme of URIs for Unix sockets; a writer sends OTLP/gRPC there.
pub const SCHEME_UNIX: &str = "otlp+unix";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[
        SCHEME,
        SCHEME_FILE,
        SCHEME_GRPC,
        SCHEME_HTTP,
        SCHEME_HTTPS,
        SCHEME_TLS,
        SCHEME_UNIX,
    ],
    writer: |uri| Ok(Box::new(OtlpWriter::new(OtlpWriterConfig::from_uri(uri)?))),
    receiver: |uri, _follow| {
        let config = OtlpReaderConfig::from_uri(uri)?;
        Ok(ReaderFactory::new(Readership::OneProcess, move || {
            let reader = OtlpReader::bind(config.clone())?;
            let address = reader.local_addr();
            let open_to = address.filter(|it| !it.ip().is_loopback());
            let open_to = open_to.filter(|_| !config.demands_certificates());
            let warning = |address: SocketAddr| {
                let how =
                    "listen on 127.0.0.1, or demand certificates by otlp+tls: with cacertfile";
                format!("any host that reaches {address} can send records; {how}").into()
            };
            Ok(OpenReader {
                listens_on: address,
                warning: open_to.map(warning),
                ..reader.into()
            })
        }))
    },
    browser: None,
};
