//! FORMAT.md is enough to write a decoder: `tests/decode.py` was written from it alone, and reads
//! what the crate writes.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the other decoder is a program, and reads files"
)]

use std::path::Path;
use std::process::Command;

use baler_common::container::{Compression, DecodedChunk};
use baler_common::record::{DynamicRecord, FieldType, Schema, Value};
use serde_json::{Value as Json, json};

use crate::arbitrary;
use crate::native_calls;
use crate::native_chunks::{decoder, encode, header, varied};

/// The header as the other decoder prints it.
fn header_json(chunk: &DecodedChunk) -> Json {
    let header = chunk.summary.header.as_ref().unwrap();
    let identity = header.identity;
    let lost = header.lost_chunks.iter();
    let clock = header.clock.map(|clock| {
        json!([
            clock.anchor_ticks,
            clock.anchor_unix_ns,
            clock.multiplier,
            clock.shift
        ])
    });
    json!({
        "producer": format!("{:032x}", identity.producer.as_u128()),
        "epoch": [identity.epoch.start_unix_ns, u64::from(identity.epoch.random)],
        "lane": identity.lane,
        "sequence": identity.sequence,
        "records": chunk.batch.len(),
        "types": chunk.batch.tables().len(),
        "strings": chunk.batch.strings().len(),
        "last": header.last_of_epoch,
        "jumped": header.clock_jumped,
        "clock": clock,
        "span": chunk.summary.time_span,
        "losses": header.losses.iter().collect::<Vec<_>>(),
        "lost": lost.map(|lost| [lost.first_sequence, lost.chunks]).collect::<Vec<_>>(),
    })
}

fn record_json(record: &DynamicRecord) -> Json {
    json!({
        "type": record.schema().name(),
        "timestamp": record.as_ref().timestamp().unwrap_or(-1),
        "fields": fields_json(record.schema(), record.values()),
    })
}

fn fields_json(schema: &Schema, values: &[Value]) -> Json {
    let fields = schema.fields().iter().zip(values);
    fields
        .map(|(field, value)| json!([field.name(), value_json(field.field_type(), value)]))
        .collect()
}

fn value_json(kind: &FieldType, value: &Value) -> Json {
    match (kind, value) {
        (FieldType::Optional(inner), value) if *value != Value::Null => value_json(inner, value),
        (FieldType::List(inner) | FieldType::Map(inner), Value::List(items)) => {
            items.iter().map(|item| value_json(inner, item)).collect()
        }
        (FieldType::Record(schema), Value::Record(values)) => fields_json(schema, values),
        (FieldType::Enum(kind), Value::Variant(number)) => json!(kind.variant(*number)),
        (_, Value::Bool(value)) => json!(value),
        (_, Value::Signed(value)) => json!(value),
        (_, Value::Unsigned(value)) => json!(value),
        (_, Value::F32(value)) => json!(format!("{:08x}", value.to_bits())),
        (_, Value::F64(value)) => json!(format!("{:016x}", value.to_bits())),
        (_, Value::Char(value)) => json!(value),
        (_, Value::String(value)) => json!(&**value),
        (_, Value::Bytes(value)) => {
            let bytes = value.iter().map(|byte| format!("{byte:02x}"));
            json!(bytes.collect::<String>())
        }
        (_, Value::Null) => Json::Null,
        (kind, value) => unreachable!("{value:?} is no {kind}"),
    }
}

/// Returns the other decoder's output for the chunks, line by line.
fn decode_by_document(chunks: &[Vec<u8>]) -> Vec<Json> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let paths = (0..chunks.len()).map(|number| folder.path().join(format!("{number}.chunk")));
    let paths: Vec<_> = paths.collect();
    for (path, chunk) in paths.iter().zip(chunks) {
        std::fs::write(path, chunk).unwrap();
    }
    let output = Command::new("python3")
        .arg(crate_folder.join("tests/decode.py"))
        .arg(crate_folder.join("FORMAT.md"))
        .args(&paths)
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{message}");
    let lines = output.stdout.split(|byte| *byte == b'\n');
    lines
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

#[track_caller]
fn same_by_document(chunks: &[Vec<u8>]) {
    let mut decoder = decoder();
    let mut expected = Vec::new();
    for chunk in chunks {
        let decoded = decoder.decode(chunk).unwrap();
        expected.push(header_json(&decoded));
        let records = arbitrary::records_of(&decoded.batch);
        expected.extend(records.iter().map(record_json));
    }
    let found = decode_by_document(chunks);
    for (found, expected) in found.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
    assert_eq!(found.len(), expected.len());
}

/// Chunks with zstd (RFC 8878) are left out, because Python before 3.14 does not support it.
fn can_be_read(chunk: &[u8]) -> bool {
    let summary = decoder().summarize(chunk);
    summary.is_ok_and(|summary| summary.compression.name() != "zstd")
}

#[test]
fn golden_chunks_are_read_by_the_document() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/native");
    let files = std::fs::read_dir(folder).unwrap();
    let chunks = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
    let chunks: Vec<_> = chunks.filter(|chunk| can_be_read(chunk)).collect();
    assert!(chunks.len() >= 6, "{}", chunks.len());
    same_by_document(&chunks);
}

#[test]
fn varied_chunks_are_read_by_the_document() {
    let mut chunks = varied(200);
    chunks.retain(|chunk| can_be_read(chunk));
    assert!(chunks.len() >= 50, "{}", chunks.len());
    same_by_document(&chunks);
}

#[test]
fn calls_are_read_by_the_document() {
    let mut calls = native_calls::nested(3, 9, 3);
    let whole: Vec<_> = calls.iter().map(native_calls::record).collect();
    // Sessions that change within a trace, and calls that do not nest.
    for (number, call) in (0..).zip(&mut calls) {
        call.session = number % 3;
        call.ess = i64::from(number * 7 % 5) - 1;
        call.logged -= 1;
    }
    let wild: Vec<_> = calls.iter().map(native_calls::record).collect();
    let chunks = whole.chunks(100).chain(wild.chunks(50));
    let chunks = chunks.map(|records| {
        let batch = arbitrary::batch(records);
        encode(&batch, &header(1, 0), Compression::None)
    });
    same_by_document(&chunks.collect::<Vec<_>>());
}
