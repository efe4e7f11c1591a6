#![doc = include_str!("../README.md")]

mod config;
mod reader;
mod writer;

pub use config::NullConfig;
pub use reader::NullReader;
pub use writer::{NullCounts, NullWriter};

/// The scheme of this medium's URIs.
pub const SCHEME: &str = "null";
