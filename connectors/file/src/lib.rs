#![doc = include_str!("../README.md")]

#[cfg(feature = "follow")]
pub mod follow;
#[cfg(feature = "lines")]
pub mod lines;
mod lock;
#[cfg(feature = "quarantine")]
pub mod quarantine;
mod replace;
#[cfg(feature = "segments")]
mod segments;
#[cfg(feature = "spool")]
pub mod spool;
#[cfg(feature = "thread-writer")]
pub mod thread_writer;

pub use lock::FileLock;
pub use replace::{
    beside, check_file, folder_of, if_found, lock_beside, new_file, open_file, replace_file,
    sync_folder,
};
#[cfg(feature = "segments")]
pub use segments::{
    Backlog, CONSUMERS_FOLDER, ConsumerName, ConsumerNameError, DAMAGED_FOLDER, FileReader,
    FileReaderConfig, FileWriter, FileWriterConfig, FullPolicy, Keep, LOCK_FILE, MEDIUM,
    ParseStartError, PathItem, Position, ReaderStats, SCHEME, Start, SyncPolicy, WriterStats,
    backlog, chunk_files, chunk_numbers, headers, parse_segment_name, read_path, remove_consumed,
    segment_name,
};
