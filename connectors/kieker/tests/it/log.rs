//! Kieker's text logs: real ones, golden ones, and what can be wrong with them.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, KiekerSerializer, NativeSerializer,
};
use baler_common::record::{
    BatchBuilder, Catalog, DynamicRecord, EnumType, Field, FieldType, RecordBatch, Schema, Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::log::{BadLine, LogError, LogReader, LogSettings, OnBadLine, fuzzing};
use tempfile::TempDir;

const OER: &str = "kieker.common.record.controlflow.OperationExecutionRecord";
const TIMESTAMP: &str = "kieker.common.record.misc.TimestampRecord";

fn identity(sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(7),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 2,
        },
        lane: 0,
        sequence,
    }
}

fn schema(name: &str, fields: &[(&str, FieldType)]) -> Arc<Schema> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, kind)| Field::new(*name, kind.clone()))
        .collect();
    Arc::new(Schema::new(name, fields).unwrap())
}

fn log_of_2010() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../analysis/tests/data/kieker/operation-executions-2010")
}

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../common/tests/golden/kieker")
        .join(name)
}

fn settings(on_bad_line: OnBadLine) -> LogSettings {
    let mut settings = LogSettings::default();
    settings.on_bad_line = on_bad_line;
    settings
}

fn read_strictly(folder: &Path) -> Vec<DynamicRecord> {
    LogReader::open(folder, settings(OnBadLine::Stop))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap()
}

/// The records, and the lines that were passed over.
fn read_leniently(folder: &Path) -> (Vec<DynamicRecord>, Vec<BadLine>) {
    let mut reader = LogReader::open(folder, LogSettings::default()).unwrap();
    let records: Vec<_> = reader.by_ref().map(Result::unwrap).collect();
    assert_eq!(reader.records(), u64::try_from(records.len()).unwrap());
    let bad = reader.bad_lines();
    assert_eq!(bad.reasons().values().sum::<u64>(), bad.total());
    (records, bad.first().to_vec())
}

/// A folder with one log.
fn folder(map: &str, log: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("kieker.map"), map).unwrap();
    fs::write(folder.path().join("kieker-1.dat"), log).unwrap();
    folder
}

fn batches(records: &[DynamicRecord], size: usize) -> Vec<RecordBatch> {
    let mut builder = BatchBuilder::new();
    records
        .chunks(size)
        .map(|records| {
            records
                .iter()
                .for_each(|record| builder.push_dynamic(record).unwrap());
            builder.take()
        })
        .collect()
}

#[test]
fn the_log_of_2010_is_read_whole() {
    let records = read_strictly(&log_of_2010());
    assert_eq!(records.len(), 1 + 6_540);
    let (metadata, executions) = records.split_first().unwrap();
    assert_eq!(
        metadata.schema().name(),
        "kieker.common.record.misc.KiekerMetadataRecord"
    );
    assert_eq!(metadata.as_ref().timestamp(), None);
    let mut traces: HashMap<i64, usize> = HashMap::new();
    for execution in executions {
        assert_eq!(execution.schema().name(), OER);
        assert!(execution.as_ref().timestamp().is_some());
        let [_, _, Value::Signed(trace), ..] = execution.values() else {
            unreachable!("the third field is the trace id");
        };
        *traces.entry(*trace).or_default() += 1;
    }
    assert_eq!(traces.len(), 1_635);
    assert!(traces.values().all(|executions| *executions == 4));
}

#[test]
fn every_line_of_the_log_of_2010_can_be_written_back_from_its_record() {
    let file = fs::read_dir(log_of_2010())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| path.extension().is_some_and(|extension| extension == "dat"))
        .unwrap();
    let log = fs::read_to_string(file).unwrap();
    let records = read_strictly(&log_of_2010());
    assert_eq!(log.lines().count(), records.len());
    for (line, record) in log.lines().zip(&records) {
        let class = i32::from(record.schema().name() == OER);
        let timestamp = record.as_ref().timestamp().unwrap_or(-1);
        let mut written = format!("${class};{timestamp}");
        for value in record.values() {
            written.push(';');
            written.push_str(&match value {
                Value::Bool(value) => value.to_string(),
                Value::Signed(value) => value.to_string(),
                Value::String(value) => value.to_string(),
                other => unreachable!("{other:?}"),
            });
        }
        assert_eq!(written, line);
    }
}

