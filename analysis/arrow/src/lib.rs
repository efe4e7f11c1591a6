#![doc = include_str!("../README.md")]
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "what cannot happen ends the command, and acknowledges nothing"
)]

mod columns;
mod convert;
mod parquet;
mod schema;

pub use convert::{Converter, TypeBatch};
pub use parquet::{ParquetFolder, ParquetSettings, TimePartition};
pub use schema::{Times, schema_of};
