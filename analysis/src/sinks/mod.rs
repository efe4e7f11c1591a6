//! Sinks: stages that write what arrives.

mod csv;
mod json;
mod json_lines;
mod null;
mod output_file;
mod shared_output;
mod slices;
mod table;

pub use self::csv::{CsvFolder, Formulas};
pub use json::{IdentifiedJson, RecordJson};
pub use json_lines::JsonLines;
pub use null::Null;
pub use output_file::{Existing, OutputFile, Torn};
pub use shared_output::SharedOutput;
pub use table::TextTable;
