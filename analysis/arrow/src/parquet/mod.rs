//! Records as files of Parquet, which are whole before their chunks are settled.
//!
//! - `partition`: which folder a record belongs to.
//! - `file`: a file that is written under another name until it is whole.

mod file;
mod partition;

use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baler_analysis::filters::Counts;
use baler_analysis::{AnalysisError, Held, Parcel, Stage};

use self::file::OpenFile;
use self::partition::{Key, rows_by_key};
use crate::convert::{Converter, TypeBatch};
use crate::schema::Times;

pub use self::partition::TimePartition;

/// How many files may be open. When there would be more, also within a chunk, all are closed.
const MAX_FILES: usize = 256;

/// What [`ParquetFolder`] writes, and when a file ends.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ParquetSettings {
    /// Folders by the time of logging, in UTC. Default none.
    pub by_time: Option<TimePartition>,
    /// Folders by the producer of the chunk. Default no.
    pub by_producer: bool,
    /// The unit of points in time. Default nanoseconds.
    pub times: Times,
    /// Whether to write the columns of [`Converter::with_identity`]. Default no.
    pub identity: bool,
    /// Files end when they have so many records together. Default 1 Mi.
    pub records: usize,
    /// Files end when they have so many bytes together, estimated. Default 128 MiB.
    pub bytes: usize,
    /// Files end when they have records of so many chunks together, all of which are in work until
    /// then: the source's demand should be no less. Default 4,096.
    pub chunks: usize,
    /// Files end when their first record is there for so long. Default one minute.
    pub age: Duration,
    /// Files end when nothing came for so long. Default two seconds.
    pub idle: Duration,
}

impl Default for ParquetSettings {
    fn default() -> Self {
        Self {
            by_time: None,
            by_producer: false,
            times: Times::default(),
            identity: false,
            records: 1 << 20,
            bytes: 128 << 20,
            chunks: 4_096,
            age: Duration::from_mins(1),
            idle: Duration::from_secs(2),
        }
    }
}

/// Writes Parquet files into folders by record type, version of the type, and as the settings say.
///
/// All open files end together.
/// Then each gets its footer, goes to disk, and gets its name; the folders go to disk; and only
/// then are the chunks let go of whose records are in them.
/// Dropped or killed before, it leaves files whose names begin with a dot and end in `.tmp`, which
/// no reader looks at, and its chunks are delivered again.
pub struct ParquetFolder {
    folder: PathBuf,
    settings: ParquetSettings,
    converter: Converter,
    open: HashMap<Key, OpenFile>,
    held: Held,
    /// Records in the open files.
    records: usize,
    /// Records in whole files.
    written: Counts,
    /// When the first record of the open files came, and the last one.
    first: Option<Instant>,
    last: Option<Instant>,
    /// Tells the files of this process apart.
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
    /// Writes into this folder, which is made when the first record comes.
    /// What is in it stays.
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

    /// Counts there the records in files that are whole and have their name.
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
                // The chunk whose records these are is not held yet, so it stays unsettled.
                self.close()?;
            }
            let parts = key.folder(&batch.schema, &self.settings);
            let folder = parts
                .iter()
                .fold(self.folder.clone(), |path, part| path.join(part));
            let stem = self.stem();
            let opened = OpenFile::create(&folder, &stem, batch);
            let file = opened.map_err(|error| self.error(&folder, error))?;
            self.open.insert(key, file);
        }
        let Some(file) = self.open.get_mut(&key) else {
            return Ok(());
        };
        let written = file.write(&batch.rows);
        let path = file.path().to_owned();
        written.map_err(|error| self.error(&path, error))?;
        self.records = self.records.saturating_add(batch.rows.num_rows());
        Ok(())
    }

    /// A name that no other file of this folder has: when, by which process, and its number.
    fn stem(&mut self) -> String {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let nanos = since_epoch.map_or(0, |time| time.as_nanos());
        self.files = self.files.saturating_add(1);
        format!("{nanos:020}-{}-{}", std::process::id(), self.files)
    }

    /// Ends all files, and then lets go of the chunks.
    fn close(&mut self) -> Result<(), AnalysisError> {
        let open = std::mem::take(&mut self.open);
        let mut whole = Vec::with_capacity(open.len());
        for file in open.into_values() {
            let path = file.path().to_owned();
            whole.push(file.finish().map_err(|error| self.error(&path, error))?);
        }
        let mut folders = BTreeSet::new();
        for file in whole {
            let path = file.path().to_owned();
            let (type_name, rows) = file.content();
            file.publish().map_err(|error| self.error(&path, error))?;
            self.written.add(&type_name, rows);
            // A folder that is new is an entry of the one above.
            let above = path.ancestors().skip(1);
            let up_to = self.folder.parent();
            folders.extend(
                above
                    .take_while(|folder| Some(*folder) != up_to)
                    .map(Path::to_owned),
            );
        }
        for folder in folders {
            file::sync_folder(&folder).map_err(|error| self.error(&folder, error))?;
        }
        self.held.release_all();
        self.records = 0;
        self.first = None;
        self.last = None;
        Ok(())
    }

    /// Whether the files are large or old enough.
    fn is_due(&self) -> bool {
        let bytes = self.open.values().map(OpenFile::bytes);
        self.records >= self.settings.records
            || self.held.len() >= self.settings.chunks
            || bytes.fold(0, usize::saturating_add) >= self.settings.bytes
            || self
                .first
                .is_some_and(|first| first.elapsed() >= self.settings.age)
    }

    fn error(&self, path: &Path, error: std::io::Error) -> AnalysisError {
        AnalysisError::output(path.display().to_string(), error)
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
        let identity = parcel.identity();
        let batches =
            self.converter
                .convert(&parcel.chunk().batch, parcel.selection(), identity.as_ref());
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
