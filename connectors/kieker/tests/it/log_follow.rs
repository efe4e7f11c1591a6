//! Logs that are still written, and positions.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader as _, Received, Settled, Token, Verdict};
use baler_connector_kieker::{KiekerLogConfig, KiekerLogReader};
use flate2::write::GzEncoder;
use tempfile::TempDir;

use crate::logs::{LogContent, TIMESTAMP};
use crate::support::records;

fn append(path: &Path, bytes: &[u8]) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(bytes).unwrap();
}

fn follow(folder: &TempDir) -> KiekerLogReader {
    let mut config = KiekerLogConfig::new(folder.path().join("log"));
    config.follow = true;
    config.position_file = Some(folder.path().join("position"));
    KiekerLogReader::open(config).unwrap()
}

fn times(content: &LogContent) -> Vec<i64> {
    assert!(content.damaged.is_empty(), "{:?}", content.damaged);
    let times = content
        .records
        .iter()
        .map(|it| it["timestamp"].as_i64().unwrap());
    times.collect()
}

#[test]
fn what_is_appended_is_read_once_across_files_folders_and_readers() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("a")).unwrap();
    let mut reader = follow(&folder);
    assert_eq!(reader.waits_for(), Some("log"));
    assert!(times(&LogContent::read(&mut reader)).is_empty());

    append(
        &path("a/kieker.map"),
        format!("$1={TIMESTAMP}\n").as_bytes(),
    );
    append(&path("a/kieker-1.dat"), b"$1;1;1\n$1;2;2\n$1;3");
    assert_eq!(times(&LogContent::read(&mut reader)), [1, 2]);
    append(&path("a/kieker-1.dat"), b";3\n");
    assert_eq!(times(&LogContent::read(&mut reader)), [3]);
    append(&path("a/kieker-1.dat"), b"$1;4;4\n");
    append(&path("a/kieker-2.dat"), b"$1;5;5\n");
    assert_eq!(times(&LogContent::read(&mut reader)), [4, 5]);
    drop(reader);

    // A process that is killed drops its reader.
    let mut reader = follow(&folder);
    append(&path("a/kieker-2.dat"), b"$1;6;6\n");
    assert_eq!(times(&LogContent::read(&mut reader)), [6]);
    fs::create_dir(path("b")).unwrap();
    append(
        &path("b/kieker.map"),
        format!("$7={TIMESTAMP}\n").as_bytes(),
    );
    append(&path("b/kieker-1.dat"), b"$7;7;7\n");
    append(&path("a/kieker-2.dat"), b"$1;8;8\n");
    assert_eq!(times(&LogContent::read(&mut reader)), [7, 8]);
    drop(reader);
    assert!(times(&LogContent::read(&mut follow(&folder))).is_empty());
}

#[test]
fn the_unit_of_times_is_kept_with_the_position() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    let metadata = "kieker.common.record.misc.KiekerMetadataRecord";
    let map = format!("$0={metadata}\n$1={TIMESTAMP}\n");
    append(&path("kieker.map"), map.as_bytes());
    append(
        &path("kieker-1.dat"),
        b"$0;1;2;K;h;0;false;0;MILLISECONDS;0\n$1;2;2\n",
    );
    let expected = |times: [i64; 2]| times.map(|time| time * 1_000_000);
    assert_eq!(
        times(&LogContent::read(&mut follow(&folder))),
        expected([1, 2])
    );
    append(&path("kieker-1.dat"), b"$1;3;3\n");
    append(&path("kieker-2.dat"), b"$1;4;4\n");
    assert_eq!(
        times(&LogContent::read(&mut follow(&folder))),
        expected([3, 4])
    );
}

