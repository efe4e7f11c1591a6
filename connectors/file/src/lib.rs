#![doc = include_str!("../README.md")]

mod client;
mod config;
mod consumers;
mod error;
pub mod headers;
mod lock;
mod quarantine;
mod reader;
mod writer;

pub use client::{CONSUMERS_FOLDER, DAMAGED_FOLDER, LOCK_FILE, parse_segment_name, segment_name};
pub use config::{
    FileReaderConfig, FileWriterConfig, FullPolicy, Keep, ParseStartError, Start, SyncPolicy,
};
pub use consumers::{
    Backlog, ConsumerName, ConsumerNameError, Position, Removed, backlog, remove_consumed,
};
pub use lock::FileLock;
pub use quarantine::QuarantineFolder;
pub use reader::{FileReader, PathItem, ReaderStats, read_path};
pub use writer::{FileWriter, WriterStats};

/// The scheme of this connector's URIs.
pub const SCHEME: &str = "file";
