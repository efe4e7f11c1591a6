//! Logs that the writer writes before an independent decoder, beside logs of Kieker.

use std::collections::HashMap;
use std::fs;
use std::io::{Cursor, Read as _};
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::{Path, PathBuf};

use baler_common::record::{BatchBuilder, DynamicRecord, Record as _, RecordBatch, Value};
use baler_common::transport::{ChunkReader, ChunkWriter, ContainerKind, Received, Verdict};
use baler_connector_kieker::types::{self, EmptyRecord};
use baler_connector_kieker::{
    KiekerLogConfig, KiekerLogReader, KiekerLogWriter, KiekerLogWriterConfig, LogCompression,
    LogFormat,
};
use serde_json::Value as Json;
use tempfile::TempDir;

use crate::chunks::{RealChunks, assert_written, batches, chunk, chunks, soon, write_all};
use crate::independent::{binary_records, class_count, map_strings, text_records};
use crate::support::{data, expected, reader};

const FORMATS: [LogFormat; 2] = [LogFormat::Binary, LogFormat::Text];

/// The names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name();
    let mut names: Vec<_> = entries.map(|it| name(it).into_string().unwrap()).collect();
    names.sort();
    names
}

/// The only folder in a folder.
fn only_log(parent: &Path) -> PathBuf {
    let names = names(parent);
    assert_eq!(names.len(), 1, "{names:?}");
    parent.join(&names[0])
}

/// The bytes of a file, decompressed as Kieker's `DirectoryReaderStage` chooses: by the last
/// extension; and the name before that.
fn decompressed(path: &Path) -> (String, Vec<u8>) {
    let bytes = fs::read(path).unwrap();
    let name = path.file_name().unwrap().to_str().unwrap();
    let (base, extension) = name.rsplit_once('.').unwrap();
    let mut out = Vec::new();
    let input = Cursor::new(&bytes);
    match extension {
        "gz" => flate2::read::GzDecoder::new(input).read_to_end(&mut out),
        "df" => flate2::read::ZlibDecoder::new(input).read_to_end(&mut out),
        "bz2" => bzip2::read::BzDecoder::new(input).read_to_end(&mut out),
        "xz" => lzma_rust2::XzReader::new(input, false).read_to_end(&mut out),
        "zip" => {
            let mut archive = zip::ZipArchive::new(input).unwrap();
            assert_eq!(archive.len(), 1);
            let mut file = archive.by_index(0).unwrap();
            assert_eq!(file.name().unwrap(), base);
            assert_eq!(file.compression(), zip::CompressionMethod::Deflated);
            file.read_to_end(&mut out)
        }
        _ => return (name.to_owned(), bytes),
    }
    .unwrap();
    (base.to_owned(), out)
}

/// The records of each file of a folder, in the order of the names.
fn files(folder: &Path) -> Vec<Vec<Json>> {
    let map = map_strings(&fs::read_to_string(folder.join("kieker.map")).unwrap());
    let logs = names(folder)
        .into_iter()
        .filter(|name| name != "kieker.map");
    let files = logs.map(|name| {
        let (name, bytes) = decompressed(&folder.join(name));
        records(&map, &name, &bytes)
    });
    files.collect()
}

fn records(map: &HashMap<i32, String>, name: &str, bytes: &[u8]) -> Vec<Json> {
    match name.rsplit_once('.').unwrap().1 {
        "bin" => binary_records(map, bytes),
        "dat" => text_records(map, std::str::from_utf8(bytes).unwrap()),
        other => panic!("Kieker reads no file with the extension {other}"),
    }
}

/// The records that this crate's own reader finds in the logs of a folder.
fn read_back(parent: &Path) -> Vec<Json> {
    let mut reader = KiekerLogReader::open(KiekerLogConfig::new(parent)).unwrap();
    let mut found = Vec::new();
    loop {
        match reader.receive(soon()).unwrap() {
            Received::Chunk(delivery) => {
                found.extend(crate::support::records(&delivery.bytes));
                reader.settle(delivery.token, Verdict::Ack).unwrap();
            }
            Received::End => return found,
            other => panic!("{other:?}"),
        }
    }
}

fn writer(config: KiekerLogWriterConfig) -> Box<KiekerLogWriter> {
    Box::new(KiekerLogWriter::new(config))
}

/// A temporary folder, and settings for logs in it.
fn config(format: LogFormat) -> (TempDir, KiekerLogWriterConfig) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = KiekerLogWriterConfig::new(folder.path());
    config.format = format;
    config.set_timestamps = false;
    (folder, config)
}

#[test]
fn independent_decoder_reads_the_text_and_the_binary_log_of_kieker_alike() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = here.join("tests/golden/file-text-none");
    let binary = here.join("tests/data/file-binary-none");
    let records = files(&text).concat();
    assert_eq!(records.len(), 13);
    assert_eq!(files(&binary).concat(), records);
}

