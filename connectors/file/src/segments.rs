//! The medium `file`: chunks in a folder of segments.

mod client;
mod config;
mod consumers;
mod error;
pub mod headers;
mod numbers;
mod reader;
mod writer;

use baler_common::transport::{Browse, Medium, ReaderFactory, Readership};

pub use client::{
    CONSUMERS_FOLDER, DAMAGED_FOLDER, LOCK_FILE, chunk_files, parse_segment_name, segment_name,
};
pub use config::{
    FileReaderConfig, FileWriterConfig, FullPolicy, Keep, ParseStartError, Start, SyncPolicy,
};
pub use consumers::{Backlog, ConsumerName, ConsumerNameError, Position, backlog, remove_consumed};
pub use numbers::chunk_numbers;
pub use reader::{FileReader, PathItem, ReaderStats, read_path};
pub use writer::{FileWriter, WriterStats};

/// The scheme of this connector's URIs.
pub const SCHEME: &str = "file";

/// This medium, for programs that open media by URI.
pub const MEDIUM: Medium = Medium {
    schemes: &[SCHEME],
    writer: |uri| Ok(Box::new(FileWriter::new(FileWriterConfig::from_uri(uri)?))),
    receiver: |uri, follow| {
        let mut config = FileReaderConfig::from_uri(uri)?;
        config.follow |= follow;
        let open = move || FileReader::open(config.clone());
        Ok(ReaderFactory::new(Readership::OneProcess, open))
    },
    browser: Some(|uri, browse| {
        let mut config = FileReaderConfig::from_uri(uri)?;
        // A browser leaves no trace; a named consumer's position would move.
        config.consumer = None;
        config.follow = browse != Browse::UntilNow;
        match browse {
            Browse::FromNow => config.from = Start::End,
            Browse::FromOldest => config.from = Start::Oldest,
            Browse::UntilNow => {}
        }
        let open = move || FileReader::open(config.clone());
        Ok(ReaderFactory::browser(open))
    }),
};
