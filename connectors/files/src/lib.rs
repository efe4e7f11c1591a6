#![doc = include_str!("../README.md")]

mod lock;
#[cfg(feature = "quarantine")]
pub mod quarantine;
mod replace;
#[cfg(feature = "schema")]
pub mod schema;

pub use lock::FileLock;
pub use replace::{beside, folder_of, if_found, new_file, replace_file, sync_folder};
