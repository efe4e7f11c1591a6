//! Logs that Kieker wrote, and the records in them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader as _, Damaged, Received, Verdict};
use baler_connector_kieker::container::TimeUnit;
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{expected, records};

pub(crate) const OER: &str = "kieker.common.record.controlflow.OperationExecutionRecord";
pub(crate) const TIMESTAMP: &str = "kieker.common.record.misc.TimestampRecord";

/// The records and the damage of a log.
#[derive(Default)]
pub(crate) struct LogContent {
    pub(crate) records: Vec<Value>,
    pub(crate) damaged: Vec<Damaged>,
    pub(crate) chunks: usize,
}

impl LogContent {
    /// Receives and acknowledges until the end, or until nothing comes any more.
    pub(crate) fn read(reader: &mut KiekerLogReader) -> Self {
        let mut content = Self::default();
        let patience = Duration::from_millis(match reader.capability().ends {
            true => 60_000,
            false => 700,
        });
        loop {
            match reader.receive(Instant::now() + patience).unwrap() {
                Received::Chunk(delivery) => {
                    content.records.extend(records(&delivery.bytes));
                    content.chunks += 1;
                    reader.settle(delivery.token, Verdict::Ack).unwrap();
                }
                Received::Damaged(damaged) => {
                    reader
                        .settle(damaged.token.unwrap(), Verdict::Reject)
                        .unwrap();
                    content.damaged.push(damaged);
                }
                Received::End | Received::Idle => return content,
                other => panic!("{other:?}"),
            }
        }
    }

    pub(crate) fn of(folder: &Path) -> Self {
        Self::read(&mut KiekerLogReader::open(KiekerLogConfig::new(folder)).unwrap())
    }

    /// The records of a log in which everything can be read.
    fn whole(folder: &Path) -> Vec<Value> {
        let content = Self::of(folder);
        assert!(content.damaged.is_empty(), "{:?}", content.damaged);
        content.records
    }

    /// Returns the text of the damage, without the folder.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let reasons = self.damaged.iter().map(|it| &it.reason);
        reasons
            .map(|reason| match reason.rsplit_once("/kieker") {
                Some((_, rest)) => format!("kieker{rest}"),
                None => reason.to_string(),
            })
            .collect()
    }
}

/// A folder with one file of a log.
pub(crate) fn folder(map: &str, log: &[u8]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("kieker.map"), map).unwrap();
    fs::write(folder.path().join("kieker-1.dat"), log).unwrap();
    folder
}

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The only folder in this one.
pub(crate) fn only_folder(parent: &str) -> PathBuf {
    let mut folders = fs::read_dir(manifest(parent)).unwrap();
    folders.next().unwrap().unwrap().path()
}

#[test]
fn every_value_of_every_log_is_that_of_the_records_beside_it() {
    let expected = expected("logs.jsonl");
    for name in [
        "binary-BZip2",
        "binary-Deflate",
        "binary-None",
        "text-XZ",
        "text-Zip",
    ] {
        let found = LogContent::whole(&manifest("tests/data/logs").join(name));
        assert_eq!(found.len(), 360, "{name}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found, expected, "{name}");
        }
    }
}

#[test]
fn golden_logs_hold_what_their_twin_in_the_container_does() {
    let chunk = fs::read(manifest("tests/golden/container.kika")).unwrap();
    let twin = records(&chunk);
    for path in [
        "tests/golden/file-text-none",
        "tests/data/logs/golden-file-binary-gzip",
        "tests/data/logs/golden-file-binary-none",
        "tests/data/logs/golden-file-text-gzip",
    ] {
        assert_eq!(LogContent::whole(&manifest(path)), twin, "{path}");
    }
}

#[test]
fn what_kieker_spoils_in_its_own_log_is_named_and_the_rest_is_read() {
    let odd = manifest("tests/golden/file-text-none-odd");
    let content = LogContent::of(&odd);
    assert_eq!(content.records.len(), 14);
    let [reason] = &content.reasons()[..] else {
        panic!("the semicolon spoils one record, of two lines");
    };
    let reason = reason.split_once("-001.dat").unwrap().1;
    let expected = ":14:40: field traceId: \"umlaut äöü €\" is not a number of type i64";
    assert_eq!(reason, expected);
    assert_eq!(
        content.records[13]["fields"]["totalUtilization"],
        json!(4.9e-324)
    );
}

#[test]
fn a_line_without_a_dollar_belongs_to_the_record_before_it() {
    let map = format!("$1={OER}\n$2={TIMESTAMP}\n");
    let log = "$1;1;a\nb\r\n\nüb;s;1;0;0;h\n;0;0\r\n$2;2;2\n\n\n$1;3;a;s;1;2;3;h;4;5\r$2;4;4\r";
    let records = LogContent::whole(folder(&map, log.as_bytes()).path());
    let names: Vec<_> = records.iter().map(|it| &it["timestamp"]).collect();
    assert_eq!(names, [1, 2, 3, 4]);
    let fields = &records[0]["fields"];
    assert_eq!(fields["operationSignature"], "a\nb\r\n\nüb");
    assert_eq!(fields["hostname"], "h\n");
}

