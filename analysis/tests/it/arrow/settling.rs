//! No chunk is settled before its records are in a complete file.

use std::collections::VecDeque;
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baler_analysis::arrow::{Converter, ParquetFolder, ParquetSettings};
use baler_analysis::filters::Counts;
use baler_analysis::workers::{Worker, Workers};
use baler_analysis::{AnalysisError, Parcel, Source, Stage, Stop};
use baler_common::record::{DynamicRecord, Field, FieldType, Value};
use baler_common::transport::{
    ChunkReader, Delivery, Order, Origin, ReaderCapability, ReaderCloseReport, ReaderStats,
    Received, Settled, Token, TransportError, Verdict,
};
use bytes::Bytes;
use parquet::file::reader::{FileReader as _, SerializedFileReader};

use super::records::{calls, chunk, every_type, parcel, schema};

const RECORDS: i64 = 50;
const CHUNKS: u64 = 12;

/// Files below the folder, with a name that ends so.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_str().unwrap().ends_with(end) {
            found.push(path);
        }
    }
    found
}

/// Counts the rows of all files with their final name; each file must be complete.
fn rows(folder: &Path) -> i64 {
    let rows = |path: &PathBuf| {
        let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
        reader.metadata().file_metadata().num_rows()
    };
    files(folder, ".parquet").iter().map(rows).sum()
}

/// For each verdict, the number of rows in files at that time.
type Verdicts = Arc<Mutex<Vec<(Verdict, i64)>>>;

/// Delivers chunks and then nothing, and checks the folder when a chunk is settled.
struct Watching {
    capability: ReaderCapability,
    chunks: VecDeque<Bytes>,
    next: u64,
    folder: PathBuf,
    verdicts: Verdicts,
}

impl Watching {
    fn new(folder: &Path) -> (Box<Self>, Verdicts) {
        let verdicts = Verdicts::default();
        let reader = Self {
            capability: ReaderCapability::new("watching", Order::PerLane),
            chunks: (0..CHUNKS).map(|n| chunk(&calls(RECORDS), n)).collect(),
            next: 0,
            folder: folder.to_owned(),
            verdicts: Arc::clone(&verdicts),
        };
        (Box::new(reader), verdicts)
    }
}

impl ChunkReader for Watching {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, _chunks: usize) {}

    fn receive(&mut self, _by: Instant) -> Result<Received, TransportError> {
        let Some(bytes) = self.chunks.pop_front() else {
            return Ok(Received::Idle);
        };
        self.next += 1;
        Ok(Received::Chunk(Delivery {
            token: Token(self.next),
            bytes,
            origin: Origin {
                endpoint: "watching:".into(),
                lane: "0".into(),
                position: self.next,
            },
            meta: None,
            redelivered: false,
            attempts: 0,
        }))
    }

    fn settle(&mut self, _token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let rows = rows(&self.folder);
        self.verdicts.lock().unwrap().push((verdict, rows));
        Ok(Settled::Done)
    }

    fn stats(&self) -> ReaderStats {
        ReaderStats::default()
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        ReaderCloseReport::default()
    }
}

/// Runs until all chunks are settled; returns the number of rows in files at each verdict.
fn settled(folder: &Path, settings: ParquetSettings) -> Vec<i64> {
    let (reader, verdicts) = Watching::new(folder);
    let mut source = Source::new(reader);
    let mut sink = ParquetFolder::new(folder, settings);
    let deadline = Instant::now() + Duration::from_secs(30);
    let all = usize::try_from(CHUNKS).unwrap();
    source
        .run(&mut sink, Stop::default(), |_| {
            assert!(Instant::now() < deadline);
            verdicts.lock().unwrap().len() < all
        })
        .unwrap();
    let verdicts = verdicts.lock().unwrap();
    assert!(verdicts.iter().all(|(verdict, _)| *verdict == Verdict::Ack));
    verdicts.iter().map(|(_, rows)| *rows).collect()
}

#[test]
fn nothing_is_acknowledged_before_it_is_in_a_whole_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = ParquetSettings::default();
    settings.records = 150;
    settings.idle = Duration::from_secs(3_600);
    let rows = settled(folder.path(), settings);
    for (acknowledged, rows) in (1..).zip(&rows) {
        assert!(*rows >= acknowledged * RECORDS, "{acknowledged} {rows}");
    }
    // Three chunks a file.
    assert_eq!(files(folder.path(), ".parquet").len(), 4);
    assert_eq!(rows.first(), Some(&150));
    assert!(files(folder.path(), ".tmp").is_empty());
}