#[test]
fn the_log_of_2010_survives_every_container_unchanged() {
    let records = read_strictly(&log_of_2010());
    let mut serializers: Vec<Box<dyn ChunkSerializer>> = vec![Box::new(KiekerSerializer::new())];
    for compression in [
        Compression::None,
        Compression::Lz4,
        Compression::Zstd { level: 3 },
    ] {
        serializers.push(Box::new(NativeSerializer::new(compression).unwrap()));
    }
    for serializer in &mut serializers {
        for size in [100, 10_000] {
            let mut back = Vec::new();
            for (batch, sequence) in batches(&records, size).iter().zip(0..) {
                let mut chunk = Vec::new();
                let header = ChunkHeader::new(identity(sequence));
                serializer.serialize(batch, &header, &mut chunk).unwrap();
                let decoded = ChunkDecoder::default().decode(&chunk).unwrap();
                back.extend(decoded.batch.records().map(DynamicRecord::from));
            }
            assert_eq!(back, records, "{} {size}", serializer.container());
        }
    }
}

#[test]
fn a_golden_log_holds_what_its_twin_in_the_container_does() {
    let chunk = fs::read(golden("container.kika")).unwrap();
    let decoded = ChunkDecoder::default().decode(&chunk).unwrap().batch;
    let records = read_strictly(&golden("file-text-none"));
    assert_eq!(records.len(), 13);
    let twin: Vec<_> = decoded.records().map(DynamicRecord::from).collect();
    assert_eq!(records, twin);
    let [batch] = &batches(&records, 100)[..] else {
        unreachable!("one batch");
    };
    let mut bytes = Vec::new();
    KiekerSerializer::new()
        .serialize(batch, &ChunkHeader::new(identity(0)), &mut bytes)
        .unwrap();
    assert_eq!(bytes, chunk);
}

#[test]
fn what_kieker_spoils_in_its_own_log_is_named_and_the_rest_is_read() {
    let (records, bad) = read_leniently(&golden("file-text-none-odd"));
    assert_eq!(records.len(), 14);
    let [bad] = &bad[..] else {
        unreachable!("the semicolon spoils one record, of two lines: {bad:?}");
    };
    assert_eq!(
        (bad.line, bad.column, bad.field.as_deref()),
        (14, 40, Some("traceId"))
    );
    assert_eq!(
        bad.problem.to_string(),
        "\"umlaut äöü €\" is not a number of type i64"
    );
    let Some(Value::F64(tiny)) = records[13].values().get(8) else {
        unreachable!("the ninth field of the last record is a double");
    };
    assert_eq!(tiny.to_bits(), 1, "4.9E-324");
    let error = LogReader::open(golden("file-text-none-odd"), settings(OnBadLine::Stop))
        .unwrap()
        .find_map(Result::err)
        .unwrap();
    assert!(
        error
            .to_string()
            .contains("-001.dat:14:40: field traceId: "),
        "{error}"
    );
}

#[test]
fn a_line_without_a_dollar_belongs_to_the_record_before_it() {
    const BEFORE: &str = "kieker.common.record.flow.trace.operation.BeforeOperationEvent";
    // The golden log, but with a newline where its last string ends and none of its semicolons.
    let golden = golden("file-text-none-odd");
    let map = fs::read_to_string(golden.join("kieker.map")).unwrap();
    let log = fs::read_to_string(golden.join("kieker-20261120-221156691-UTC-001.dat")).unwrap();
    let log = log
        .replace("semi;colon", "semicolon")
        .replace("a.B\n$3", "a.B\r\nof two\n\nparts\n$3");
    let records = read_strictly(folder(&map, log.as_bytes()).path());
    assert_eq!(records.len(), 15);
    let texts = |record: &DynamicRecord| -> Vec<String> {
        let texts = record.values().iter().filter_map(|value| match value {
            Value::String(text) => Some(text.to_string()),
            _ => None,
        });
        texts.collect()
    };
    assert_eq!(records[2].schema().name(), BEFORE);
    assert_eq!(
        texts(&records[2]),
        ["public void a.B.c(int)", "a.B\r\nof two\n\nparts"]
    );
    assert_eq!(records[13].schema().name(), OER);
    assert_eq!(
        texts(&records[13]),
        ["semicolon\\back", "umlaut äöü €", "h\nnl"]
    );
    assert_eq!(
        records[13].values()[6..],
        [-1, -2_147_483_648].map(Value::Signed)
    );
}

