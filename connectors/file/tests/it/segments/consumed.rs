//! Segments that all consumers have settled are removed if the settings ask for it, and no others.

use std::fs;
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_file::{
    ConsumerName, FileReader, FileReaderConfig, FileWriter, FileWriterConfig, Keep, backlog,
    remove_consumed,
};
use baler_connector_testkit::{ChunkSource, Pump};

use crate::segments::support::{finish, segments, soon, write};

fn small_segments(folder: &Path) -> FileWriterConfig {
    let mut config = FileWriterConfig::new(folder);
    config.segment_bytes = 1_000.try_into().unwrap();
    config
}

fn reader(folder: &Path, consumer: &str, keep: Keep) -> Box<FileReader> {
    let mut config = FileReaderConfig::new(folder);
    config.consumer = Some(consumer.parse().unwrap());
    config.commit_interval = std::time::Duration::ZERO;
    config.follow = true;
    config.keep = keep;
    Box::new(FileReader::open(config).unwrap())
}

/// Settles the next chunks.
fn settle(reader: &mut FileReader, chunks: usize) {
    for _ in 0..chunks {
        let Received::Chunk(delivery) = reader.receive(Instant::now()).unwrap() else {
            panic!("there are fewer chunks");
        };
        reader.settle(delivery.token, Verdict::Ack).unwrap();
    }
}

#[test]
fn segment_stays_until_the_slowest_consumer_has_settled_it() {
    let folder = tempfile::tempdir().unwrap();
    write(&small_segments(folder.path()), 100).close(soon());
    let before = segments(folder.path());
    assert!(before.len() > 10);
    assert_eq!(remove_consumed(folder.path()).unwrap(), 0, "no consumer");
    let mut fast = reader(folder.path(), "fast", Keep::All);
    let mut slow = reader(folder.path(), "slow.one", Keep::All);
    settle(&mut fast, 100);
    assert_eq!(remove_consumed(folder.path()).unwrap(), 0);
    settle(&mut slow, 50);
    let removed = remove_consumed(folder.path()).unwrap();
    let left = segments(folder.path());
    assert_eq!(removed, (before.len() - left.len()) as u64);
    // The segment with the fiftieth chunk stays.
    assert!(left[0] <= 50 && left[1] > 50, "{left:?}");
    settle(&mut slow, 50);
    fast.close(soon());
    slow.close(soon());
    remove_consumed(folder.path()).unwrap();
    assert_eq!(segments(folder.path()), [0_u64; 0]);
    // Numbers go on, and both consumers with them.
    write(&small_segments(folder.path()), 3).close(soon());
    assert_eq!(segments(folder.path()), [100]);
    settle(&mut reader(folder.path(), "fast", Keep::All), 3);
}

#[test]
fn newest_segment_stays_while_a_writer_has_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut pump = write(&small_segments(folder.path()), 30);
    let mut one = reader(folder.path(), "one", Keep::All);
    settle(&mut one, 30);
    remove_consumed(folder.path()).unwrap();
    assert_eq!(segments(folder.path()).len(), 1);
    // The chunk after those that were written.
    pump.push(ChunkSource::new(1).take(31).pop());
    finish(&mut pump);
    assert_eq!(pump.breaks(), 0);
    settle(&mut one, 1);
    pump.close(soon());
}

#[test]
fn reader_that_keeps_nothing_removes_behind_itself() {
    let folder = tempfile::tempdir().unwrap();
    write(&small_segments(folder.path()), 100).close(soon());
    let before = segments(folder.path()).len();
    let mut one = reader(folder.path(), "one", Keep::Consumed);
    settle(&mut one, 50);
    assert!(segments(folder.path()).len() < before);
    settle(&mut one, 50);
    one.close(soon());
    assert_eq!(segments(folder.path()), [0_u64; 0]);
}

#[test]
fn bounded_folder_goes_on_when_its_consumer_does() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = small_segments(folder.path());
    config.max_total_bytes = Some(5_000.try_into().unwrap());
    let mut pump = Pump::open(Box::new(FileWriter::new(config)));
    let mut one = reader(folder.path(), "one", Keep::Consumed);
    pump.push(ChunkSource::new(1).take(300));
    let mut settled = 0;
    while settled < 300 {
        pump.step();
        if let Received::Chunk(delivery) = one.receive(Instant::now()).unwrap() {
            one.settle(delivery.token, Verdict::Ack).unwrap();
            settled += 1;
        }
    }
    finish(&mut pump);
    pump.close(soon());
    assert!(one.stats().consumed_segments > 20);
}

#[test]
fn backlog_is_what_a_consumer_has_not_settled() {
    let folder = tempfile::tempdir().unwrap();
    let name: ConsumerName = "one".parse().unwrap();
    assert_eq!(
        backlog(&folder.path().join("none"), &name).unwrap().chunks,
        0
    );
    let chunks = ChunkSource::new(1).take(40);
    let bytes = |chunks: &[baler_common::transport::Chunk]| -> u64 {
        chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum()
    };
    write(&small_segments(folder.path()), 40).close(soon());
    let all = backlog(folder.path(), &name).unwrap();
    assert_eq!((all.chunks, all.bytes), (40, bytes(&chunks)));
    settle(&mut reader(folder.path(), "one", Keep::All), 25);
    let rest = backlog(folder.path(), &name).unwrap();
    assert_eq!((rest.chunks, rest.bytes), (15, bytes(&chunks[25..])));
    let records = chunks[25..]
        .iter()
        .map(|chunk| u64::from(chunk.meta.records));
    assert_eq!(rest.records, records.sum::<u64>());
    fs::remove_dir_all(folder.path()).unwrap();
}
