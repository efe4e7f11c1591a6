//! Writes CSV (RFC 4180): one file for each record type.

use std::collections::HashMap;
use std::fmt;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use baler_common::record::{AnyValue, Fingerprint, RecordRef, Schema, ValueRef};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::error::AnalysisError;
use crate::filters::Counts;
use crate::parcel::{Held, Parcel};
use crate::sinks::json::ValueJson;
use crate::sinks::output_file::{Existing, OutputFile};
use crate::stage::Stage;

/// The most open files. If more are needed, all are closed.
const MAX_OPEN: usize = 256;

/// The most record types with a file of their own. The file [`OTHER_TYPES`] gets all further ones.
const MAX_TYPES: usize = 4_096;

/// No type's file has this name, because [`stem`] makes no parentheses.
const OTHER_TYPES: &str = "(other types).csv";

/// After this number of chunks the buffers go to the files.
const FLUSH_CHUNKS: usize = 32;

/// Writes one CSV file for each record type into a folder: `<type>.csv`. The file has a header
/// line. The timestamp comes first, and then one column for each field. Lists, maps and nested
/// records are written as JSON in their cell, an [`AnyValue`] as its plain value; an absent optional and a missing timestamp as an empty cell.
/// Values and lines that are kept as JSON text have the columns of the fields in the text.
///
/// If a file exists and its header has the columns of the type, rows are appended to it. Otherwise,
/// and for a version of a type with other columns, the name of the file contains the fingerprint. A
/// torn row at the end of a file is moved to `<file>.torn`.
///
/// After 4,096 types, records of further types go to `(other types).csv`. Its columns are the
/// timestamp, the type, and all fields as JSON.
pub struct CsvFolder {
    folder: PathBuf,
    existing: Existing,
    /// The files of this run.
    files: Vec<File>,
    /// The positions of the types' files. All types without a file of their own share one key.
    positions: HashMap<Option<Fingerprint>, usize>,
    formulas: Formulas,
    held: Held,
    written: Counts,
    notice: Box<dyn FnMut(&str) + Send>,
}

/// A file of this run. Versions of a type with the same columns share it.
struct File {
    path: PathBuf,
    /// Empty for the file of all further types.
    type_name: Box<str>,
    header: Vec<u8>,
    output: Option<BufWriter<OutputFile>>,
}

