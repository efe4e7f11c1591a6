//! decode(encode(x)) = x in the native container, for arbitrary schemas, values and headers.

use std::sync::Arc;

use baler_common::container::{ChunkSerializer, Compression, EncodeError, NativeSerializer};
use baler_common::record::{
    BatchBuilder, DynamicRecord, Field, FieldType, Interned, Record, RecordBatch, Schema, Value,
};
use baler_connector_kieker::types;
use proptest::prelude::*;

use crate::arbitrary;
use crate::native_chunks::{compressions, decoder, encode, header, serializer};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_batch_survives_every_compression(
        records in arbitrary::records(),
        header in arbitrary::header(),
    ) {
        let batch = arbitrary::batch(&records);
        let mut decoder = decoder();
        for compression in compressions() {
            let chunk = encode(&batch, &header, compression);
            let (decoded, layout) = decoder.decode_with_layout(&chunk).unwrap();
            prop_assert_eq!(&arbitrary::records_of(&decoded.batch), &records);
            prop_assert_eq!(&decoded.batch, &batch);
            prop_assert_eq!(decoded.summary.header.as_ref(), Some(&header));
            prop_assert_eq!(decoded.summary.records, Some(records.len()));
            prop_assert_eq!(decoded.summary.time_span, batch.time_span());
            prop_assert_eq!(decoder.summarize(&chunk).unwrap(), decoded.summary);
            let columns: usize = layout.columns.iter().map(|column| column.bytes).sum();
            let known = layout.schema_bytes + layout.string_bytes + layout.order_bytes + columns;
            // The rest are the lengths of the tables and the numbers of their rows.
            prop_assert!(known <= layout.body_bytes);
            prop_assert!(layout.body_bytes - known <= 6 * batch.tables().len());
            prop_assert_eq!(layout.header_bytes + layout.stored_body_bytes, chunk.len());
        }
    }
}

fn schema(name: &str, fields: &[(&str, FieldType)]) -> Arc<Schema> {
    let fields: Vec<Field> = fields
        .iter()
        .map(|(name, kind)| Field::new(*name, kind.clone()))
        .collect();
    Arc::new(Schema::new(name, fields).unwrap())
}

proptest! {
    #[test]
    fn every_batch_survives_a_serializer_that_has_seen_it(records in arbitrary::records()) {
        let batch = arbitrary::batch(&records);
        let mut serializer = serializer(Compression::None);
        for sequence in 0..3 {
            let mut chunk = Vec::new();
            serializer.serialize(&batch, &header(1, sequence), &mut chunk).unwrap();
            let decoded = decoder().decode(&chunk).unwrap();
            prop_assert_eq!(&decoded.batch, &batch);
        }
    }
}

#[test]
fn an_empty_batch_is_a_chunk_without_a_body() {
    let mut header = header(1, 9);
    header.last_of_epoch = true;
    let chunk = encode(&RecordBatch::default(), &header, Compression::None);
    let (decoded, layout) = decoder().decode_with_layout(&chunk).unwrap();
    assert_eq!(decoded.batch, RecordBatch::default());
    assert_eq!(decoded.summary.header, Some(header));
    assert_eq!((layout.body_bytes, layout.header_bytes), (0, chunk.len()));
}

#[test]
fn a_table_that_stayed_empty_is_left_out() {
    let first = schema("first", &[("a", FieldType::U8)]);
    let second = schema("second", &[("b", FieldType::U8)]);
    let third = schema("third", &[("c", FieldType::U8)]);
    let mut builder = BatchBuilder::new();
    // A row that does not follow its schema leaves a table without rows behind.
    assert!(builder.push_row(&second, 5, &[1, 2]).is_err());
    for (number, schema) in [&third, &first, &third].into_iter().enumerate() {
        builder
            .push_row(schema, 7, &[u8::try_from(number).unwrap()])
            .unwrap();
    }
    let batch = builder.take();
    assert_eq!(batch.tables().len(), 3);
    let chunk = encode(&batch, &header(1, 0), Compression::None);
    let decoded = decoder().decode(&chunk).unwrap().batch;
    assert_eq!(decoded.tables().len(), 2);
    let names: Vec<_> = decoded
        .records()
        .map(|r| r.type_name().to_owned())
        .collect();
    assert_eq!(names, ["third", "first", "third"]);
    assert_eq!(
        arbitrary::records_of(&decoded),
        arbitrary::records_of(&batch)
    );
}

