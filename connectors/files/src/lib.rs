#![doc = include_str!("../README.md")]

mod lock;
#[cfg(feature = "quarantine")]
pub mod quarantine;
mod replace;

pub use lock::FileLock;
pub use replace::{
    beside, check_file, folder_of, if_found, lock_beside, new_file, open_file, replace_file,
    sync_folder,
};