/// How to write texts that a spreadsheet would read as formulas.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Formulas {
    /// An apostrophe before them makes a spreadsheet show them as text.
    Escape,
    /// They are written as they are.
    #[default]
    Keep,
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
    /// Writes into this folder, which is created with the first record.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            existing: Existing::default(),
            files: Vec::new(),
            positions: HashMap::new(),
            formulas: Formulas::default(),
            held: Held::default(),
            written: Counts::default(),
            notice: Box::new(|_| ()),
        }
    }

    /// Sets what happens to existing files. Files of types that do not occur stay.
    #[must_use]
    pub fn with_existing(mut self, existing: Existing) -> Self {
        self.existing = existing;
        self
    }

    /// Sets a hook for notices to the user, such as about a torn row that was moved. A notice is a
    /// sentence.
    #[must_use]
    pub fn with_notice(mut self, notice: impl FnMut(&str) + Send + 'static) -> Self {
        self.notice = Box::new(notice);
        self
    }

    /// Counts the written records in `written`.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.written = written;
        self
    }

    /// Sets how to write texts that a spreadsheet would read as formulas.
    #[must_use]
    pub fn with_formulas(mut self, formulas: Formulas) -> Self {
        self.formulas = formulas;
        self
    }

    fn write(&mut self, record: RecordRef<'_>) -> Result<(), AnalysisError> {
        let fingerprint = record.schema().fingerprint();
        let is_known = self.positions.contains_key(&Some(fingerprint));
        let key = (is_known || self.positions.len() < MAX_TYPES).then_some(fingerprint);
        let position = match self.positions.get(&key) {
            Some(position) => *position,
            None => self.find(key, record.schema())?,
        };
        if self.files[position].output.is_none() {
            self.reopen(position)?;
        }
        let output = self.files[position].output.as_mut();
        let mut rows = Rows {
            output: output.expect("it is open now"),
            formulas: self.formulas,
        };
        let written = match key {
            Some(_) => rows.record(record),
            None => rows.other_record(record),
        };
        written.map_err(AnalysisError::of_file(&self.folder))
    }

    /// Passes all data to the operating system and closes the files.
    fn close(&mut self) -> Result<(), AnalysisError> {
        let open = self.files.iter_mut().filter_map(|it| it.output.take());
        for mut output in open {
            let flushed = output.flush();
            flushed.map_err(AnalysisError::of_file(&self.folder))?;
        }
        Ok(())
    }

    /// Closes all files if there are too many for one more.
    fn make_room(&mut self) -> Result<(), AnalysisError> {
        let open = self.files.iter().filter(|file| file.output.is_some());
        match open.count() >= MAX_OPEN {
            true => self.close(),
            false => Ok(()),
        }
    }

    /// Opens a file that this run has closed, for more rows. It is empty if another process has
    /// removed it meanwhile.
    fn reopen(&mut self, position: usize) -> Result<(), AnalysisError> {
        self.make_room()?;
        let file = &mut self.files[position];
        let opened = OutputFile::open(&file.path, Existing::Append).and_then(|mut opened| {
            if opened.is_empty() {
                opened.write_all(&file.header)?;
            }
            Ok(opened)
        });
        let opened = opened.map_err(AnalysisError::of_file(&file.path))?;
        file.output = Some(BufWriter::new(opened));
        Ok(())
    }

    /// Finds the file of a new type: one with its columns, or the first of its names that no other
    /// type uses.
    fn find(&mut self, key: Option<Fingerprint>, schema: &Schema) -> Result<usize, AnalysisError> {
        fs::create_dir_all(&self.folder).map_err(AnalysisError::of_file(&self.folder))?;
        let header = header(key.map(|_| schema), self.formulas);
        let header = header.map_err(AnalysisError::of_file(&self.folder))?;
        let type_name = key.map_or("", |_| schema.name());
        let mut files = self.files.iter();
        let same = files.position(|it| *it.type_name == *type_name && it.header == header);
        if let Some(position) = same {
            self.positions.insert(key, position);
            return Ok(position);
        }
        self.make_room()?;
        let mut names = vec![OTHER_TYPES.to_owned()];
        if let Some(fingerprint) = key {
            let stem = stem(schema.name());
            names = vec![format!("{stem}-{fingerprint:?}.csv")];
            if !stem.is_empty() {
                names.insert(0, format!("{stem}.csv"));
            }
        }
        let paths = names.into_iter().map(|name| self.folder.join(name));
        let is_free = |path: &PathBuf| !self.files.iter().any(|it| it.path == *path);
        let paths: Vec<PathBuf> = paths.filter(is_free).collect();
        for path in paths {
            let opened = self.open_path(&path, &header);
            if let Some(file) = opened.map_err(AnalysisError::of_file(&path))? {
                self.positions.insert(key, self.files.len());
                self.files.push(File {
                    path,
                    type_name: type_name.into(),
                    header,
                    output: Some(BufWriter::new(file)),
                });
                return Ok(self.files.len() - 1);
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
        Err(AnalysisError::of_file(&self.folder)(error))
    }

    /// Opens a file if it has this header, or can get it.
    fn open_path(&mut self, path: &Path, header: &[u8]) -> io::Result<Option<OutputFile>> {
        let mut file = OutputFile::open(path, self.existing)?;
        if !file.is_empty() {
            // A torn header is shorter.
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
}

impl Stage for CsvFolder {
    fn name(&self) -> &'static str {
        "csv"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let opened = parcel.opened();
        let mut records = opened.records();
        records.try_for_each(|(_, record)| self.write(record))?;
        self.held.push(parcel);
        if self.held.len() >= FLUSH_CHUNKS {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        let open = self.files.iter_mut().filter_map(|it| it.output.as_mut());
        for output in open {
            let flushed = output.flush();
            flushed.map_err(AnalysisError::of_file(&self.folder))?;
        }
        self.held.release_into(&self.written);
        Ok(())
    }
}

/// Converts a type's name to the name of a file. The name is untrusted and must not lead out of the
/// folder.
fn stem(type_name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let safe = type_name.chars().map(|c| if plain(c) { c } else { '_' });
    let safe: String = safe.take(120).collect();
    safe.trim_start_matches('.').to_owned()
}

/// Returns the first row, with its end. Without a schema it is the first row of [`OTHER_TYPES`].
fn header(schema: Option<&Schema>, formulas: Formulas) -> io::Result<Vec<u8>> {
    // A field may itself be named `timestamp`, as in many of Kieker's types.
    let mut header = b"(timestamp)".to_vec();
    let Some(schema) = schema else {
        header.extend(b",(type),(fields)\n");
        return Ok(header);
    };
    for field in schema.fields() {
        header.push(b',');
        let output = &mut header;
        Rows { output, formulas }.text(field.name())?;
    }
    header.push(b'\n');
    Ok(header)
}

/// Writes rows.
struct Rows<'a, W> {
    output: &'a mut W,
    formulas: Formulas,
}

impl<W: Write> Rows<'_, W> {
    fn record(&mut self, record: RecordRef<'_>) -> io::Result<()> {
        match record.timestamp() {
            Some(time) => write!(self.output, "{time}")?,
            // An empty line would not be a row.
            None if record.schema().fields().is_empty() => self.output.write_all(b"\"\"")?,
            None => {}
        }
        for (_, value) in record.fields().values() {
            self.output.write_all(b",")?;
            self.cell(value)?;
        }
        self.output.write_all(b"\n")
    }

    /// A record of a type without a file of its own.
    fn other_record(&mut self, record: RecordRef<'_>) -> io::Result<()> {
        if let Some(time) = record.timestamp() {
            write!(self.output, "{time}")?;
        }
        self.output.write_all(b",")?;
        self.text(record.type_name())?;
        self.output.write_all(b",")?;
        self.cell(ValueRef::Record(record.fields()))?;
        self.output.write_all(b"\n")
    }

    /// Writes a value as a stream, whatever its length as text.
    fn cell(&mut self, value: ValueRef<'_>) -> io::Result<()> {
        match value {
            ValueRef::Null => Ok(()),
            ValueRef::String(text) => self.text(text),
            ValueRef::Enum(value) => self.text(value.name().unwrap_or("")),
            ValueRef::Char(value) => self.text(value.encode_utf8(&mut [0; 4])),
            ValueRef::Bytes(value) => self.text(&STANDARD.encode(value)),
            ValueRef::Record(fields) if AnyValue::json(fields).is_none() => {
                match AnyValue::plain(fields) {
                    Some(value) => self.cell(value),
                    None => self.json(value),
                }
            }
            ValueRef::List(_) | ValueRef::Map(_) | ValueRef::Record(_) => self.json(value),
            // Numbers, and values that are quoted in JSON but not here.
            scalar => {
                serde_json::to_writer(Quotes(&mut *self.output, b""), &ValueJson(scalar))?;
                Ok(())
            }
        }
    }

    /// Writes a value as JSON, in quotes.
    fn json(&mut self, value: ValueRef<'_>) -> io::Result<()> {
        self.output.write_all(b"\"")?;
        serde_json::to_writer(Quotes(&mut *self.output, b"\"\""), &ValueJson(value))?;
        self.output.write_all(b"\"")
    }

    /// Writes text, in quotes if that is necessary.
    fn text(&mut self, text: &str) -> io::Result<()> {
        // The characters from OWASP's "CSV Injection".
        let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
        let before = match self.formulas {
            Formulas::Escape if is_formula => "'",
            _ => "",
        };
        if !text.contains(['"', ',', '\n', '\r']) {
            self.output.write_all(before.as_bytes())?;
            return self.output.write_all(text.as_bytes());
        }
        write!(self.output, "\"{before}")?;
        Quotes(&mut *self.output, b"\"\"").write_all(text.as_bytes())?;
        self.output.write_all(b"\"")
    }
}

/// Writes text, and this instead of each quote in it.
struct Quotes<'a, W>(&'a mut W, &'static [u8]);

impl<W: Write> Write for Quotes<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for (number, part) in bytes.split(|byte| *byte == b'"').enumerate() {
            if number > 0 {
                self.0.write_all(self.1)?;
            }
            self.0.write_all(part)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
