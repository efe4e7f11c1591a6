#![doc = include_str!("../README.md")]

#[cfg(feature = "follow")]
pub mod follow;
mod lock;
#[cfg(feature = "quarantine")]
pub mod quarantine;
mod replace;
#[cfg(feature = "thread-writer")]
pub mod thread_writer;

pub use lock::FileLock;
pub use replace::{
    beside, check_file, folder_of, if_found, lock_beside, new_file, open_file, replace_file,
    sync_folder,
};
