//! Native chunks for tests: varied ones, broken ones, and ones made by hand.

use std::sync::Arc;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, NativeSerializer,
};
use baler_common::record::{
    BatchBuilder, DynamicRecord, Field, FieldType, RecordBatch, Schema, Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::types::WELL_KNOWN_TYPES;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::arbitrary;

/// How many bytes the prefix has.
pub(crate) const PREFIX_BYTES: usize = 16;

/// Every compression of this build.
pub(crate) fn compressions() -> Vec<Compression> {
    let all = [
        Compression::None,
        Compression::Lz4,
        Compression::Zstd { level: 1 },
        Compression::Zstd { level: 19 },
    ];
    all.into_iter()
        .filter(|compression| match compression {
            Compression::Added { .. } => false,
            Compression::Lz4 => cfg!(feature = "lz4"),
            Compression::None => true,
            Compression::Zstd { .. } => cfg!(feature = "zstd"),
        })
        .collect()
}

/// A decoder that knows Kieker's types.
pub(crate) fn decoder() -> ChunkDecoder {
    ChunkDecoder::default().with_well_known_types(&WELL_KNOWN_TYPES)
}

/// A serializer that knows Kieker's types.
pub(crate) fn serializer(compression: Compression) -> NativeSerializer {
    let serializer = NativeSerializer::new(compression).unwrap();
    serializer.with_well_known_types(&WELL_KNOWN_TYPES)
}

/// The batch as a chunk.
pub(crate) fn encode(
    batch: &RecordBatch,
    header: &ChunkHeader,
    compression: Compression,
) -> Vec<u8> {
    let mut chunk = Vec::new();
    let bytes = serializer(compression)
        .serialize(batch, header, &mut chunk)
        .unwrap();
    assert_eq!(bytes, chunk.len());
    chunk
}

/// A header of the producer with this number.
pub(crate) fn header(producer: u128, sequence: u64) -> ChunkHeader {
    ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(producer),
        epoch: Epoch {
            start_unix_ns: 1_700_000_000_000_000_000,
            random: 7,
        },
        lane: 0,
        sequence,
    })
}

/// Varied small chunks under all compressions: always the same ones.
pub(crate) fn varied(chunks: usize) -> Vec<Vec<u8>> {
    let mut runner = TestRunner::deterministic();
    let strategy = (arbitrary::records(), arbitrary::header());
    let compressions = compressions().into_iter().cycle();
    compressions
        .take(chunks)
        .map(|compression| {
            let (records, header) = strategy.new_tree(&mut runner).unwrap().current();
            encode(&arbitrary::batch(&records), &header, compression)
        })
        .collect()
}

/// Corrects length and checksums, so that a decoder reaches the errors after them.
pub(crate) fn reseal(chunk: &mut [u8]) {
    let total = u32::try_from(chunk.len()).unwrap();
    let Some((content, checksum)) = chunk.split_last_chunk_mut::<4>() else {
        return;
    };
    if let Some(prefix) = content.first_chunk_mut::<PREFIX_BYTES>() {
        prefix[8..12].copy_from_slice(&total.to_le_bytes());
        let prefix_checksum = crc32c::crc32c(&prefix[..12]);
        prefix[12..].copy_from_slice(&prefix_checksum.to_le_bytes());
    }
    *checksum = crc32c::crc32c(content).to_le_bytes();
}

/// A chunk made by hand: its counts and its blocks, everything else plain.
pub(crate) fn by_hand(records: u64, types: u64, strings: u64, blocks: &[u8]) -> Vec<u8> {
    let mut fields = vec![0; 16 + 8 + 4 + 2];
    for count in [records, types, strings] {
        fields.extend(varint(count));
    }
    let mut chunk = b"BALR\x01\x01".to_vec();
    chunk.resize(PREFIX_BYTES, 0);
    chunk.extend([0, 0, 0, 0]);
    chunk.extend(varint(fields.len() as u64));
    chunk.extend(fields);
    chunk.extend_from_slice(blocks);
    chunk.extend([0; 4]);
    reseal(&mut chunk);
    chunk
}

/// One block without compression.
pub(crate) fn block(body: &[u8]) -> Vec<u8> {
    let mut block = vec![0];
    block.extend(varint(body.len() as u64));
    block.extend_from_slice(body);
    block
}

/// A variable-length number.
pub(crate) fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.extend(u8::try_from(number));
    bytes
}

/// A schema in a body: its name, then its fields' names and the bytes of their types and roles.
pub(crate) fn inline_schema(name: &str, fields: &[(&str, &[u8])]) -> Vec<u8> {
    let mut schema = vec![0];
    schema.extend(varint(name.len() as u64));
    schema.extend_from_slice(name.as_bytes());
    schema.extend(varint(fields.len() as u64));
    for (name, kind) in fields {
        schema.extend(varint(name.len() as u64));
        schema.extend_from_slice(name.as_bytes());
        schema.extend_from_slice(kind);
    }
    schema
}

/// Records of a service: two calls of operations and a measurement, over and over.
pub(crate) fn service_records(producer: u64, count: u64) -> Vec<DynamicRecord> {
    let call = Schema::new(
        "shop.Call",
        vec![
            Field::new("operation", FieldType::String),
            Field::new("duration_ns", FieldType::U64),
        ],
    );
    let load = Schema::new("shop.Load", vec![Field::new("value", FieldType::F64)]);
    let (call, load) = (Arc::new(call.unwrap()), Arc::new(load.unwrap()));
    (0..count)
        .map(|number| {
            let time = i64::try_from(1_700_000_000_000_000_000 + number * 1_000).unwrap();
            let record = if number % 3 == 2 {
                let value = Value::F64(number as f64 / 7.0);
                DynamicRecord::new(Arc::clone(&load), Some(time), [value])
            } else {
                let operation = format!("shop.Catalog.find{}(producer {producer})", number % 5);
                let values = [
                    Value::from(operation),
                    Value::Unsigned(900 + number * 7 % 100),
                ];
                DynamicRecord::new(Arc::clone(&call), Some(time), values)
            };
            record.unwrap()
        })
        .collect()
}

/// A batch of these records, taken from a builder that has served before.
pub(crate) fn batch_of(builder: &mut BatchBuilder, records: &[DynamicRecord]) -> RecordBatch {
    for record in records {
        builder.push_dynamic(record).unwrap();
    }
    builder.take()
}
