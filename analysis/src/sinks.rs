//! Sinks: stages that write their records.

mod chunk_json;
mod csv;
mod json;
mod json_lines;
mod output_file;
mod shared_output;
mod slices;
mod table;

use super::error::AnalysisError;
use super::parcel::Parcel;
use super::stage::Stage;

pub use chunk_json::{broken_document, by_reason, chunk_document};
pub use csv::{CsvFolder, Formulas};
#[cfg(feature = "arrow")]
pub(crate) use json::text_of;
pub use json::{IdentifiedJson, RecordJson};
pub use json_lines::JsonLines;
pub use output_file::{Existing, OutputFile, Torn};
pub use shared_output::SharedOutput;
pub use table::TextTable;

/// Takes everything and keeps nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Null;

impl Stage for Null {
    fn name(&self) -> &'static str {
        "null"
    }

    fn accept(&mut self, _parcel: Parcel) -> Result<(), AnalysisError> {
        Ok(())
    }
}
