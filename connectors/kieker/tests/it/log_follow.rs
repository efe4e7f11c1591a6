//! Logs that are still written, and positions.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

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

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn a_compressed_log_that_grows_is_read_on() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    let (first, second) = (gzip(b"$1;1;1\n"), gzip(b"$1;2;2\n"));
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

/// What cannot be read comes again until somebody has kept it, also after a kill.
#[test]
fn a_bad_record_is_settled_when_it_is_kept() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    append(&path("kieker-1.dat"), b"$1;1;1\n$1;no;2\n$1;3;3\n");
    let mut reader = follow(&folder);
    let mut tokens = Vec::new();
    for _ in 0..2 {
        match reader.receive(Instant::now()).unwrap() {
            Received::Chunk(delivery) => reader
                .settle(delivery.token, Verdict::Ack)
                .map(drop)
                .unwrap(),
            Received::Damaged(damaged) => tokens.extend(damaged.token),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(tokens.len(), 1);
    assert_eq!(Box::new(reader).close(Instant::now()).unsettled, 1);
    let mut content = LogContent::read(&mut follow(&folder));
    assert_eq!(content.damaged.len(), 1);
    content.damaged.clear();
    assert_eq!(times(&content), [1, 3]);
    assert!(LogContent::read(&mut follow(&folder)).damaged.is_empty());
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

/// After the clock was set back, and when the counter gets a digit more, a new file has a lesser
/// name.
#[test]
fn a_new_file_is_one_that_was_not_read_whatever_its_name() {
    for names in [
        ["20261126-120000000-UTC-001", "20261126-115959500-UTC-002"],
        ["20261126-120000000-UTC-999", "20261126-120000000-UTC-1000"],
    ] {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join("log").join(name);
        let file = |name: &str| path(&format!("kieker-{name}.dat"));
        fs::create_dir_all(path("")).unwrap();
        append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
        append(&file(names[0]), b"$1;1;1\n$1;2;2\n");
        let mut reader = follow(&folder);
        assert_eq!(times(&LogContent::read(&mut reader)), [1, 2]);
        append(&file(names[1]), b"$1;3;3\n");
        assert_eq!(times(&LogContent::read(&mut reader)), [3], "{names:?}");
        append(&file(names[1]), b"$1;4;4\n");
        drop(reader);
        assert_eq!(
            times(&LogContent::read(&mut follow(&folder))),
            [4],
            "{names:?}"
        );
        assert!(times(&LogContent::read(&mut follow(&folder))).is_empty());
    }
}

#[test]
fn a_position_of_the_old_form_is_continued() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    append(&path("kieker-1.dat"), b"$1;1;1\n");
    append(&path("kieker-2.dat"), b"$1;2;2\n$1;3;3\n");
    append(&path("kieker-3.dat"), b"$1;4;4\n");
    let position = r#"{"folders":{"":{"file":"kieker-2.dat","offset":7,"line":1}}}"#;
    fs::write(folder.path().join("position"), position).unwrap();
    assert_eq!(times(&LogContent::read(&mut follow(&folder))), [3, 4]);
}

#[test]
fn a_log_that_is_not_there_yet_is_waited_for() {
    let folder = TempDir::new().unwrap();
    let mut reader = follow(&folder);
    assert_eq!(reader.waits_for(), Some("log"));
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    append(&path("kieker-1.dat"), b"$1;1;1\n");
    assert_eq!(times(&LogContent::read(&mut reader)), [1]);
}

/// The time must not grow with the square of the number of files.
#[test]
fn thousands_of_files_are_read_in_time() {
    let folder = TempDir::new().unwrap();
    fs::write(
        folder.path().join("kieker.map"),
        format!("$1={TIMESTAMP}\n"),
    )
    .unwrap();
    for number in 1..=6_000 {
        let name = format!("kieker-20261126-120000000-UTC-{number:03}.dat");
        fs::write(folder.path().join(name), format!("$1;{number};1\n")).unwrap();
    }
    let begun = Instant::now();
    let content = LogContent::of(folder.path());
    assert_eq!(times(&content), (1..=6_000).collect::<Vec<_>>());
    assert!(
        begun.elapsed() < Duration::from_secs(40),
        "{:?}",
        begun.elapsed()
    );
}

/// Random histories of a folder, with an oracle: records are written, files are rotated while the
/// clock jumps, and compressed whether they were read or not, and the reader is killed. Each record
/// comes once, or again if it was not settled at a kill.
#[test]
fn every_record_comes_once_whatever_the_clock_does() {
    histories(std::env::var("BALER_HISTORIES").map_or(50, |it| it.parse().unwrap()));
}

/// The same for longer, in the step `slow`.
#[test]
fn two_thousand_histories_lose_no_record() {
    histories(2_000);
}

/// Most of a history is waiting, so several run at a time.
fn histories(count: u64) {
    let next = AtomicU64::new(0);
    let seeds = || Some(next.fetch_add(1, Ordering::Relaxed)).filter(|seed| *seed < count);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| std::iter::from_fn(seeds).for_each(history));
        }
    });
}

