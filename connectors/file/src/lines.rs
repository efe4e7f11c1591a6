#![doc = include_str!("lines/README.md")]

mod config;
mod cutter;
mod error;
mod headers;
mod inference;
mod input;
mod json;
mod line;
mod origin;
mod reader;

use baler_common::transport::uri::UriError;
use baler_common::transport::{Browse, Medium, ReaderFactory, Readership};

pub use config::{Format, LinesConfig};
pub use error::LineError;
pub use inference::Inference;
pub use line::{TEXT_FIELD, TEXT_NAME, chunk_of_line};
pub use origin::Origin;
pub use reader::LinesReader;

/// The scheme of JSON lines.
pub const JSON_SCHEME: &str = "jsonl";

/// The scheme of lines of text.
pub const TEXT_SCHEME: &str = "text";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[JSON_SCHEME, TEXT_SCHEME],
    writer: |_| {
        Err(UriError::refused(
            "lines are only read; receive --format json, or --format lines, writes them",
        ))
    },
    receiver: |uri, follow| {
        let config = LinesConfig::from_uri(uri, follow)?;
        let open = move || LinesReader::open(config.clone());
        Ok(ReaderFactory::new(Readership::OneProcess, open))
    },
    browser: Some(|uri, browse| {
        let mut config = LinesConfig::from_uri(uri, browse != Browse::UntilNow)?;
        config.follow = browse != Browse::UntilNow;
        config.from_now = browse == Browse::FromNow;
        // A browser leaves no trace.
        config.position_file = None;
        let open = move || LinesReader::open(config.clone());
        Ok(ReaderFactory::browser(open))
    }),
};