#[test]
fn every_class_is_written_in_each_format_and_compression() {
    let expected = expected("single-ascii.jsonl");
    let mut classes: Vec<_> = expected.iter().map(|it| it["type"].to_string()).collect();
    classes.sort();
    classes.dedup();
    assert_eq!(classes.len(), class_count());
    let batches = batches(&data("single-ascii.bin"));
    for (format, extension) in FORMATS.into_iter().zip(["bin", "dat"]) {
        for (compression, suffix) in [
            (LogCompression::None, ""),
            (LogCompression::Bzip2, ".bz2"),
            (LogCompression::Deflate, ".df"),
            (LogCompression::Gzip, ".gz"),
            (LogCompression::Xz, ".xz"),
            (LogCompression::Zip, ".zip"),
        ] {
            let (folder, mut config) = config(format);
            config.compression = compression;
            let chunks = chunks(&batches);
            let count = chunks.len();
            let (delivery_reports, report) = write_all(writer(config), chunks);
            assert_written(&delivery_reports, &report, count);
            let log = only_log(folder.path());
            let names = names(&log);
            assert_eq!(names.len(), 2, "{names:?}");
            assert!(
                names[0].ends_with(&format!("-UTC-001-Baler.{extension}{suffix}")),
                "{names:?}"
            );
            assert!(
                files(&log).concat() == expected,
                "{format:?} {compression:?}"
            );
            assert!(
                read_back(folder.path()) == expected,
                "{format:?} {compression:?}"
            );
        }
    }
}

#[test]
fn files_are_rotated_by_records_and_by_bytes_and_lose_nothing() {
    let batches = batches(&data("single-mixed.bin"));
    let expected = expected("single-mixed.jsonl");
    let one = &batches[0].records().count();
    let halves: Vec<_> = batches.iter().cycle().take(6).cloned().collect();
    for format in FORMATS {
        let (folder, mut config) = config(format);
        config.max_entries = NonZeroUsize::new(2 * one).unwrap();
        let (delivery_reports, report) = write_all(writer(config), chunks(&halves));
        assert_written(&delivery_reports, &report, 6);
        let files = files(&only_log(folder.path()));
        let lengths: Vec<_> = files.iter().map(Vec::len).collect();
        assert!(
            lengths.len() >= 3 && lengths.iter().all(|it| *it <= 2 * one),
            "{lengths:?}"
        );
        let all = files.concat();
        assert!(all.len() >= expected.len() && all[..expected.len()] == expected);
    }
    let (folder, mut config) = config(LogFormat::Binary);
    config.max_bytes = NonZeroU64::new(1);
    let (delivery_reports, report) = write_all(writer(config), chunks(&halves));
    assert_written(&delivery_reports, &report, 6);
    let files = files(&only_log(folder.path()));
    assert_eq!(files.len(), 6, "a chunk is never divided");
}

#[test]
fn a_record_without_a_timestamp_gets_the_time_of_writing_unless_it_must_not() {
    let mut builder = BatchBuilder::new();
    for timestamp in [None, Some(7)] {
        let schema = EmptyRecord::schema().clone();
        builder
            .push_dynamic(&DynamicRecord::new(schema, timestamp, []).unwrap())
            .unwrap();
    }
    let batch = builder.take();
    for format in FORMATS {
        for set_timestamps in [true, false] {
            let (folder, mut config) = config(format);
            config.set_timestamps = set_timestamps;
            let sent = vec![chunk(0, ContainerKind::Native, &batch)];
            let (delivery_reports, report) = write_all(writer(config), sent);
            assert_written(&delivery_reports, &report, 1);
            let records = files(&only_log(folder.path())).concat();
            let first = records[0]["timestamp"].as_i64();
            assert_eq!(
                first.is_some_and(|it| it > 1_700_000_000_000_000_000),
                set_timestamps
            );
            assert_eq!(records[1]["timestamp"], 7);
        }
    }
}

/// A record with a string, and one with strings in a list between two others.
fn with_strings(strings: &[&str]) -> RecordBatch {
    let catalog = types::shared_catalog();
    let mut builder = BatchBuilder::new();
    for text in strings {
        let one = catalog.get("kieker.common.record.remotecontrol.ActivationEvent");
        let two = catalog.get("kieker.common.record.remotecontrol.ActivationParameterEvent");
        let text = || Value::String((*text).into());
        let list = Value::List(vec![text(), text()]);
        for (schema, values) in [(one, vec![text()]), (two, vec![text(), text(), list])] {
            let record = DynamicRecord::new(schema.unwrap().clone(), Some(7), values).unwrap();
            builder.push_dynamic(&record).unwrap();
        }
    }
    builder.take()
}