#[test]
fn what_is_wrong_in_a_later_line_of_a_record_is_found_there() {
    let map = format!("$1={OER}\n$2={TIMESTAMP}");
    let log = "$1;1;a\nb\r\nüb;s;x;0;0;h;0;0\n$2;2;2\n$2;3;3\nrest\n\n$2;4;4\n$9;1\nrest\n";
    let folder = folder(&map, log.as_bytes());
    let (records, bad) = read_leniently(folder.path());
    assert_eq!(records.len(), 2);
    let places: Vec<_> = bad
        .iter()
        .map(|bad| (bad.line, bad.column, bad.problem.reason()))
        .collect();
    assert_eq!(
        places,
        [
            (3, 6, "not_a_number"),
            (5, 6, "not_a_number"),
            (9, 2, "unknown_class")
        ]
    );
    assert!(
        bad[0]
            .to_string()
            .contains("kieker-1.dat:3:6: field traceId: "),
        "{}",
        bad[0]
    );
}

#[test]
fn line_ends_of_every_system_are_read_and_the_last_may_be_missing() {
    let log = b"$1;1;10\r\n$1;2;20\r$1;3;30\n\n\r\n$1;-1;40";
    let folder = folder(&format!("1={TIMESTAMP}\r\n"), log);
    let records = read_strictly(folder.path());
    let found: Vec<_> = records
        .iter()
        .map(|record| (record.as_ref().timestamp(), record.values().to_vec()))
        .collect();
    let wanted = [(Some(1), 10), (Some(2), 20), (Some(3), 30), (None, 40)];
    assert_eq!(
        found,
        wanted.map(|(at, value)| (at, vec![Value::Signed(value)]))
    );
}

#[test]
fn every_bad_line_says_where_and_what() {
    const CPU: &str = "kieker.common.record.system.CPUUtilizationRecord";
    const META: &str = "kieker.common.record.misc.KiekerMetadataRecord";
    const EVENT: &str = "kieker.common.record.remotecontrol.ActivationParameterEvent";
    let map = format!(
        "$1={TIMESTAMP}\n$2={CPU}\n$4={META}\n5={EVENT}\n$6=my.OperationExecutionRecrd\n$7=x\n"
    );
    for (line, column, message) in [
        (
            "$1;5;99999999999999999999",
            6,
            "field timestamp: 99999999999999999999 does not fit the type i64",
        ),
        (
            "$1;5;x",
            6,
            "field timestamp: \"x\" is not a number of type i64",
        ),
        (
            "$1;;1",
            4,
            "field (timestamp): \"\" is not a number of type i64",
        ),
        (
            "$1",
            3,
            "field (timestamp): the record ends; kieker.common.record.misc.TimestampRecord has more fields",
        ),
        (
            "$1;5",
            5,
            "field timestamp: the record ends; kieker.common.record.misc.TimestampRecord has more fields",
        ),
        (
            "$1;5;6;7;8",
            8,
            "2 fields too many for kieker.common.record.misc.TimestampRecord; is there a semicolon in one of its strings?",
        ),
        ("$;5;6", 2, "\"\" is not the number of a class"),
        (
            "$3;5;6",
            2,
            "the map has no class 3; the nearest is 2, kieker.common.record.system.CPUUtilizationRecord",
        ),
        (
            "$6;5;6",
            2,
            "the record type my.OperationExecutionRecrd is not in the catalog; did you mean kieker.common.record.controlflow.OperationExecutionRecord?",
        ),
        ("$7;5;6", 2, "the record type x is not in the catalog"),
        (
            "$2;1;1;ä;0;0;1,5",
            14,
            "field system: \"1,5\" is not a number of type f64",
        ),
        (
            "$4;1;v;c;h;1;TRUE;0;N;0",
            14,
            "field debugMode: \"TRUE\" is neither true nor false",
        ),
        (
            "$5;1;p;n;3;a;b",
            10,
            "field values: a list of 3 items is announced, 2 fields are left",
        ),
        (
            "$5;1;p;n;-1",
            10,
            "field values: \"-1\" is not a number of type u32",
        ),
    ] {
        let folder = folder(&map, format!("$1;1;1\n{line}\n$1;2;2\n").as_bytes());
        let (records, bad) = read_leniently(folder.path());
        assert_eq!(records.len(), 2, "the lines around {line}");
        let [bad] = &bad[..] else {
            unreachable!("{bad:?}");
        };
        assert_eq!((bad.line, bad.column), (2, column), "{line}: {bad}");
        let (_, found) = bad
            .to_string()
            .split_once(&format!(":2:{column}: "))
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .unwrap();
        assert_eq!(found, message);
    }
}