fn history(seed: u64) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join("log").join(name);
    fs::create_dir_all(path("")).unwrap();
    append(&path("kieker.map"), format!("$1={TIMESTAMP}\n").as_bytes());
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut below = |limit: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % limit
    };
    let (mut clock, mut counter, mut next, mut file) = (500_000_u64, 998_u64, 1_i64, None);
    let mut reader: Option<KiekerLogReader> = None;
    let mut count: HashMap<i64, u32> = HashMap::new();
    let mut may_repeat: HashMap<i64, u32> = HashMap::new();
    let mut unsettled: Vec<(Token, Vec<i64>)> = Vec::new();
    let mut told = Vec::new();
    for round in 0..40 {
        let is_last = round == 39;
        match if is_last { 99 } else { below(100) } {
            0..35 => {
                let name = file.get_or_insert_with(|| {
                    format!("kieker-20261126-{clock:09}-UTC-{counter:03}.dat")
                });
                for _ in 0..=below(5) {
                    append(&path(name), format!("$1;{next};1\n").as_bytes());
                    next += 1;
                }
                told.push(format!("write to {name}, {next} is next"));
            }
            35..60 => {
                file = None;
                counter += 1;
                clock = match below(3) {
                    0 => clock,
                    1 => clock + below(1_000),
                    _ => clock - below(1_000),
                };
            }
            60..65 => {
                let names = fs::read_dir(path("")).unwrap();
                let names = names.map(|it| it.unwrap().file_name().into_string().unwrap());
                let names = names.filter(|it| it.ends_with(".dat") && Some(it) != file.as_ref());
                let mut names: Vec<_> = names.collect();
                names.sort();
                if !names.is_empty() {
                    let chosen = below(names.len() as u64);
                    let name = &names[usize::try_from(chosen).unwrap()];
                    let packed = gzip(&fs::read(path(name)).unwrap());
                    fs::write(path("packing"), packed).unwrap();
                    fs::rename(path("packing"), path(&format!("{name}.gz"))).unwrap();
                    fs::remove_file(path(name)).unwrap();
                    told.push(format!("compress {name}"));
                }
            }
            65..72 => {
                if let Some(reader) = reader.take() {
                    told.push(format!("kill with {} chunks unsettled", unsettled.len()));
                    drop(reader);
                    // The position is up to 100 ms old, so anything of this life may come again.
                    for time in count.keys() {
                        *may_repeat.entry(*time).or_default() += 1;
                    }
                    unsettled.clear();
                }
            }
            _ => {
                let reader = reader.get_or_insert_with(|| follow(&folder));
                // On a busy machine the reader looks into a folder less often.
                let deadline = Instant::now() + Duration::from_secs(if is_last { 20 } else { 0 });
                let written = usize::try_from(next - 1).unwrap();
                let mut polls = 0;
                while polls < 12 || count.len() < written && Instant::now() < deadline {
                    polls += 1;
                    let by = Instant::now() + Duration::from_millis(2);
                    match reader.receive(by).unwrap() {
                        Received::Chunk(delivery) => {
                            let records = records(&delivery.bytes);
                            let times = records.iter().map(|it| it["timestamp"].as_i64().unwrap());
                            let times: Vec<_> = times.collect();
                            for time in &times {
                                *count.entry(*time).or_default() += 1;
                            }
                            unsettled.push((delivery.token, times));
                        }
                        Received::Damaged(damaged) => panic!("history {seed}: {}", damaged.reason),
                        _ => {}
                    }
                }
                for (token, _) in unsettled.drain(..) {
                    reader.settle(token, Verdict::Ack).unwrap();
                }
                told.push(format!("read {}", count.len()));
            }
        }
    }
    let told = told.join("\n");
    for time in 1..next {
        let times = count.get(&time).copied().unwrap_or(0);
        let most = 1 + may_repeat.get(&time).copied().unwrap_or(0);
        assert!(
            (1..=most).contains(&times),
            "history {seed}: {time} came {times} times\n{told}"
        );
    }
    assert_eq!(
        count.len(),
        usize::try_from(next - 1).unwrap(),
        "history {seed}: foreign records"
    );
}
