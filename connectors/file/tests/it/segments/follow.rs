//! A reader beside a live writer.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_file::{
    FileReader, FileReaderConfig, FileWriterConfig, Position, SyncPolicy, segment_name,
};
use baler_connector_testkit::{ChunkSource, Pump, within_patience};

use crate::segments::support::{finish, follower, poll, put, segment, segments, soon, write};

#[test]
fn unfinished_frame_is_waited_for_byte_by_byte() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = [b"one".to_vec(), vec![7; 200], b"three".to_vec()];
    let whole = segment(0, &chunks);
    let mut reader = follower(folder.path());
    let mut file = File::create(folder.path().join(segment_name(0))).unwrap();
    let mut read = Vec::new();
    for (length, byte) in (1..).zip(&whole.bytes) {
        file.write_all(&[*byte]).unwrap();
        match poll(&mut reader) {
            Received::Chunk(delivery) => {
                assert_eq!(whole.ends[read.len()], length);
                read.push(delivery.bytes.to_vec());
            }
            Received::Idle => assert!(!whole.ends.contains(&length)),
            other => panic!("after {length} bytes: {other:?}"),
        }
    }
    assert_eq!(read, chunks);
    // As soon as there is a newer segment, an unfinished frame stays unfinished.
    file.write_all(&whole.bytes[32..60]).unwrap();
    assert!(matches!(poll(&mut reader), Received::Idle));
    put(folder.path(), 3, &segment(3, &chunks).bytes);
    assert!(matches!(poll(&mut reader), Received::Damaged(piece) if piece.bytes.len() == 28));
    assert!(matches!(poll(&mut reader), Received::Chunk(_)));
}

#[test]
fn failed_write_that_is_cut_off_and_replaced_is_no_damage() {
    let folder = tempfile::tempdir().unwrap();
    let failed = segment(0, &[b"one".to_vec(), vec![7; 200]]);
    let better = segment(0, &[b"one".to_vec(), b"better".to_vec()]);
    put(folder.path(), 0, &failed.bytes[..failed.bytes.len() - 9]);
    let mut reader = follower(folder.path());
    assert!(matches!(poll(&mut reader), Received::Chunk(_)));
    assert!(matches!(poll(&mut reader), Received::Idle));
    let path = folder.path().join(segment_name(0));
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.set_len(failed.ends[0] as u64).unwrap();
    assert!(matches!(poll(&mut reader), Received::Idle));
    file.write_all(&better.bytes[better.ends[0]..]).unwrap();
    assert!(matches!(poll(&mut reader), Received::Chunk(delivery) if delivery.bytes == "better"));
}

#[test]
fn follower_that_came_first_sees_every_segment() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path().join("not/yet"));
    config.segment_bytes = 2_000.try_into().unwrap();
    config.sync = SyncPolicy::None;
    let mut reader = follower(&config.folder);
    assert!(matches!(poll(&mut reader), Received::Idle));
    let writing = std::thread::spawn(move || write(&config, 500));
    let (mut lanes, mut sequences) = (HashSet::new(), Vec::new());
    within_patience("all is read", || {
        match poll(&mut reader) {
            Received::Chunk(delivery) => {
                sequences.push(delivery.meta.unwrap().identity.sequence);
                lanes.insert(delivery.origin.lane);
            }
            Received::Idle => {}
            other => panic!("{other:?}"),
        }
        (sequences.len() == 500).then_some(())
    });
    assert!(sequences.iter().copied().eq(0..500));
    assert!(lanes.len() > 10, "{lanes:?}");
    assert_eq!(reader.stats().missing_chunks, 0);
    writing.join().unwrap().close(soon());
}

#[test]
fn follower_goes_on_in_a_folder_that_was_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let config = FileWriterConfig::new(folder.path());
    let mut reader = follower(folder.path());
    // After the first round the numbers begin with another number, after the second with the same
    // one.
    for lives in [2, 1, 1] {
        for _ in 0..lives {
            write(&config, 3).close(soon());
        }
        for _ in 0..3 * lives {
            assert!(matches!(poll(&mut reader), Received::Chunk(_)));
        }
        assert!(matches!(poll(&mut reader), Received::Idle));
        for segment in segments(folder.path()) {
            std::fs::remove_file(folder.path().join(segment_name(segment))).unwrap();
        }
    }
}

#[test]
fn reader_waits_until_its_deadline_and_wakes_for_a_chunk() {
    let folder = tempfile::tempdir().unwrap();
    let config = FileWriterConfig::new(folder.path());
    let mut pump = write(&config, 0);
    let mut reader = follower(folder.path());
    let start = Instant::now();
    let idle = reader.receive(start + Duration::from_millis(30)).unwrap();
    assert!(matches!(idle, Received::Idle));
    assert!(start.elapsed() >= Duration::from_millis(30));
    pump.push(ChunkSource::new(1).take(1));
    finish(&mut pump);
    let received = reader.receive(soon()).unwrap();
    assert!(matches!(received, Received::Chunk(_)));
}

#[test]
fn reader_starts_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_bytes = 1_000.try_into().unwrap();
    let mut pump: Pump = write(&config, 50);
    assert!(segments(folder.path()).len() > 5);

    let open = |from: &str| {
        let mut config = FileReaderConfig::new(folder.path());
        config.from = from.parse().unwrap();
        config.follow = true;
        FileReader::open(config).unwrap()
    };
    let first = |reader: &mut FileReader| match poll(reader) {
        Received::Chunk(delivery) => Some((
            delivery.meta.unwrap().identity.sequence,
            delivery.origin.position,
        )),
        Received::Idle => None,
        other => panic!("{other:?}"),
    };
    let mut start = open("start");
    let mut places = Vec::new();
    while let Some((sequence, offset)) = first(&mut start) {
        places.push((sequence, start.watermark().segment, offset));
    }
    assert_eq!(places.len(), 50);
    for (sequence, segment, offset) in places {
        let mut reader = open(&format!("{segment}:{offset}"));
        assert_eq!(first(&mut reader), Some((sequence, offset)));
    }
    let mut end = open("end");
    assert_eq!(first(&mut end), None);
    let chunk = (0..51)
        .map(|_| 64)
        .fold(ChunkSource::new(1), |mut source, bytes| {
            source.next(0, bytes);
            source
        });
    let mut source = chunk;
    pump.push([source.next(0, 64)]);
    finish(&mut pump);
    assert_eq!(first(&mut end).map(|(sequence, _)| sequence), Some(51));
    // A segment that is gone: the oldest chunk after it.
    std::fs::remove_file(folder.path().join(segment_name(0))).unwrap();
    let gone = Position::default();
    let mut reader = open(&format!("{}:{}", gone.segment, 500));
    assert_eq!(
        first(&mut reader).map(|(sequence, _)| sequence),
        Some(segments(folder.path())[0])
    );
}

#[test]
fn end_is_told_without_follow_and_a_retried_chunk_comes_before_it() {
    let folder = tempfile::tempdir().unwrap();
    let pump = write(&FileWriterConfig::new(folder.path()), 1);
    let mut reader = FileReader::open(FileReaderConfig::new(folder.path())).unwrap();
    let Received::Chunk(delivery) = reader.receive(Instant::now()).unwrap() else {
        panic!("a chunk is there");
    };
    assert!(matches!(
        reader.receive(Instant::now()).unwrap(),
        Received::Idle
    ));
    reader.settle(delivery.token, Verdict::Retry).unwrap();
    assert!(matches!(poll(&mut reader), Received::Chunk(again) if again.redelivered));
    assert!(matches!(poll(&mut reader), Received::End));
    assert_eq!(pump.confirmed(), 1);
}
