#![doc = include_str!("../README.md")]

mod appender;
mod block;
mod config;
mod consumed;
mod consumer;
mod cursor;
mod error;
mod folder;
mod path;
mod plain;
mod quarantine;
mod reader;
mod recovery;
mod scan;
pub mod segment;
mod stats;
mod worker;
mod writer;

pub use config::{
    FileReaderConfig, FileWriterConfig, FullPolicy, Keep, ParseStartError, Start, SyncPolicy,
};
pub use consumed::{Backlog, Removed, backlog, remove_consumed};
pub use consumer::{ConsumerName, ConsumerNameError, Position};
pub use folder::{CONSUMERS_FOLDER, DAMAGED_FOLDER, LOCK_FILE, parse_segment_name, segment_name};
pub use path::{PathChunks, PathItem, read_path};
pub use quarantine::QuarantineFolder;
pub use reader::FileReader;
pub use stats::{ReaderStats, WriterStats};
pub use writer::FileWriter;

/// The scheme of this connector's URIs.
pub const SCHEME: &str = "file";
