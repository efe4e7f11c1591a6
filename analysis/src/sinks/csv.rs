//! CSV (RFC 4180): one file a record type.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use baler_common::record::{Fingerprint, RecordRef, Schema, ValueRef};

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::ValueJson;
use crate::sinks::output_file::{Existing, OutputFile};
use crate::stage::Stage;

/// How many files may be open; a stream with more types is refused.
const MAX_FILES: usize = 512;

/// After this number of chunks the buffers go to the files.
const FLUSH_CHUNKS: usize = 32;

/// Writes one CSV file a record type into a folder: `<type>.csv`, with a header line, the timestamp
/// first and then one column a field. Lists and nested records are written as JSON in their cell, an
/// absent optional and a missing timestamp as an empty cell.
///
/// Rows are appended to a file that is there, if its header has the columns of the type. If it has
/// others, and for a second version of a type, the file has the fingerprint in its name.
/// A torn row at the end of a file is moved to `<file>.torn`.
pub struct CsvFolder {
    folder: PathBuf,
    existing: Existing,
    files: HashMap<Fingerprint, BufWriter<OutputFile>>,
    names: HashSet<PathBuf>,
    held: Held,
    written: Counts,
    notice: Box<dyn FnMut(&str) + Send>,
}

impl fmt::Debug for CsvFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvFolder")
            .field("folder", &self.folder)
            .field("existing", &self.existing)
            .field("files", &self.files.len())
            .finish_non_exhaustive()
    }
}

impl CsvFolder {
    /// Writes into this folder, which is made when the first record comes.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            existing: Existing::default(),
            files: HashMap::new(),
            names: HashSet::new(),
            held: Held::default(),
            written: Counts::default(),
            notice: Box::new(|_| ()),
        }
    }

    /// Says what becomes of files that are there. Those of types that do not come stay.
    #[must_use]
    pub fn with_existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    /// Passes what a user should know, such as a torn row that was moved, as a sentence.
    #[must_use]
    pub fn with_notice(mut self, notice: impl FnMut(&str) + Send + 'static) -> Self {
        self.notice = Box::new(notice);
        self
    }

    /// Counts there what the files have.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.written = written;
        self
    }

    /// Opens the file of a type: the first of its two names that nobody else has.
    fn open(&mut self, schema: &Schema) -> Result<(), AnalysisError> {
        if self.files.len() >= MAX_FILES {
            let message = format!("more than {MAX_FILES} record types; select some");
            return Err(AnalysisError::stage("csv", message));
        }
        fs::create_dir_all(&self.folder).map_err(|error| failed(&self.folder, error))?;
        let (stem, fingerprint) = (stem(schema.name()), schema.fingerprint());
        let mut paths = vec![self.folder.join(format!("{stem}-{fingerprint:?}.csv"))];
        if !stem.is_empty() {
            paths.insert(0, self.folder.join(format!("{stem}.csv")));
        }
        let header = header(schema).map_err(|error| failed(&self.folder, error))?;
        for path in &paths {
            if self.names.contains(path) {
                continue;
            }
            let opened = self.open_path(path, &header);
            if let Some(file) = opened.map_err(|error| failed(path, error))? {
                self.files.insert(fingerprint, BufWriter::new(file));
                self.names.insert(path.clone());
                return Ok(());
            }
            (self.notice)(&format!(
                "{} has other columns than {}: it stays as it is",
                path.display(),
                schema.name()
            ));
        }
        let error = format!(
            "every file for {} has other columns; move them away or replace them",
            schema.name()
        );
        let error = io::Error::new(io::ErrorKind::AlreadyExists, error);
        Err(failed(&self.folder, error))
    }

    /// Opens a file if its header is this one, or can be.
    fn open_path(&mut self, path: &Path, header: &[u8]) -> io::Result<Option<OutputFile>> {
        let mut file = OutputFile::open(path, self.existing)?;
        if !file.is_empty() {
            // A header that was torn is shorter.
            let beginning = file.beginning(header.len())?;
            if !header.starts_with(&beginning) {
                return Ok(None);
            }
            if let Some(torn) = file.cut_torn_row()? {
                (self.notice)(&torn.to_string());
            }
        }
        if file.is_empty() {
            file.write_all(header)?;
        }
        Ok(Some(file))
    }

    fn write(&mut self, record: RecordRef<'_>) -> Result<(), AnalysisError> {
        let fingerprint = record.schema().fingerprint();
        if !self.files.contains_key(&fingerprint) {
            self.open(record.schema())?;
        }
        let Some(file) = self.files.get_mut(&fingerprint) else {
            return Ok(());
        };
        write_row(file, record).map_err(|error| failed(&self.folder, error))
    }
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
        if self.held.len() >= FLUSH_CHUNKS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        for file in self.files.values_mut() {
            file.flush().map_err(|error| failed(&self.folder, error))?;
        }
        self.held.release_into(&self.written);
        Ok(())
    }
}

