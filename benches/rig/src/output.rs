//! Printing rows, and writing them to files together with their provenance.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;
use crate::machine::Provenance;

/// How to print rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A list of objects.
    Json,
    /// For people, within 100 columns.
    Table,
}

/// The rows of a run, and how they came about.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Results<'a, R> {
    /// The measuring program's name, and the name of the files without their extension.
    #[serde(skip)]
    pub name: &'a str,
    /// How the rows came about.
    #[serde(flatten)]
    pub provenance: &'a Provenance,
    /// The rows.
    pub rows: &'a [R],
}

impl<R: Serialize> Results<'_, R> {
    /// Prints the rows to `out`, as JSON or as this table.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn print(&self, format: Format, table: &str, out: &mut dyn Write) -> Result<(), Failure> {
        let json;
        let text = match format {
            Format::Json => {
                json = to_json(&self.rows)?;
                &json
            }
            Format::Table => table,
        };
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        printed.map_err(Failure::cannot("print the rows"))
    }

    /// Writes `<name>.json` with the rows and their provenance into this folder, and a file for each
    /// of these extensions and texts.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn keep(&self, folder: &Path, others: &[(&str, &str)]) -> Result<(), Failure> {
        let failed = Failure::cannot("write the results");
        fs::create_dir_all(folder).map_err(&failed)?;
        let json = to_json(self)?;
        for (extension, text) in [("json", &*json)].iter().chain(others) {
            let path = folder.join(self.name).with_extension(extension);
            fs::write(path, text).map_err(&failed)?;
        }
        Ok(())
    }
}

/// A value as indented JSON with a line break at the end.
///
/// # Errors
///
/// It has no JSON.
pub(crate) fn to_json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(Failure::cannot("write JSON"))? + "\n")
}
