//! Parquet files: their content, when they appear, and their readers.
#![cfg(test)]

mod python;
mod queries;
mod read_back;
mod records;
mod settling;