#[test]
fn files_end_when_nothing_comes_or_by_their_age() {
    for by_age in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = ParquetSettings::default();
        let (short, long) = (Duration::from_millis(120), Duration::from_secs(3_600));
        (settings.age, settings.idle) = if by_age { (short, long) } else { (long, short) };
        let rows = settled(folder.path(), settings);
        assert_eq!(rows.first(), Some(&(RECORDS * 12)));
        assert_eq!(files(folder.path(), ".parquet").len(), 1);
    }
}

#[test]
fn what_is_dropped_before_its_files_are_whole_leaves_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = ParquetFolder::new(folder.path(), ParquetSettings::default());
    sink.accept(parcel(&calls(10), 0)).unwrap();
    assert_eq!(files(folder.path(), ".parquet.tmp").len(), 1);
    assert!(files(folder.path(), ".parquet").is_empty());
    drop(sink);
    assert!(files(folder.path(), "").is_empty());
}

#[test]
fn what_is_counted_is_in_whole_files_when_one_of_several_fails() {
    // The order of the files is random, so one, none, or both kinds of it are tried.
    for _ in 0..8 {
        let folder = tempfile::tempdir().unwrap();
        let written = Counts::default();
        let sink = ParquetFolder::new(folder.path(), ParquetSettings::default());
        let mut sink = sink.counting(written.clone());
        sink.accept(parcel(&every_type(7), 0)).unwrap();
        sink.accept(parcel(&calls(10), 1)).unwrap();
        assert_eq!(written.records(), 0);
        let lost = files(folder.path(), ".parquet.tmp");
        let is_call = |path: &&PathBuf| path.to_str().unwrap().contains("Operation");
        std::fs::remove_file(lost.iter().find(is_call).unwrap()).unwrap();
        sink.finish().unwrap_err();
        assert_eq!(i64::try_from(written.records()), Ok(rows(folder.path())));
        assert!([0, 7].contains(&written.records()));
    }
}

#[test]
fn a_chunk_of_many_types_never_has_many_files_open() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = ParquetFolder::new(folder.path(), ParquetSettings::default());
    let records: Vec<DynamicRecord> = (0..600)
        .map(|number| {
            let schema = schema(&format!("t{number}"), vec![Field::new("n", FieldType::U32)]);
            DynamicRecord::new(schema, None, vec![Value::Unsigned(number)]).unwrap()
        })
        .collect();
    sink.accept(parcel(&records, 0)).unwrap();
    let open = files(folder.path(), ".parquet.tmp").len();
    assert!(open <= 256, "{open} files are open");
    sink.finish().unwrap();
    assert_eq!(rows(folder.path()), 600);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "").unwrap();
    let mut sink = ParquetFolder::new(&file, ParquetSettings::default());
    let error = sink.accept(parcel(&calls(1), 0)).unwrap_err();
    assert!(
        error.to_string().contains(file.to_str().unwrap()),
        "{error}"
    );
}

/// Selects a record that no chunk has.
#[derive(Default)]
struct WrongSelection(Converter);

impl Stage for WrongSelection {
    fn name(&self) -> &'static str {
        "wrong selection"
    }

    fn accept(&mut self, parcel: Parcel) -> Result<(), AnalysisError> {
        let batch = &parcel.chunk().batch;
        self.0.convert(batch, Some(&[9_999]), None).unwrap();
        Ok(())
    }
}

#[test]
fn a_wrong_selection_fails_the_worker_and_acknowledges_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (reader, verdicts) = Watching::new(folder.path());
    let mut reader = Some(reader);
    let ended = Workers::new(NonZeroUsize::MIN).run(
        |_| {
            Ok(Worker {
                source: Source::new(reader.take().unwrap()),
                stage: Box::new(WrongSelection::default()),
            })
        },
        || true,
        Instant::now,
        |_| {},
    );
    let error = ended.error.unwrap();
    assert!(error.to_string().contains("selection is not"), "{error}");
    assert_eq!(ended.report.total.given_back, 1);
    assert_eq!(*verdicts.lock().unwrap(), [(Verdict::Retry, 0)]);
}
