#![doc = include_str!("spool/README.md")]

mod config;
mod state;
mod store;
mod worker;
mod writer;

pub use config::SpoolConfig;
pub use state::{SpoolRoute, SpoolStatus, SpoolWatch};
pub use writer::Spool;

/// The sub-folder with the chunks, a folder of the file connector.
pub const CHUNKS_FOLDER: &str = "chunks";
/// The sub-folder with the chunks that the medium refused for good, and with damaged pieces.
pub const REFUSED_FOLDER: &str = "refused";
/// The file with the number of the last chunk that was reported as spooled.
pub const PROMISE_FILE: &str = "promised";
/// The file that a spool locks while it is open.
pub const LOCK_FILE: &str = "spool.lock";
