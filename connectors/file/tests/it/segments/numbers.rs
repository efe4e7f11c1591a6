//! Chunks of a folder by their numbers.

use std::fs;

use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_file::{
    FileReader, FileReaderConfig, FileWriterConfig, chunk_numbers, segment_name,
};
use baler_connector_testkit::read_label;

use crate::segments::support::{segments, soon, write};

#[test]
fn numbers_begin_with_the_oldest_segment_that_is_left() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(chunk_numbers(folder.path()).unwrap(), 0..0);
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_bytes = 1_000.try_into().unwrap();
    write(&config, 100).close(soon());
    assert_eq!(chunk_numbers(folder.path()).unwrap(), 0..100);
    let [oldest, second, ..] = segments(folder.path())[..] else {
        panic!("100 chunks need several segments")
    };
    fs::remove_file(folder.path().join(segment_name(oldest))).unwrap();
    assert_eq!(chunk_numbers(folder.path()).unwrap(), second..100);
    assert!(chunk_numbers(&folder.path().join("nothing")).is_err());
}

#[test]
fn a_range_has_its_chunks_and_no_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = FileWriterConfig::new(folder.path());
    config.segment_bytes = 1_000.try_into().unwrap();
    write(&config, 50).close(soon());
    for range in [0..50, 0..1, 7..31, 49..50, 20..20] {
        let mut config = FileReaderConfig::new(folder.path());
        config.chunks = Some(range.clone());
        let mut reader = FileReader::open(config).unwrap();
        reader.set_demand(1);
        let mut found = Vec::new();
        loop {
            match reader.receive(soon()).unwrap() {
                Received::Chunk(delivery) => {
                    found.push(read_label(&delivery.bytes).sequence);
                    reader.settle(delivery.token, Verdict::Ack).unwrap();
                }
                Received::End => break,
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(found, range.collect::<Vec<_>>());
    }
}

#[test]
fn a_range_that_the_folder_lacks_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(&FileWriterConfig::new(folder.path()), 5).close(soon());
    let mut config = FileReaderConfig::new(folder.path());
    config.chunks = Some(2..6);
    let error = FileReader::open(config).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("the chunks 0 to 5, not all of 2 to 6"),
        "{text}"
    );
}