#[test]
fn types_of_ones_own_are_read_as_far_as_a_text_log_can_hold_them() {
    let colours = Arc::new(EnumType::new("Colour", ["red", "green"]).unwrap());
    let own = schema(
        "my.Own",
        &[
            ("tiny", FieldType::I8),
            ("large", FieldType::U64),
            ("letter", FieldType::Char),
            ("half", FieldType::F32),
            ("colours", FieldType::Enum(colours).list()),
        ],
    );
    let unfit = schema("my.Unfit", &[("data", FieldType::Bytes)]);
    let mut catalog = Catalog::new();
    catalog.register(own);
    catalog.register(unfit);
    let mut settings = LogSettings::default();
    settings.catalog = Arc::new(catalog);
    let folder = folder(
        "$1=my.Own\n$2=my.Unfit\n",
        "$1;1;-128;18446744073709551615;€;0.5;2;1;0\n$1;1;128;0;a;0.5;0\n$1;1;0;0;ab;0.5;0\n\
         $1;1;0;0;a;0.5;1;2\n$2;1;x\n"
            .as_bytes(),
    );
    let mut reader = LogReader::open(folder.path(), settings).unwrap();
    let record = reader.next().unwrap().unwrap();
    assert!(reader.next().is_none());
    assert_eq!(
        record.values(),
        [
            Value::Signed(-128),
            Value::Unsigned(u64::MAX),
            Value::Char('€'),
            Value::F32(0.5),
            Value::List(vec![Value::Variant(1), Value::Variant(0)]),
        ]
    );
    let bad: Vec<_> = reader
        .bad_lines()
        .first()
        .iter()
        .map(ToString::to_string)
        .collect();
    for (bad, message) in bad.iter().zip([
        "kieker.map:2:1: a text log cannot hold my.Unfit.data of type bytes",
        "kieker-1.dat:2:6: field tiny: 128 does not fit the type i8",
        "kieker-1.dat:3:10: field letter: \"ab\" is not one character",
        "kieker-1.dat:4:18: field colours: 2 is not the number of a variant of Colour, which has 2",
        "kieker-1.dat:5:2: the map has no class 2; the nearest is 1, my.Own",
    ]) {
        assert!(bad.ends_with(message), "{bad}");
    }
    assert_eq!(bad.len(), 5);
}

#[test]
fn bytes_that_are_no_text_and_records_too_long_are_skipped() {
    let mut log = b"1;5;6\n$1;1;\xff\n$".to_vec();
    log.extend(std::iter::repeat_n(b'9', 100));
    log.extend_from_slice(b"\nrest\n$1;1;1\n$2");
    log.extend(b"\nrest".repeat(100));
    let folder = folder(&format!("$1={TIMESTAMP}"), &log);
    let mut settings = LogSettings::default();
    settings.line_bytes = 70;
    let mut reader = LogReader::open(folder.path(), settings).unwrap();
    assert!(reader.next().unwrap().is_ok());
    assert!(reader.next().is_none());
    let bad = reader.bad_lines().first();
    let places: Vec<_> = bad
        .iter()
        .map(|bad| (bad.line, bad.column, bad.problem.reason()))
        .collect();
    assert_eq!(
        places,
        [
            (1, 1, "no_dollar"),
            (2, 6, "not_utf8"),
            (3, 1, "too_long"),
            (6, 1, "too_long")
        ]
    );
    let message = bad[2].to_string();
    assert!(message.contains("longer than 70 bytes"), "{message}");
}

