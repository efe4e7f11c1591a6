//! Sinks: stages that write what arrives.

mod csv;
mod json;
mod json_lines;
mod null;
mod shared_output;
mod table;

pub use self::csv::CsvFolder;
pub use json::{IdentifiedJson, RecordJson};
pub use json_lines::JsonLines;
pub use null::Null;
pub use shared_output::SharedOutput;
pub use table::TextTable;
