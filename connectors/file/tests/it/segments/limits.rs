//! Rotation, limits of the folder, and one writer at a time.

use std::fs;
use std::time::Duration;

use baler_common::transport::{ChunkWriter as _, Durability, RejectReason};
use baler_connector_file::{FileWriter, FileWriterConfig, FullPolicy, SyncPolicy, segment_name};
use baler_connector_testkit::{ChunkSource, Pump, within_patience};

use crate::segments::support::{finish, labels, read_all, segments, soon, write};

#[test]
fn segment_is_finished_before_it_becomes_too_large() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_bytes = 1_000.try_into().unwrap();
    write(&config, 200).close(soon());
    let segments = segments(folder.path());
    assert!(segments.len() > 20);
    for segment in &segments {
        let path = folder.path().join(segment_name(*segment));
        assert!(fs::metadata(path).unwrap().len() <= 1_000);
    }
    let sequences = labels(folder.path())
        .into_iter()
        .map(|label| label.sequence);
    assert!(sequences.eq(0..200));
}

#[test]
fn segment_is_finished_when_it_is_old() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_age = Duration::from_millis(2);
    let mut pump = write(&config, 0);
    let mut source = ChunkSource::new(1);
    within_patience("three segments", || {
        pump.push([source.next(0, 64)]);
        finish(&mut pump);
        (segments(folder.path()).len() >= 3).then_some(())
    });
}

#[test]
fn new_life_begins_a_segment_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let config = FileWriterConfig::new(folder.path());
    write(&config, 3).close(soon());
    // Opened and closed without a chunk: nothing is left behind.
    write(&config, 0).close(soon());
    write(&config, 3).close(soon());
    assert_eq!(segments(folder.path()), [0, 3]);
    assert_eq!(labels(folder.path()).len(), 6);
}

#[test]
fn second_writer_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let config = FileWriterConfig::new(folder.path());
    let pump = write(&config, 1);
    let mut second = FileWriter::new(config);
    let error = second.reopen(soon()).unwrap_err();
    assert!(error.is_retryable());
    assert!(error.to_string().contains("has locked"), "{error}");
    pump.close(soon());
    second.reopen(soon()).unwrap();
}

#[test]
fn full_folder_drops_its_oldest_segments_and_counts_them() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_bytes = 1_000.try_into().unwrap();
    config.full = FullPolicy::DropOldest;
    config.max_total_bytes = Some(5_000.try_into().unwrap());
    let writer = FileWriter::new(config);
    let stats = writer.counts_handle();
    let mut pump = Pump::open(Box::new(writer));
    pump.push(ChunkSource::new(1).take(200));
    finish(&mut pump);
    assert_eq!((pump.breaks(), pump.confirmed()), (0, 200));
    pump.close(soon());
    let stats = stats();
    let left = labels(folder.path());
    assert!(stats.dropped_segments > 10);
    assert_eq!(stats.dropped_chunks + left.len() as u64, 200);
    assert_eq!(left.last().unwrap().sequence, 199);
    let sizes = segments(folder.path()).into_iter().map(|segment| {
        fs::metadata(folder.path().join(segment_name(segment)))
            .unwrap()
            .len()
    });
    assert!(sizes.sum::<u64>() <= 5_000);
}

#[test]
fn full_folder_refuses_until_somebody_makes_room() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_bytes = 1_000.try_into().unwrap();
    config.max_total_bytes = Some(3_000.try_into().unwrap());
    let mut pump = Pump::open(Box::new(FileWriter::new(config)));
    let mut source = ChunkSource::new(1);
    pump.push(source.take(100));
    within_patience("the folder is full", || {
        pump.writer()
            .delivery_reports(&mut Vec::new())
            .is_err()
            .then_some(())
            .or_else(|| {
                let offered = pump.writer().offer(source.next(0, 64));
                let reason = offered.err()?.reason;
                matches!(reason, RejectReason::Broken(error) if error.to_string().contains("full"))
                    .then_some(())
            })
    });
    let error = pump.writer().reopen(soon()).unwrap_err();
    assert!(error.is_retryable());
    assert!(error.to_string().contains("max_total_bytes"), "{error}");
    let before = segments(folder.path());
    fs::remove_file(folder.path().join(segment_name(before[0]))).unwrap();
    pump.writer().reopen(soon()).unwrap();
    assert!(read_all(folder.path()).1.is_empty());
}

#[test]
fn chunk_in_a_segment_that_was_removed_is_not_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let config = FileWriterConfig::new(folder.path().join("chunks"));
    let mut pump = Pump::open(Box::new(FileWriter::new(config.clone())));
    let mut source = ChunkSource::new(1);
    pump.push(source.take(3));
    finish(&mut pump);
    fs::remove_dir_all(&config.folder).unwrap();
    pump.push(source.take(3));
    finish(&mut pump);
    assert_eq!(pump.breaks(), 1);
    let sequences: Vec<_> = labels(&config.folder)
        .iter()
        .map(|label| label.sequence)
        .collect();
    assert_eq!(sequences, [3, 4, 5]);
}

#[test]
fn confirmation_means_what_the_policy_says() {
    for (sync, durability) in [
        (SyncPolicy::Chunk, Durability::Disk),
        (SyncPolicy::None, Durability::Process),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let mut config = FileWriterConfig::new(folder.path());
        config.sync = sync;
        let writer = FileWriter::new(config);
        assert_eq!(writer.capability().durability, durability);
        let stats = writer.counts_handle();
        let mut pump = Pump::open(Box::new(writer));
        pump.push(ChunkSource::new(1).take(3));
        finish(&mut pump);
        let syncs = stats().syncs;
        match sync {
            SyncPolicy::Chunk => assert!((1..=3).contains(&syncs)),
            SyncPolicy::None => assert_eq!(syncs, 0),
        }
    }
}

#[test]
fn folder_that_cannot_be_is_a_final_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs::write(&file, "no folder").unwrap();
    let mut writer = FileWriter::new(FileWriterConfig::new(file.join("sub")));
    assert!(!writer.reopen(soon()).unwrap_err().is_retryable());
}