fn failed(path: &Path, error: io::Error) -> AnalysisError {
    AnalysisError::output(path.display().to_string(), error)
}

/// A type's name as that of a file: it comes from outside and must not lead out of the folder.
fn stem(type_name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe = type_name.chars().map(|c| if plain(c) { c } else { '_' });
    let safe: String = safe.take(120).collect();
    safe.trim_start_matches('.').to_owned()
}

/// The first row, with its end.
fn header(schema: &Schema) -> io::Result<Vec<u8>> {
    // A field may itself be called `timestamp`, as in many of Kieker's types.
    let mut header = b"(timestamp)".to_vec();
    for field in schema.fields() {
        header.push(b',');
        write_text(&mut header, field.name())?;
    }
    header.push(b'\n');
    Ok(header)
}

fn write_row(output: &mut impl Write, record: RecordRef<'_>) -> io::Result<()> {
    match record.timestamp() {
        Some(time) => write!(output, "{time}")?,
        // A row without anything would be no row.
        None if record.schema().fields().is_empty() => output.write_all(b"\"\"")?,
        None => {}
    }
    for (_, value) in record.fields().values() {
        output.write_all(b",")?;
        write_cell(output, value)?;
    }
    output.write_all(b"\n")
}

/// Writes a value as it comes, however much text it makes.
fn write_cell(output: &mut impl Write, value: ValueRef<'_>) -> io::Result<()> {
    match value {
        ValueRef::Null => Ok(()),
        ValueRef::String(text) => write_text(output, text),
        ValueRef::Enum(value) => write_text(output, value.name().unwrap_or("")),
        ValueRef::Char(value) => write_text(output, value.encode_utf8(&mut [0; 4])),
        ValueRef::List(_) | ValueRef::Record(_) => {
            output.write_all(b"\"")?;
            serde_json::to_writer(Quoted(&mut *output), &ValueJson(value))?;
            output.write_all(b"\"")
        }
        // Numbers, and what JSON has in quotes but needs none here.
        scalar => Ok(serde_json::to_writer(Bare(output), &ValueJson(scalar))?),
    }
}

/// Writes text, in quotes where it would mean something else without.
fn write_text(output: &mut impl Write, text: &str) -> io::Result<()> {
    if !text.contains(['"', ',', '\n', '\r']) {
        return output.write_all(text.as_bytes());
    }
    output.write_all(b"\"")?;
    Quoted(&mut *output).write_all(text.as_bytes())?;
    output.write_all(b"\"")
}

/// What is inside of quotes: those in it are written twice.
struct Quoted<'a, W>(&'a mut W);

impl<W: Write> Write for Quoted<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (number, part) in bytes.split(|byte| *byte == b'"').enumerate() {
            if number > 0 {
                self.0.write_all(b"\"\"")?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Leaves out quotes.
struct Bare<'a, W>(&'a mut W);

impl<W: Write> Write for Bare<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split(|byte| *byte == b'"') {
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
