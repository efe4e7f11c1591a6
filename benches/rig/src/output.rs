//! Printing rows, and keeping them with what they depend on.

use std::fs;
use std::io::Write;
use std::path::Path;

use clap::ValueEnum;
use serde::Serialize;

use crate::failure::Failure;
use crate::machine::Provenance;
use crate::report::Document;

/// How to print rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A list of objects.
    Json,
    /// For people, within 100 columns.
    Table,
}

/// The rows of a run, and what they depend on.
#[derive(Debug, Clone, Copy)]
pub struct Results<'a, R> {
    /// The measuring program's name: that of the kept file.
    pub name: &'a str,
    /// What they depend on.
    pub provenance: &'a Provenance,
    /// The rows.
    pub rows: &'a [R],
}

impl<R: Serialize> Results<'_, R> {
    /// Prints the rows to `out`, as JSON or as `table`, and keeps them with both in `folder`, if one
    /// is named.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn print_and_keep(
        &self,
        format: Format,
        folder: Option<&Path>,
        table: &dyn Fn() -> String,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        self.print(format, table, out)?;
        match folder {
            Some(folder) => self.keep(folder, Some(&table())),
            None => Ok(()),
        }
    }

    /// Prints the rows to `out`, as JSON or as `table`.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn print(
        &self,
        format: Format,
        table: &dyn Fn() -> String,
        out: &mut dyn Write,
    ) -> Result<(), Failure> {
        let text = match format {
            Format::Json => json(&self.rows)?,
            Format::Table => table(),
        };
        let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
        printed.map_err(Failure::cannot("print the rows"))
    }

    /// Keeps the rows with machine, command and commit in this folder, and `table` beside them.
    ///
    /// # Errors
    ///
    /// They cannot be written.
    pub fn keep(&self, folder: &Path, table: Option<&str>) -> Result<(), Failure> {
        let document = Document {
            provenance: self.provenance,
            rows: self.rows,
        };
        let text = json(&document)?;
        let written = fs::create_dir_all(folder)
            .and_then(|()| fs::write(folder.join(format!("{}.json", self.name)), text))
            .and_then(|()| match table {
                Some(table) => fs::write(folder.join(format!("{}.txt", self.name)), table),
                None => Ok(()),
            });
        written.map_err(Failure::cannot("write the results"))
    }
}

fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(Failure::cannot("write JSON"))? + "\n")
}
