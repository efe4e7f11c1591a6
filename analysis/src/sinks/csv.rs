//! CSV (RFC 4180): one file a record type.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::PathBuf;

use baler_common::record::{Fingerprint, RecordRef, ValueRef};

use crate::error::AnalysisError;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::ValueJson;
use crate::stage::Stage;

/// How many files may be open; a stream with more types is refused.
const MAX_FILES: usize = 512;

/// Writes one CSV file a record type into a folder: `<type>.csv`, with a header line, the timestamp
/// first and then one column a field. Lists and nested records are written as JSON in their cell, an
/// absent optional and a missing timestamp as an empty cell.
///
/// Two versions of a type get two files, the second with its fingerprint in the name.
#[derive(Debug)]
pub struct CsvFolder {
    folder: PathBuf,
    files: HashMap<Fingerprint, csv::Writer<BufWriter<File>>>,
    names: HashSet<PathBuf>,
    held: Held,
}

impl CsvFolder {
    /// Writes into this folder, which is made when the first record comes. Files of the same names
    /// are overwritten.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            files: HashMap::new(),
            names: HashSet::new(),
            held: Held::default(),
        }
    }

    fn error(&self, error: std::io::Error) -> AnalysisError {
        AnalysisError::output(self.folder.display().to_string(), error)
    }

    fn open(&mut self, record: RecordRef<'_>) -> Result<(), AnalysisError> {
        if self.files.len() >= MAX_FILES {
            let message = format!("more than {MAX_FILES} record types; select some");
            return Err(AnalysisError::stage("csv", message));
        }
        fs::create_dir_all(&self.folder).map_err(|error| self.error(error))?;
        let fingerprint = record.schema().fingerprint();
        // A type's name comes from outside: it must not lead out of the folder.
        let safe: String = record
            .type_name()
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "._-".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(120)
            .collect();
        let mut path = self
            .folder
            .join(format!("{}.csv", safe.trim_start_matches('.')));
        if self.names.contains(&path) || safe.trim_start_matches('.').is_empty() {
            path = self.folder.join(format!("{safe}-{fingerprint:?}.csv"));
        }
        let file = File::create(&path).map_err(|error| self.error(error))?;
        let mut writer = csv::Writer::from_writer(BufWriter::new(file));
        let names = record.schema().fields().iter().map(|field| field.name());
        // A field may itself be called `timestamp`, as in many of Kieker's types.
        let envelope = ["(timestamp)"].into_iter();
        writer
            .write_record(envelope.chain(names))
            .map_err(|error| self.error(error.into()))?;
        self.files.insert(fingerprint, writer);
        self.names.insert(path);
        Ok(())
    }

    fn write(&mut self, record: RecordRef<'_>) -> Result<(), AnalysisError> {
        let fingerprint = record.schema().fingerprint();
        if !self.files.contains_key(&fingerprint) {
            self.open(record)?;
        }
        let mut cells = vec![
            record
                .timestamp()
                .map_or_else(String::new, |time| time.to_string()),
        ];
        for (_, value) in record.fields().values() {
            cells.push(cell(value).map_err(|error| self.error(error.into()))?);
        }
        let written = self
            .files
            .get_mut(&fingerprint)
            .map(|file| file.write_record(&cells));
        written
            .transpose()
            .map_err(|error| self.error(error.into()))?;
        Ok(())
    }
}

fn cell(value: ValueRef<'_>) -> Result<String, serde_json::Error> {
    Ok(match value {
        ValueRef::Null => String::new(),
        ValueRef::String(text) => text.to_owned(),
        ValueRef::List(_) | ValueRef::Record(_) => serde_json::to_string(&ValueJson(value))?,
        scalar => {
            let json = serde_json::to_string(&ValueJson(scalar))?;
            if json.starts_with('"') {
                serde_json::from_str(&json)?
            } else {
                json
            }
        }
    })
}

impl Stage for CsvFolder {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        parcel
            .records()
            .try_for_each(|(_, record)| self.write(record))?;
        self.held.push(parcel);
        if self.held.len() >= 32 {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        for file in self.files.values_mut() {
            if let Err(error) = file.flush() {
                return Err(AnalysisError::output(
                    self.folder.display().to_string(),
                    error,
                ));
            }
        }
        self.held.release_all();
        Ok(())
    }
}
