//! Parquet files: their content, when they appear, and their readers.

mod python;
mod queries;
mod read_back;
mod records;
mod settling;