#[test]
fn lists_are_their_length_and_their_items() {
    let class = "kieker.common.record.remotecontrol.ActivationParameterEvent";
    let map = format!("$0={class}\n");
    let log = "$0;-1;p;n;2;a;\n$0;-1;p;n;0\n$0;-1;p;n;3;a;b\n";
    let content = LogContent::of(folder(&map, log.as_bytes()).path());
    let lists: Vec<_> = content
        .records
        .iter()
        .map(|it| &it["fields"]["values"])
        .collect();
    assert_eq!(lists, [&json!(["a", ""]), &json!([])]);
    let expected =
        "kieker-1.dat:3:11: field values: a list of 3 items is announced, 2 fields are left";
    assert_eq!(content.reasons(), [expected]);
}

#[test]
fn a_backslash_before_a_semicolon_means_itself_unless_the_record_is_then_wrong() {
    let class = "kieker.common.record.remotecontrol.ActivationParameterEvent";
    let map = format!("$0={class}\n");
    let read = |log: &str| LogContent::of(folder(&map, log.as_bytes()).path());
    // This is how Kieker's writer writes a backslash at the end of a string.
    let content = read("$0;1;C:\\dir\\;n\\;1;x\\;\n$0;1;a\\;n;0\n");
    assert_eq!(content.records.len(), 1, "{:?}", content.reasons());
    let content = read("$0;1;C:\\dir\\;n\\;1;x\\\n");
    let fields = &content.records[0]["fields"];
    assert_eq!(fields["pattern"], "C:\\dir\\");
    assert_eq!(
        (&fields["name"], &fields["values"]),
        (&json!("n\\"), &json!(["x\\"]))
    );
    // This is how Kieker's reader reads it.
    let content = read("$0;1;a\\;b\\\\;n\\;m;2;\\;;c\\\\\\;d\n");
    let fields = &content.records[0]["fields"];
    assert_eq!(fields["pattern"], "a\\;b\\\\");
    assert_eq!(fields["name"], "n\\;m");
    assert_eq!(fields["values"], json!(["\\;", "c\\\\\\;d"]));
    // Neither way works: the place is that of the first problem.
    let content = read("$0;1;a\\;n;x;y\n");
    let reason = "kieker-1.dat:1:11: field values: \"x\" is not a number of type u32";
    assert_eq!(content.reasons(), [reason]);
}

/// A binary log with one event a string.
fn events(file: &str, map: &str, ids: &[i32]) -> TempDir {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("kieker.map"), map).unwrap();
    let records = ids.iter().map(|id| {
        let head = [[0, 0, 0, 1], [0; 4], [0, 0, 0, 9]].concat();
        [head, id.to_be_bytes().to_vec()].concat()
    });
    let bytes: Vec<u8> = records.flatten().collect();
    fs::write(folder.path().join(file), bytes).unwrap();
    folder
}

#[test]
fn maps_of_all_versions_keep_their_strings() {
    const NEW: &str = "kieker-20261120-221156313-UTC-001.bin";
    const OLD: &str = "kieker-20141008-101258830-UTC-000-Thread-1.bin";
    let class = "kieker.common.record.remotecontrol.ActivationEvent";
    let patterns = |file: &str, strings: &str| -> Vec<Value> {
        let map = format!("$1={class}\n{strings}");
        let records = LogContent::whole(events(file, &map, &[2, 70_000]).path());
        let patterns = records.iter().map(|it| it["fields"]["pattern"].clone());
        patterns.collect()
    };
    // Up to 1.12, line ends and backslashes are escaped; a lone backslash means itself.
    let old = patterns(OLD, "$2=C:\\\\new\\r\\n=\\x\\\n$70000=\n");
    assert_eq!(old, ["C:\\new\r\n=\\x\\", ""]);
    // Later, strings are as they are, and a line end in one looks like a line without a number.
    let new = patterns(NEW, "$2=C:\\\\new\r\nx=y\n\n$70000=1=2\r\n");
    assert_eq!(new, ["C:\\\\new\r\nx=y\n", "1=2"]);
    let map = format!("1={class}\r\n\r\n2=tpmon\r\n70000=b\r\n");
    let folder = events("tpmon-1.bin", "", &[2, 70_000]);
    fs::remove_file(folder.path().join("kieker.map")).unwrap();
    fs::write(folder.path().join("tpmon.map"), map).unwrap();
    assert_eq!(LogContent::whole(folder.path()).len(), 2);
}

