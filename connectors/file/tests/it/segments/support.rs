//! Folders, and segments made by hand.

use std::fs;
use std::path::Path;
use std::time::Instant;

use baler_common::transport::{ChunkReader, Damaged, Received, Verdict};
use baler_connector_file::headers::{FrameHeader, SegmentHeader};
use baler_connector_file::{
    DAMAGED_FOLDER, FileReader, FileReaderConfig, FileWriter, FileWriterConfig, PathItem,
    parse_segment_name, read_path, segment_name,
};
use baler_connector_testkit::{ChunkSource, Label, PATIENCE, Pump, drive, read_label};

pub(crate) const TAG: u32 = 0x5eed_1234;

/// A segment's bytes, and where each frame ends.
pub(crate) struct Segment {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

/// A segment with these chunks, numbered from `first`.
pub(crate) fn segment(first: u64, chunks: &[Vec<u8>]) -> Segment {
    let header = SegmentHeader {
        first_chunk: first,
        created_unix_ns: 1,
        tag: TAG,
    };
    let mut bytes = header.encode().to_vec();
    let mut ends = Vec::new();
    for (number, chunk) in (first..).zip(chunks) {
        let meta = ChunkSource::new(1).next(0, 20).meta;
        let header = FrameHeader::new(TAG, number, meta, chunk).unwrap();
        bytes.extend(header.encode());
        bytes.extend(chunk);
        ends.push(bytes.len());
    }
    Segment { bytes, ends }
}

/// Puts a segment into a folder.
pub(crate) fn put(folder: &Path, first: u64, bytes: &[u8]) {
    fs::write(folder.join(segment_name(first)), bytes).unwrap();
}

/// All that a path holds: chunks, and damaged pieces.
pub(crate) fn read_all(path: &Path) -> (Vec<Vec<u8>>, Vec<Damaged>) {
    let (mut chunks, mut damaged) = (Vec::new(), Vec::new());
    for item in read_path(path).unwrap() {
        match item.unwrap() {
            PathItem::Chunk(delivery) => chunks.push(delivery.bytes.to_vec()),
            PathItem::Damaged(piece) => damaged.push(piece),
        }
    }
    (chunks, damaged)
}

/// The labels of all chunks in a folder that has no damage.
pub(crate) fn labels(path: &Path) -> Vec<Label> {
    let (chunks, damaged) = read_all(path);
    assert!(damaged.is_empty(), "{damaged:?}");
    chunks.iter().map(|chunk| read_label(chunk)).collect()
}

/// Writes until all is confirmed; the pump stays open.
pub(crate) fn write(config: &FileWriterConfig, chunks: usize) -> Pump {
    let mut pump = Pump::open(Box::new(FileWriter::new(config.clone())));
    pump.push(ChunkSource::new(1).take(chunks));
    finish(&mut pump);
    pump
}

pub(crate) fn finish(pump: &mut Pump) {
    drive(
        "all is confirmed",
        std::slice::from_mut(pump),
        &mut [],
        |pumps, _| pumps.iter().all(Pump::is_done),
    );
}

pub(crate) fn soon() -> Instant {
    Instant::now() + PATIENCE
}

/// The names of the segments, oldest first.
pub(crate) fn segments(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    let mut segments: Vec<u64> = names
        .filter_map(|name| parse_segment_name(name.to_str()?))
        .collect();
    segments.sort_unstable();
    segments
}

/// Returns the names and contents of the files that recovery moved aside.
pub(crate) fn set_aside(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder.join(DAMAGED_FOLDER)) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read(path).unwrap())
        })
        .collect();
    files.sort();
    files
}

pub(crate) fn follower(path: &Path) -> FileReader {
    let mut config = FileReaderConfig::new(path);
    config.follow = true;
    FileReader::open(config).unwrap()
}

/// Receives the event that is there now, and acknowledges a chunk.
pub(crate) fn poll(reader: &mut FileReader) -> Received {
    let received = reader.receive(Instant::now()).unwrap();
    if let Received::Chunk(delivery) = &received {
        reader.settle(delivery.token, Verdict::Ack).unwrap();
    }
    received
}