#[test]
fn strings_that_the_map_gets_later_are_waited_for() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    let class = "kieker.common.record.remotecontrol.ActivationEvent";
    append(
        &path("kieker.map"),
        format!("$1={class}\n$2=a\n").as_bytes(),
    );
    let record = |time: u8, id: u8| [[0, 0, 0, 1], [0; 4], [0, 0, 0, time], [0, 0, 0, id]].concat();
    append(
        &path("kieker-1.bin"),
        &[record(1, 2), record(2, 3)].concat(),
    );
    let mut reader = follow(&folder);
    assert_eq!(times(&LogContent::read(&mut reader)), [1]);
    append(&path("kieker.map"), b"$3=");
    assert!(times(&LogContent::read(&mut reader)).is_empty());
    append(&path("kieker.map"), b"b\n");
    assert_eq!(times(&LogContent::read(&mut reader)), [2]);
}

#[test]
fn a_compressed_log_that_grows_is_read_on() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    let gzip = |text: &str| {
        let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    };
    let (first, second) = (gzip("$1;1;1\n"), gzip("$1;2;2\n"));
    append(&path("kieker-1.gz"), &first);
    let mut reader = follow(&folder);
    assert_eq!(times(&LogContent::read(&mut reader)), [1]);
    append(&path("kieker-1.gz"), &second[..9]);
    assert!(times(&LogContent::read(&mut reader)).is_empty());
    append(&path("kieker-1.gz"), &second[9..]);
    assert_eq!(times(&LogContent::read(&mut reader)), [2]);
    drop(reader);
    assert!(times(&LogContent::read(&mut follow(&folder))).is_empty());
}

/// The timestamps of the next chunk.
fn chunk(reader: &mut KiekerLogReader) -> (Token, Vec<i64>, bool) {
    let Received::Chunk(delivery) = reader.receive(Instant::now()).unwrap() else {
        panic!("no chunk");
    };
    let records = records(&delivery.bytes);
    let times = records.iter().map(|it| it["timestamp"].as_i64().unwrap());
    (delivery.token, times.collect(), delivery.redelivered)
}

#[test]
fn position_moves_along_what_is_settled_without_a_gap() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    let log: String = (0..5_000).map(|n| format!("$1;{n};{n}\n")).collect();
    append(&path("kieker-1.dat"), log.as_bytes());
    let mut reader = follow(&folder);
    reader.set_demand(3);
    let [first, second, third] = [(); 3].map(|()| chunk(&mut reader));
    assert_eq!((first.1[0], second.1[0], third.1[0]), (0, 1_024, 2_048));
    assert!(matches!(
        reader.receive(Instant::now()).unwrap(),
        Received::Idle
    ));
    reader.settle(second.0, Verdict::Retry).unwrap();
    reader.settle(first.0, Verdict::Ack).unwrap();
    assert_eq!(
        reader.settle(first.0, Verdict::Ack).unwrap(),
        Settled::Stale
    );
    let again = chunk(&mut reader);
    assert_eq!((&again.1, again.2), (&second.1, true));
    reader.settle(third.0, Verdict::Ack).unwrap();
    Box::new(reader).close(Instant::now());

    let mut reader = follow(&folder);
    let content = LogContent::read(&mut reader);
    assert_eq!(times(&content), (1_024..5_000).collect::<Vec<_>>());
    drop(reader);

    fs::remove_file(path("kieker-1.dat")).unwrap();
    append(&path("kieker-2.dat"), b"$1;7;7\n");
    let mut content = LogContent::read(&mut follow(&folder));
    assert!(content.reasons()[0].contains("kieker-1.dat: the file that was read last is gone"));
    content.damaged.clear();
    assert_eq!(times(&content), [7]);
}

#[test]
fn a_look_from_now_on_passes_over_what_is_there() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    append(&path("kieker-1.dat"), &b"$1;1;1\n".repeat(3_000));
    let mut config = KiekerLogConfig::new(path(""));
    config.follow = true;
    config.from_now = true;
    let mut reader = KiekerLogReader::open(config).unwrap();
    assert!(matches!(
        reader.receive(Instant::now()).unwrap(),
        Received::Idle
    ));
    append(&path("kieker-1.dat"), b"$1;2;2\n");
    assert!(times(&LogContent::read(&mut reader)).ends_with(&[2]));
}