#[test]
fn folders_are_merged_by_time_and_by_folder_where_there_is_none() {
    let parent = TempDir::new().unwrap();
    for (name, times) in [
        ("a", [-1, 5, 7, 7, 20]),
        ("b", [-1, -1, 5, 7, 8]),
        ("c", [1, 2, 3, 4, 30]),
    ] {
        let folder = parent.path().join(name);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("kieker.map"), format!("$1={TIMESTAMP}\n")).unwrap();
        // One file a record, and one that has none.
        fs::write(folder.join("kieker-.dat"), "").unwrap();
        for (number, time) in times.iter().enumerate() {
            let value = u32::from(name.as_bytes()[0]);
            let record = format!("$1;{time};{value}\n");
            fs::write(folder.join(format!("kieker-{number}.dat")), record).unwrap();
        }
    }
    fs::create_dir(parent.path().join("other")).unwrap();
    let records = LogContent::whole(parent.path());
    let order: String = records
        .iter()
        .map(|it| {
            let name = it["fields"]["timestamp"].as_u64().unwrap();
            let time = it["timestamp"].as_i64().unwrap_or(-1);
            format!("{}{time} ", char::from(u8::try_from(name).unwrap()))
        })
        .collect();
    assert_eq!(order, "a-1 b-1 b-1 c1 c2 c3 c4 a5 b5 a7 a7 b7 b8 a20 c30 ");
}

#[test]
fn times_are_of_the_unit_that_the_log_or_the_setting_says() {
    let times = |path: &Path, unit: Option<TimeUnit>| {
        let mut config = KiekerLogConfig::new(path);
        config.time_unit = unit;
        let content = LogContent::read(&mut KiekerLogReader::open(config).unwrap());
        assert!(content.damaged.is_empty(), "{:?}", content.damaged);
        let executions = content.records.into_iter().filter(|it| it["type"] == OER);
        let times = executions.map(|it| json!([it["timestamp"], it["fields"]["tin"]]));
        times.collect::<Vec<_>>()
    };
    let log = manifest("tests/data/milliseconds");
    let (first, second) = ((5, 1), (4, 2));
    let at = |unit: i64| {
        [first, second].map(|(timestamp, tin)| {
            let at = |ms: i64| json!((1_700_000_000_000 + ms).saturating_mul(unit));
            json!([at(timestamp), at(tin)])
        })
    };
    assert_eq!(times(&log, None), at(1_000_000));
    assert_eq!(times(&log, Some(TimeUnit::Nanoseconds)), at(1));
    assert_eq!(times(&log, Some(TimeUnit::Microseconds)), at(1_000));

    // Its records come before those of a log that begins a microsecond later, in nanoseconds.
    let parent = TempDir::new().unwrap();
    let later = parent.path().join("a");
    fs::create_dir(&later).unwrap();
    fs::write(later.join("kieker.map"), format!("$7={OER}\n")).unwrap();
    let record = "$7;1700000000004001000;op;s;1;1700000000004001000;1;h;0;0\n";
    fs::write(later.join("kieker-1.dat"), record).unwrap();
    let milliseconds = parent.path().join("b");
    fs::create_dir(&milliseconds).unwrap();
    for file in fs::read_dir(log).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), milliseconds.join(file.file_name())).unwrap();
    }
    let merged = times(parent.path(), None);
    let place = merged
        .iter()
        .position(|it| it[0] == json!(1_700_000_000_004_001_000_i64));
    assert_eq!((merged.len(), place), (3, Some(0)), "{merged:?}");
}

#[test]
fn a_binary_log_and_a_text_log_may_stand_side_by_side() {
    let folder = folder("$1=kieker.common.record.misc.EmptyRecord\n", b"$1;7\n");
    let record = [[0, 0, 0, 1], [0; 4], [0, 0, 0, 8]].concat();
    fs::write(folder.path().join("kieker-2.bin"), record).unwrap();
    let records = LogContent::whole(folder.path());
    let times: Vec<_> = records.iter().map(|it| &it["timestamp"]).collect();
    assert_eq!(times, [7, 8]);
}

#[test]
fn a_folder_without_a_log_is_refused_with_the_reason() {
    let folder = TempDir::new().unwrap();
    let refused = || {
        let config = KiekerLogConfig::new(folder.path());
        KiekerLogReader::open(config).unwrap_err().to_string()
    };
    assert!(
        refused().contains("no kieker.map in this folder, nor"),
        "{}",
        refused()
    );
    fs::write(folder.path().join("kieker.map"), "").unwrap();
    assert!(refused().contains("no file of a log"), "{}", refused());
    let config = KiekerLogConfig::new("/no/such/log");
    assert!(KiekerLogReader::open(config).is_err());
}
