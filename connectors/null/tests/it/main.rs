//! The contract, as far as it applies to a medium that discards.

#![cfg(test)]

use std::time::Instant;

use baler_common::transport::{ChunkReader, ChunkWriter, RejectReason};
use baler_connector_null::{NullConfig, NullReader, NullWriter};
use baler_connector_testkit::{ChunkSource, TestMedium};

struct Null;

impl TestMedium for Null {
    fn fresh() -> Self {
        Self
    }

    fn is_readable(&self) -> bool {
        false
    }

    fn writer(&mut self) -> Box<dyn ChunkWriter> {
        Box::new(NullWriter::new(NullConfig::default()))
    }

    fn reader(&mut self) -> Box<dyn ChunkReader> {
        Box::new(NullReader::new(NullConfig::default()))
    }
}

mod contract {
    baler_connector_testkit::contract_tests!(super::Null:);
}

#[test]
fn chunks_records_and_bytes_are_counted() {
    let mut writer = NullWriter::new(NullConfig::default());
    let counts = writer.counts();
    writer.reopen(Instant::now()).unwrap();
    let chunks = ChunkSource::new(1).take(5);
    let records: u64 = chunks
        .iter()
        .map(|chunk| u64::from(chunk.meta.records))
        .sum();
    let bytes: usize = chunks.iter().map(|chunk| chunk.bytes.len()).sum();
    for chunk in chunks {
        writer.offer(chunk).unwrap();
    }
    assert_eq!(counts.chunks(), 5);
    assert_eq!(counts.records(), records);
    assert_eq!(usize::try_from(counts.bytes()), Ok(bytes));
}

#[test]
fn window_is_full_until_confirmations_are_taken() {
    let mut writer = NullWriter::new(NullConfig::default());
    writer.reopen(Instant::now()).unwrap();
    let window = writer.capability().window_chunks.get();
    let mut source = ChunkSource::new(1);
    for chunk in source.take(window) {
        writer.offer(chunk).unwrap();
    }
    let rejected = writer.offer(source.next(0, 50)).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::Full));
    let mut delivery_reports = Vec::new();
    writer.delivery_reports(&mut delivery_reports).unwrap();
    assert_eq!(delivery_reports.len(), window);
    writer.offer(rejected.chunk).unwrap();
}