#[test]
fn wrong_lines_of_the_map_are_named() {
    let map =
        format!("$1={TIMESTAMP}\nnothing\n$x=y\n$1={TIMESTAMP}\n\n$1=other\n$2=a=b\\\\c\\n\\");
    let log = folder(&map, b"$1;1;1");
    let mut reader = LogReader::open(log.path(), LogSettings::default()).unwrap();
    let classes: Vec<_> = reader
        .log_map()
        .classes()
        .map(|(number, _)| number)
        .collect();
    assert_eq!(classes, [1, 2]);
    assert_eq!(reader.log_map().classes().last(), Some((2, "a=b\\c\n\\")));
    let reasons: Vec<_> = reader
        .bad_lines()
        .first()
        .iter()
        .map(|bad| (bad.line, bad.problem.reason()))
        .collect();
    assert_eq!(
        reasons,
        [(2, "no_equals"), (3, "class_number"), (6, "class_twice")]
    );
    assert!(reader.next().unwrap().is_ok());
    let error = LogReader::open(log.path(), settings(OnBadLine::Stop)).unwrap_err();
    assert!(error.to_string().contains("kieker.map:2:1: "), "{error}");
}

#[test]
fn files_are_read_in_order_of_their_names_and_others_are_listed() {
    let folder = TempDir::new().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("tpmon.map", &format!("$1={TIMESTAMP}"));
    write("tpmon-3.dat", "$1;3;3");
    write("kieker-2.dat", "$1;2;2");
    write("kieker-1.dat", "$1;1;1\n");
    write("kieker-0.dat.gz", "");
    write("kieker-0.bin", "");
    write("notes.txt", "");
    let reader = LogReader::open(folder.path(), LogSettings::default()).unwrap();
    let unread: Vec<_> = reader
        .unread_files()
        .iter()
        .map(|unread| unread.path().file_name().unwrap().to_owned())
        .collect();
    assert_eq!(unread, ["kieker-0.bin", "kieker-0.dat.gz"]);
    let times: Vec<_> = reader
        .map(|record| record.unwrap().as_ref().timestamp())
        .collect();
    assert_eq!(times, [Some(1), Some(2), Some(3)]);
}

#[test]
fn folders_that_are_no_log_are_refused_with_what_is_there() {
    let folder = TempDir::new().unwrap();
    let open = |path: &Path| LogReader::open(path, LogSettings::default()).unwrap_err();
    let inner = folder.path().join("kieker-2026-UTC");
    assert!(matches!(open(&inner), LogError::Io { .. }));
    fs::create_dir(&inner).unwrap();
    assert!(matches!(
        open(folder.path()),
        LogError::NoMap { near: None, .. }
    ));
    fs::write(inner.join("kieker.map"), "").unwrap();
    let error = open(folder.path());
    assert!(
        error.to_string().ends_with("kieker-2026-UTC?"),
        "the folder inside has a map: {error}"
    );
    assert!(matches!(open(&inner), LogError::NoLog { .. }));
}

