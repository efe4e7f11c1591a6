#![doc = include_str!("arrow/README.md")]

mod columns;
mod convert;
mod parquet;
mod schema;

pub use convert::{Converter, TypeBatch};
pub use parquet::{ParquetFolder, ParquetSettings, TimePartition};
pub use schema::{Times, schema_of};
