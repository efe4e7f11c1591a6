//! Encoding and decoding alone, on one thread.

use std::hint::black_box;

use baler_common::container::{ChunkDecoder, ChunkHeader};
use baler_common::record::{BatchBuilder, RecordBatch};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_rig::checksum::Checksum;
use baler_rig::cpu::Stopwatch;

use super::case::Case;
use super::load::Load;
use super::row::Sample;
use crate::failure::Failure;

/// The load as a collector would hand it to the serializer, and as chunks.
struct Prepared {
    batches: Vec<RecordBatch>,
    chunks: Vec<Vec<u8>>,
}

impl Prepared {
    /// Encodes and decodes everything once, and checks that it is the same afterwards.
    fn new(case: &Case, load: &Load) -> Result<Self, Failure> {
        let batches = batches(load, case.chunk_records)?;
        let mut serializer = case.encoding.serializer().map_err(cannot_encode())?;
        let mut decoder = ChunkDecoder::default();
        let mut found = Checksum::default();
        let mut chunks = Vec::with_capacity(batches.len());
        for (sequence, batch) in (0..).zip(&batches) {
            let mut chunk = Vec::new();
            serializer
                .serialize(batch, &header(sequence), &mut chunk)
                .map_err(cannot_encode())?;
            found.add(&decoder.decode(&chunk).map_err(cannot_decode())?.batch);
            chunks.push(chunk);
        }
        load.check(found)?;
        Ok(Self { batches, chunks })
    }

    fn chunk_bytes(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }
}

/// Encodes every batch into the same memory.
pub(super) fn encode(case: &Case, load: &Load) -> Result<Sample, Failure> {
    let prepared = Prepared::new(case, load)?;
    let mut serializer = case.encoding.serializer().map_err(cannot_encode())?;
    let mut chunk = Vec::new();
    let mut bytes = 0;
    let stopwatch = Stopwatch::start();
    for (sequence, batch) in (0..).zip(&prepared.batches) {
        chunk.clear();
        bytes += serializer
            .serialize(batch, &header(sequence), &mut chunk)
            .map_err(cannot_encode())?;
        black_box(&chunk);
    }
    let cost = stopwatch.cost();
    if bytes != prepared.chunk_bytes() {
        return Err(Failure::new("encoding again yields other chunks"));
    }
    Ok(Sample {
        cost,
        chunk_bytes: bytes,
    })
}

/// Decodes every chunk, and drops its batch.
pub(super) fn decode(case: &Case, load: &Load) -> Result<Sample, Failure> {
    let prepared = Prepared::new(case, load)?;
    let mut decoder = ChunkDecoder::default();
    let mut records = 0;
    let stopwatch = Stopwatch::start();
    for chunk in &prepared.chunks {
        let decoded = decoder.decode(chunk).map_err(cannot_decode())?;
        records += black_box(&decoded.batch).len();
    }
    let cost = stopwatch.cost();
    let expected: usize = prepared.batches.iter().map(RecordBatch::len).sum();
    if records != expected {
        return Err(Failure::new("decoding again yields other records"));
    }
    Ok(Sample {
        cost,
        chunk_bytes: prepared.chunk_bytes(),
    })
}

fn batches(load: &Load, chunk_records: usize) -> Result<Vec<RecordBatch>, Failure> {
    let mut executions = load.executions();
    let mut builder = BatchBuilder::new();
    let mut batches = Vec::new();
    for calls in load
        .calls()
        .iter()
        .flat_map(|calls| calls.chunks(chunk_records))
    {
        for call in calls {
            let pushed = builder.push(executions.of(call));
            pushed.map_err(Failure::cannot("make a batch"))?;
        }
        batches.push(builder.take());
    }
    Ok(batches)
}

fn header(sequence: u64) -> ChunkHeader {
    ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(0x0123_4567_89ab_cdef_0123_4567_89ab_cdef),
        epoch: Epoch {
            start_unix_ns: 1_700_000_000_000_000_000,
            random: 0x0123_4567,
        },
        lane: 0,
        sequence,
    })
}

fn cannot_encode<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("encode a chunk")
}

fn cannot_decode<E: std::fmt::Display>() -> impl Fn(E) -> Failure {
    Failure::cannot("decode a chunk")
}
