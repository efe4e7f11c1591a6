//! Sinks take limited memory, whatever a chunk contains: the corpus of the fuzz target `sinks`, the
//! corpus of the columns, and a chunk that expands.
//!
//! A separate test binary, because it counts every allocation of its process.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baler_common::container::{ChunkHeader, ChunkSerializer as _, Compression, NativeSerializer};
use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, Schema, Value};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

mod bodies;
#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

/// How many records the chunk that expands has, each with a text of 1,000 bytes: 100 MB, which is
/// more than a sink may take.
const RECORDS: usize = 100_000;

/// A chunk of about a thousand bytes that is much larger when it is written.
fn chunk_that_expands() -> Vec<u8> {
    let schema = Schema::new("t", vec![Field::new("text", FieldType::String)]).unwrap();
    let text = Value::String("x".repeat(1_000).into());
    let record = DynamicRecord::new(Arc::new(schema), None, vec![text]).unwrap();
    let mut batch = BatchBuilder::new();
    (0..RECORDS).for_each(|_| batch.push_dynamic(&record).unwrap());
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 1,
            random: 1,
        },
        lane: 0,
        sequence: 0,
    });
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    let mut chunk = Vec::new();
    serializer
        .serialize(&batch.take(), &header, &mut chunk)
        .unwrap();
    chunk
}

/// One test: a second one beside it would allocate.
#[test]
fn corpora_and_a_chunk_that_expands_are_written_within_bounded_memory() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for corpus in ["fuzz/corpus/sinks", "../common/fuzz/corpus/columns"] {
        let entries = fs::read_dir(root.join(corpus)).unwrap();
        let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        assert!(paths.len() >= 10, "the corpus {corpus} is gone");
        for path in paths {
            bodies::sinks(&fs::read(&path).unwrap());
        }
    }
    let chunk = chunk_that_expands();
    assert!(chunk.len() < 2_000, "{} bytes", chunk.len());
    bodies::sinks(&chunk);
}