#[test]
fn a_compressed_log_is_told_by_its_content_with_the_command_that_decompresses_it() {
    const BINARY: &str = "a binary log";
    const TEXT_MAP: &str = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=a.B$C\n";
    const BINARY_MAP: &str = "$0=kieker.common.record.misc.KiekerMetadataRecord\n$1=host1\n";
    // The first bytes of logs that Kieker wrote, one for each of its compressions.
    let gzip = b"\x1f\x8b\x08\x00\x00\x00\x00\x00".as_slice();
    let bzip2 = b"BZh91AY&SY".as_slice();
    let xz = b"\xfd7zXZ\x00\x00\x04".as_slice();
    let zip = b"PK\x03\x04\x14\x00\x08\x08".as_slice();
    let zlib = b"\x78\x9c\x75\x3b".as_slice();
    let binary = b"\0\0\0\0\xff\xff\xff\xff".as_slice();
    for (name, head, map, advice) in [
        (
            "kieker-1.gz",
            gzip,
            TEXT_MAP,
            "gzip; decompress it first: gzip -dc < IN > OUT",
        ),
        (
            "kieker-1.gz",
            bzip2,
            TEXT_MAP,
            "bzip2; decompress it first: bzip2 -dc < IN > OUT",
        ),
        (
            "kieker-1.dat",
            bzip2,
            TEXT_MAP,
            "bzip2; decompress it first: bzip2 -dc < IN > OUT",
        ),
        (
            "kieker-1.xz",
            xz,
            TEXT_MAP,
            "xz; decompress it first: xz -dc < IN > OUT",
        ),
        (
            "kieker-1.zip",
            zip,
            TEXT_MAP,
            "zip; decompress it first: unzip -p IN > OUT",
        ),
        (
            "kieker-1.df",
            zlib,
            TEXT_MAP,
            "zlib; decompress it first: pigz -dc < IN > OUT",
        ),
        (
            "kieker-1.dat.gz",
            gzip,
            TEXT_MAP,
            "gzip; decompress it first: gzip -dc < IN > OUT",
        ),
        ("kieker-1.bin", binary, BINARY_MAP, BINARY),
        ("kieker-1.dat", binary, BINARY_MAP, BINARY),
        (
            "kieker-1.xz",
            xz,
            BINARY_MAP,
            "a binary log, compressed with xz",
        ),
    ] {
        let folder = TempDir::new().unwrap();
        fs::write(folder.path().join("kieker.map"), map).unwrap();
        let path = folder.path().join(name);
        fs::write(&path, head).unwrap();
        let error = LogReader::open(folder.path(), LogSettings::default()).unwrap_err();
        assert!(matches!(error, LogError::NoTextLog { files: 1, .. }));
        let error = error.to_string();
        let to = if name == "kieker-1.dat" {
            "kieker-1.text.dat"
        } else {
            "kieker-1.dat"
        };
        let to = format!("{:?}", folder.path().join(to));
        let advice = advice
            .replace("IN", &format!("{path:?}"))
            .replace("OUT", &to);
        assert!(error.contains(&advice), "{name}: {error}");
        assert_eq!(
            error.contains("TextLogStreamHandler"),
            advice.contains(BINARY),
            "{error}"
        );
    }
}

#[test]
fn a_text_log_is_read_whatever_its_name_is() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("kieker.map"),
        format!("$1={TIMESTAMP}\n"),
    )
    .unwrap();
    fs::write(folder.path().join("kieker-1.bin"), "$1;1;1\n").unwrap();
    assert_eq!(read_strictly(folder.path()).len(), 1);
}

#[test]
fn nothing_comes_after_an_error() {
    let folder = folder(&format!("$1={TIMESTAMP}"), b"$1;1;1\n$1\n$1;2;2\n");
    fs::write(folder.path().join("kieker-2.dat"), "$1;3;3\n").unwrap();
    let reader = LogReader::open(folder.path(), settings(OnBadLine::Stop)).unwrap();
    let results: Vec<_> = reader.map(|result| result.is_ok()).collect();
    assert_eq!(results, [true, false]);
}

#[test]
fn the_setting_for_bad_lines_is_read_and_written() {
    for setting in [OnBadLine::Skip, OnBadLine::Stop] {
        assert_eq!(setting.to_string().parse(), Ok(setting));
    }
    let error = "ignore".parse::<OnBadLine>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "\"ignore\" says nothing about wrong lines; use skip or stop"
    );
}

#[test]
fn the_corpus_of_the_fuzz_target_yields_no_finding() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/log");
    let mut records = 0;
    let mut bad_lines = 0;
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let outcome = fuzzing::read(&fs::read(&path).unwrap())
            .unwrap_or_else(|error| unreachable!("{}: {error}", path.display()));
        records += outcome.records;
        bad_lines += outcome.bad_lines;
    }
    assert!(records > 20, "the corpus has records: {records}");
    assert!(bad_lines > 5, "the corpus has wrong lines: {bad_lines}");
}
