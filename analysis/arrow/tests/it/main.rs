//! Files of Parquet: what is in them, when they are there, and who reads them.
#![cfg(test)]

mod python;
mod queries;
mod read_back;
mod records;
mod settling;