/// The first string of each record that this crate's own reader finds; all strings of a record are
/// equal.
fn strings_back(parent: &Path) -> Vec<String> {
    let records = read_back(parent);
    let strings = records.iter().map(|record| {
        let fields = &record["fields"];
        let pattern = &fields["pattern"];
        if let Some(name) = fields.get("name") {
            let list = Json::from([pattern.clone(), pattern.clone()]);
            assert_eq!((name, &fields["values"]), (pattern, &list));
        }
        pattern.as_str().unwrap().to_owned()
    });
    strings.collect()
}

#[test]
fn strings_with_separators_and_backslashes_come_back_as_kieker_reads_them() {
    // A string, and the string that Kieker's reader of text makes of the written one.
    let strings = [
        ("plain", "plain"),
        ("a;b", "a\\;b"),
        (";", "\\;"),
        ("C:\\dir\\", "C:\\dir\\\\"),
        ("a\\;b", "a\\\\\\;b"),
        ("two\r\nlines;", "two\\r\\nlines\\;"),
        ("", ""),
    ];
    let batch = with_strings(&strings.map(|it| it.0));
    for format in FORMATS {
        let (folder, config) = config(format);
        let sent = vec![chunk(0, ContainerKind::Native, &batch)];
        let writer = writer(config);
        let counts = writer.counts_handle();
        let (delivery_reports, report) = write_all(writer, sent);
        assert_written(&delivery_reports, &report, 1);
        let altered = strings.iter().filter(|(text, read)| text != read).count();
        let altered = match format {
            LogFormat::Binary => 0,
            // Two records with five strings.
            LogFormat::Text => 5 * u64::try_from(altered).unwrap(),
        };
        assert_eq!(counts().altered, altered, "{format:?}");
        let expected = strings.iter().map(|(text, read)| match format {
            LogFormat::Binary => *text,
            LogFormat::Text => *read,
        });
        let expected: Vec<_> = expected.flat_map(|text| [text, text]).collect();
        assert_eq!(strings_back(folder.path()), expected, "{format:?}");
    }
}

#[test]
fn each_opening_makes_a_whole_log_of_its_own() {
    let batches = batches(&data("single-ascii.bin"));
    for format in FORMATS {
        let (folder, mut config) = config(format);
        config.hostname = "host1".into();
        config.name = "APP".into();
        for _ in 0..2 {
            let (delivery_reports, report) =
                write_all(writer(config.clone()), chunks(&batches[..1]));
            assert_written(&delivery_reports, &report, 1);
        }
        let names = names(folder.path());
        assert_eq!(names.len(), 2);
        for name in names {
            assert!(
                name.starts_with("kieker-") && name.ends_with("-UTC-host1-APP"),
                "{name}"
            );
            let records = files(&folder.path().join(name)).concat();
            assert_eq!(records.len(), batches[0].len());
        }
    }
}

#[test]
fn a_writer_without_chunks_leaves_a_log_without_files() {
    let (folder, config) = config(LogFormat::Text);
    let (delivery_reports, report) = write_all(writer(config), Vec::new());
    assert_written(&delivery_reports, &report, 0);
    assert_eq!(names(&only_log(folder.path())), ["kieker.map"]);
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error_that_names_it() {
    let (folder, mut config) = config(LogFormat::Text);
    config.parent = folder.path().join("file");
    fs::write(&config.parent, "").unwrap();
    let error = writer(config).reopen(soon()).unwrap_err();
    assert!(
        error.is_retryable() && error.endpoint.ends_with("/file"),
        "{error}"
    );
}

/// A log in a temporary folder.
struct Log(TempDir);

impl baler_connector_testkit::TestMedium for Log {
    fn fresh() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn is_readable(&self) -> bool {
        false
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        let config = KiekerLogWriterConfig::new(self.0.path());
        Box::new(RealChunks(writer(config)))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        Box::new(reader(""))
    }
}

/// The cases of the contract that need no reader.
mod contract {
    use baler_connector_testkit::{closing, writing};

    use super::Log;

    #[test]
    fn chunk_above_the_limit_is_handed_back() {
        writing::chunk_above_the_limit_is_handed_back::<Log>();
    }

    #[test]
    fn every_ticket_is_confirmed_exactly_once() {
        writing::every_ticket_is_confirmed_exactly_once::<Log>();
    }

    #[test]
    fn offer_before_reopen_is_broken() {
        writing::offer_before_reopen_is_broken::<Log>();
    }

    #[test]
    fn owner_that_stops_waiting_is_told_of_all_when_it_waits_again() {
        writing::owner_that_stops_waiting_is_told_of_room_and_of_all_when_it_waits_again::<Log>();
    }

    #[test]
    fn close_flushes_what_was_offered() {
        closing::close_flushes_what_was_offered::<Log>();
    }

    #[test]
    fn unopened_writer_closes_at_once() {
        closing::unopened_writer_closes_at_once::<Log>();
    }
}
