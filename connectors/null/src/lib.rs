#![doc = include_str!("../README.md")]

mod config;
mod reader;
mod writer;

use baler_common::transport::{Medium, ReaderFactory, Readership};
pub use config::NullConfig;
pub use reader::NullReader;
pub use writer::{NullCounts, NullWriter};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "null";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME],
    writer: |uri| Ok(Box::new(NullWriter::new(NullConfig::from_uri(uri)?))),
    receiver: |uri, _follow| {
        let config = NullConfig::from_uri(uri)?;
        let open = move || Ok(NullReader::new(config));
        Ok(ReaderFactory::new(Readership::OneProcess, open))
    },
    browser: None,
};
