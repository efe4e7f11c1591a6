//! Writes records as Parquet files. A file is complete before its chunks are settled.
//!
//! - `settings`: the settings of the folder.
//! - `partition`: the folder of a record.
//! - `file`: a file that has a temporary name until it is complete.

mod file;
mod partition;
mod settings;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use self::file::OpenFile;
use self::partition::{Key, rows_by_key};
use super::convert::{Converter, TypeBatch};
use crate::filters::Counts;
use crate::{AnalysisError, Held, Parcel, Stage};

pub use self::settings::{ParquetSettings, TimePartition};

/// The most open files. If more are needed, even within a chunk, all are closed.
const MAX_FILES: usize = 256;

/// Writes Parquet files into folders by record type, version of the type, and the settings. Values
/// and lines that are kept as JSON text have the columns of the fields in the text.
///
/// All open files end together. Then each file gets its footer, goes to disk, and gets its final
/// name. Then the folders go to disk. Only then are the chunks of the records settled. If it is
/// dropped or killed before, it leaves files whose names begin with a dot and end in `.tmp`. No
/// reader looks at them, and the chunks are delivered again.
pub struct ParquetFolder {
    folder: PathBuf,
    settings: ParquetSettings,
    converter: Converter,
    open: HashMap<Key, OpenFile>,
    held: Held,
    /// Records in the open files.
    records: usize,
    /// Records in complete files.
    written: Counts,
    /// The arrival of the first and the last record of the open files.
    first: Option<Instant>,
    last: Option<Instant>,
    /// Numbers the files of this process.
    files: u64,
}

impl fmt::Debug for ParquetFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetFolder")
            .field("folder", &self.folder)
            .field("settings", &self.settings)
            .field("open", &self.open.len())
            .field("records", &self.records)
            .finish_non_exhaustive()
    }
}

impl ParquetFolder {
    /// Writes into this folder, which is created with the first record. Existing files in it stay.
    pub fn new(folder: impl Into<PathBuf>, settings: ParquetSettings) -> Self {
        let mut converter = Converter::new(settings.times);
        if settings.identity {
            converter = converter.with_identity();
        }
        Self {
            folder: folder.into(),
            settings,
            converter,
            open: HashMap::new(),
            held: Held::default(),
            records: 0,
            written: Counts::default(),
            first: None,
            last: None,
            files: 0,
        }
    }

    /// Adds the records in complete files with their final name to `written`.
    #[must_use]
    pub fn counting(mut self, written: Counts) -> Self {
        self.written = written;
        self
    }

    /// Writes the records of one type, each into its file.
    fn write(&mut self, batch: &TypeBatch, parcel: &Parcel) -> Result<(), AnalysisError> {
        let producer = parcel.identity().map(|identity| identity.producer);
        let base = Key {
            fingerprint: batch.schema.fingerprint(),
            producer: producer.filter(|_| self.settings.by_producer),
            slot: None,
        };
        let Some(unit) = self.settings.by_time else {
            return self.append(base, batch);
        };
        let parts = rows_by_key(base, unit, &batch.timestamps);
        if let [(key, _)] = parts.as_slice() {
            return self.append(*key, batch);
        }
        for (key, rows) in parts {
            let part = batch.take(rows).map_err(|error| refused(&error))?;
            self.append(key, &part)?;
        }
        Ok(())
    }

    fn append(&mut self, key: Key, batch: &TypeBatch) -> Result<(), AnalysisError> {
        if !self.open.contains_key(&key) {
            if self.open.len() >= MAX_FILES {
                // The chunk of these records is not held yet, so it stays unsettled.
                self.close()?;
            }
            let parts = key.folder(&batch.schema, &self.settings);
            let folder = parts
                .iter()
                .fold(self.folder.clone(), |path, part| path.join(part));
            let stem = self.stem();
            let opened = OpenFile::create(&folder, &stem, batch);
            let file = opened.map_err(AnalysisError::of_file(&folder))?;
            self.open.insert(key, file);
        }
        let file = self.open.get_mut(&key).expect("it was just opened");
        let written = file.write(&batch.rows);
        let path = file.path().to_owned();
        written.map_err(AnalysisError::of_file(&path))?;
        self.records += batch.rows.num_rows();
        Ok(())
    }

    /// Returns a name that no other file of this folder has: the time, the process, and a number.
    fn stem(&mut self) -> String {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since_epoch.map_or(0, |time| time.as_nanos());
        self.files += 1;
        format!("{nanos:020}-{}-{}", std::process::id(), self.files)
    }

    /// Ends all files, and then releases the chunks.
    fn close(&mut self) -> Result<(), AnalysisError> {
        let open = std::mem::take(&mut self.open);
        let mut whole = Vec::with_capacity(open.len());
        for file in open.into_values() {
            let path = file.path().to_owned();
            whole.push(file.finish().map_err(AnalysisError::of_file(&path))?);
        }
        let mut folders = BTreeSet::new();
        for file in whole {
            let path = file.path().to_owned();
            file.publish().map_err(AnalysisError::of_file(&path))?;
            let content = &file.content;
            self.written.add(&content.type_name, content.records);
            // A new folder is an entry of its parent folder.
            let above = path.ancestors().skip(1);
            let up_to = self.folder.parent();
            folders.extend(
                above
                    .take_while(|folder| Some(*folder) != up_to)
                    .map(Path::to_owned),
            );
        }
        for folder in folders {
            file::sync_folder(&folder).map_err(AnalysisError::of_file(&folder))?;
        }
        self.held.release_all();
        self.records = 0;
        self.first = None;
        self.last = None;
        Ok(())
    }

    /// Whether the files are large or old enough.
    fn is_due(&self) -> bool {
        let bytes: usize = self.open.values().map(OpenFile::bytes).sum();
        self.records >= self.settings.records
            || self.held.len() >= self.settings.chunks
            || bytes >= self.settings.bytes
            || self
                .first
                .is_some_and(|first| first.elapsed() >= self.settings.age)
    }
}

fn refused(error: &dyn fmt::Display) -> AnalysisError {
    AnalysisError::stage("parquet", error.to_string())
}

impl Stage for ParquetFolder {
    fn name(&self) -> &'static str {
        "parquet"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let opened = parcel.opened();
        let identity = parcel.identity();
        let batches =
            self.converter
                .convert(&opened.chunk().batch, opened.selection(), identity.as_ref());
        for batch in batches.map_err(|error| refused(&error))? {
            self.write(&batch, &parcel)?;
        }
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
        self.held.push(parcel);
        if self.is_due() {
            return self.close();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), AnalysisError> {
        self.close()
    }

    fn idle(&mut self) -> Result<bool, AnalysisError> {
        let quiet = self
            .last
            .is_some_and(|last| last.elapsed() >= self.settings.idle);
        if quiet || self.is_due() {
            self.close()?;
        }
        Ok(!self.held.is_empty())
    }
}
