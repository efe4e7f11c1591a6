//! Files of Parquet: what is in them, when they are there, and who reads them.

mod python;
mod read_back;
mod records;
mod settling;