#[test]
fn timestamps_that_repeat_a_field_are_not_written_twice() {
    let schema = schema("t", &[("noise", FieldType::I64), ("time", FieldType::I64)]);
    let mut builder = BatchBuilder::new();
    for number in 0..50_i64 {
        let time = 1_700_000_000_000_000_000 + number * number * 1_001;
        let values = [Value::Signed(number), Value::Signed(time)];
        let record = DynamicRecord::new(Arc::clone(&schema), Some(time), values).unwrap();
        builder.push_dynamic(&record).unwrap();
    }
    let batch = builder.take();
    let chunk = encode(&batch, &header(1, 0), Compression::None);
    let (decoded, layout) = decoder().decode_with_layout(&chunk).unwrap();
    assert_eq!(decoded.batch, batch);
    let timestamps = layout.columns.last().unwrap();
    assert_eq!(&*timestamps.field, "(timestamp)");
    assert_eq!((&*timestamps.encoding, timestamps.bytes), ("reference", 3));
}

#[test]
fn kieker_s_types_are_named_by_number() {
    let catalog = types::catalog();
    for schema in catalog.schemas() {
        let values: Vec<Value> = schema
            .fields()
            .iter()
            .map(|field| match field.field_type() {
                FieldType::Bool => Value::Bool(true),
                FieldType::String => Value::from("x"),
                FieldType::F32 => Value::F32(1.5),
                FieldType::F64 => Value::F64(2.5),
                FieldType::Char => Value::Char('k'),
                FieldType::I8 | FieldType::I16 | FieldType::I32 | FieldType::I64 => {
                    Value::Signed(3)
                }
                FieldType::Enum(_) => Value::Variant(0),
                FieldType::List(_) => Value::List(vec![Value::from("x"), Value::from("y")]),
                other => panic!("a type that Kieker does not have: {other}"),
            })
            .collect();
        let record = DynamicRecord::new(Arc::clone(schema), Some(1), values).unwrap();
        let batch = arbitrary::batch(std::slice::from_ref(&record));
        let chunk = encode(&batch, &header(1, 0), Compression::None);
        let (decoded, layout) = decoder().decode_with_layout(&chunk).unwrap();
        assert_eq!(arbitrary::records_of(&decoded.batch), [record]);
        assert_eq!(layout.schema_bytes, 1, "{}", schema.name());
    }
}

#[test]
fn equal_batches_yield_equal_bytes_whatever_was_serialized_before() {
    let records = crate::native_chunks::service_records(1, 100);
    let others = crate::native_chunks::service_records(2, 7);
    for compression in compressions() {
        let mut serializer = serializer(compression);
        let mut chunks = Vec::new();
        for records in [&records, &others, &records] {
            let mut chunk = vec![0xaa];
            let bytes = serializer
                .serialize(&arbitrary::batch(records), &header(1, 0), &mut chunk)
                .unwrap();
            assert_eq!(bytes + 1, chunk.len(), "the chunk is appended");
            chunks.push(chunk);
        }
        assert_eq!(chunks[0], chunks[2], "{compression}");
    }
}

#[test]
fn a_compression_that_is_not_built_in_is_named() {
    for compression in [Compression::Lz4, Compression::Zstd { level: 3 }] {
        let missing = !compressions()
            .iter()
            .any(|built_in| built_in.name() == compression.name());
        let error = NativeSerializer::new(compression).err();
        let expected = missing.then_some(EncodeError::CompressionMissing {
            compression: compression.name(),
        });
        assert_eq!(error, expected);
    }
}

#[test]
fn interned_strings_are_written_as_all_others_are() {
    #[derive(Record)]
    #[record(crate = "baler_common")]
    struct Said {
        interned: Interned,
        other: String,
    }

    let words = ["find", "Order", "com.example.", "0123456789abcdef", "é", ""];
    let texts: Vec<String> = (0..300)
        .map(|number| words.map(|word| word.repeat(number % 11 % 4)).concat() + words[number % 6])
        .collect();
    let mut builder = BatchBuilder::new();
    let mut serializer = serializer(Compression::None);
    // Strings of one chunk are known in the next ones.
    for size in [7, 40, 300, 40, 7] {
        let pairs = texts.iter().take(size).zip(texts.iter().rev());
        // Of strings that come once, only the interned ones are cut into words.
        for (interned, other) in std::iter::repeat_n(pairs, 8).flatten() {
            let interned = Interned::leaked(interned);
            let other = other.clone();
            builder.push(&Said { interned, other }).unwrap();
        }
        let batch = builder.take();
        let mut chunk = Vec::new();
        let header = header(1, 1);
        serializer.serialize(&batch, &header, &mut chunk).unwrap();
        let decoded = decoder().decode(&chunk).unwrap();
        assert_eq!(decoded.batch, batch);
        // Decoded strings have no number by which they could be recognised.
        assert_eq!(encode(&decoded.batch, &header, Compression::None), chunk);
    }
}
