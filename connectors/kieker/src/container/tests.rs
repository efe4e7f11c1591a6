//! Data that the container refuses, on both sides.

use std::sync::Arc;

use baler_common::container::{
    ChunkHeader, ChunkSerializer as _, DecodeError, DecodeErrorKind, EncodeError, Limits,
};
use baler_common::record::{
    BatchBuilder, Catalog, DynamicRecord, Field, FieldType, RecordBatch, Schema, Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};

use super::*;

fn header() -> ChunkHeader {
    ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(0),
        epoch: Epoch {
            start_unix_ns: 0,
            random: 0,
        },
        lane: 0,
        sequence: 0,
    })
}

fn schema(name: &str, fields: &[(&str, FieldType)]) -> Arc<Schema> {
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, field_type)| Field::new(*name, field_type.clone()))
        .collect();
    Arc::new(Schema::new(name, fields).unwrap())
}

fn batch(records: &[(&Arc<Schema>, Vec<Value>)]) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for (schema, values) in records {
        let record = DynamicRecord::new(Arc::clone(schema), Some(7), values.clone()).unwrap();
        builder.push_dynamic(&record).unwrap();
    }
    builder.take()
}

fn encode(batch: &RecordBatch) -> Result<Vec<u8>, EncodeError> {
    let mut out = b"before".to_vec();
    let result = KiekerSerializer::new().serialize(batch, &header(), &mut out);
    assert!(out.starts_with(b"before"));
    match result {
        Ok(bytes) => assert_eq!(bytes, out.len() - 6),
        Err(_) => assert_eq!(out, b"before", "nothing is left behind by an error"),
    }
    result.map(|_| out.split_off(6))
}

/// The default limits, changed.
fn limits(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = Limits::default();
    change(&mut limits);
    limits
}

fn decoder(schemas: &[&Arc<Schema>], limits: Limits) -> ChunkDecoder {
    let mut catalog = Catalog::new();
    for schema in schemas {
        catalog.register(Arc::clone(schema));
    }
    ChunkDecoder::new(limits).with_deserializer(KiekerDeserializer::new(Arc::new(catalog)))
}

fn decode(schemas: &[&Arc<Schema>], chunk: &[u8]) -> Result<RecordBatch, DecodeError> {
    let decoded = decoder(schemas, Limits::default()).decode(chunk)?;
    Ok(decoded.batch)
}

/// A chunk from its parts; the strings are ASCII and short.
fn chunk(records: &[u8], strings: &[&str]) -> Vec<u8> {
    let mut chunk = b"KIKADFLT".to_vec();
    chunk.extend_from_slice(records);
    chunk.push(u8::try_from(strings.len()).unwrap());
    for string in strings {
        chunk.push(u8::try_from(string.len()).unwrap());
        chunk.extend_from_slice(string.as_bytes());
    }
    chunk.extend_from_slice(&u32::try_from(records.len()).unwrap().to_be_bytes());
    chunk
}

/// The class name with id 0 and the logging timestamp 7.
const RECORD: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7];

fn record(fields: &[u8]) -> Vec<u8> {
    [RECORD.as_slice(), fields].concat()
}

#[test]
fn types_that_kieker_does_not_have_are_refused_by_name() {
    let nested = schema("n", &[("a", FieldType::Bool)]);
    for (field_type, value) in [
        (FieldType::U8, Value::Unsigned(1)),
        (FieldType::U16, Value::Unsigned(1)),
        (FieldType::U32, Value::Unsigned(1)),
        (FieldType::U64, Value::Unsigned(1)),
        (FieldType::Bytes, Value::Bytes("x".into())),
        (FieldType::Bool.optional(), Value::Null),
        (FieldType::U8.list(), Value::List(Vec::new())),
        (FieldType::Bool.list().list(), Value::List(Vec::new())),
        (
            FieldType::Record(nested),
            Value::Record(vec![Value::Bool(true)]),
        ),
    ] {
        let odd = schema("r", &[("fine", FieldType::I8), ("odd", field_type.clone())]);
        let error = encode(&batch(&[(&odd, vec![Value::Signed(1), value])])).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("the container kieker cannot hold r.odd of type {field_type}")
        );
        let error = decode(&[&odd], &chunk(&RECORD, &["r"])).unwrap_err();
        assert!(
            matches!(error.kind, DecodeErrorKind::UnfitRecordType { .. }),
            "{error}"
        );
    }
}

#[test]
fn chars_beyond_sixteen_bits_are_refused_and_half_ones_too() {
    let chars = schema("c", &[("char", FieldType::Char)]);
    let fine = batch(&[(&chars, vec![Value::Char('\u{ffff}')])]);
    assert_eq!(decode(&[&chars], &encode(&fine).unwrap()).unwrap(), fine);
    let error = encode(&batch(&[(&chars, vec![Value::Char('\u{1f600}')])])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the container kieker cannot hold c.char of type char, for its value U+1F600"
    );
    let error = decode(&[&chars], &chunk(&record(&[0xd8, 0x3d]), &["c"])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "byte 20: 55357 is not allowed here while reading a char"
    );
}

#[test]
fn two_versions_of_a_type_do_not_share_a_chunk() {
    let old = schema("r", &[("a", FieldType::I32)]);
    let new = schema("r", &[("a", FieldType::I64)]);
    let both = batch(&[
        (&old, vec![Value::Signed(1)]),
        (&new, vec![Value::Signed(1)]),
    ]);
    let error = encode(&both).unwrap_err();
    assert_eq!(
        error,
        EncodeError::Ambiguous {
            container: baler_common::transport::ContainerKind::Kieker,
            record: "r".into()
        }
    );
}

#[test]
fn a_string_that_is_a_class_name_shares_its_id() {
    let one = schema("one", &[("text", FieldType::String)]);
    let two = schema("two", &[("text", FieldType::String)]);
    let text = |text: &str| vec![Value::from(text)];
    let batch = batch(&[
        (&one, text("two")),
        (&two, text("one")),
        (&two, text("three")),
    ]);
    let bytes = encode(&batch).unwrap();
    let records = [
        [0_u8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 1],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0],
        [0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 2],
    ];
    assert_eq!(bytes, chunk(&records.concat(), &["one", "two", "three"]));
    assert_eq!(decode(&[&one, &two], &bytes).unwrap(), batch);
}

#[test]
fn bytes_between_strings_and_trailer_are_passed_over() {
    let empty = schema("e", &[]);
    let mut slack = chunk(&RECORD, &["e"]);
    let at = slack.len() - 4;
    slack.splice(at..at, [1, 2, 3]);
    assert_eq!(decode(&[&empty], &slack).unwrap().len(), 1);
    let error = decode(&[], b"KIKADFLT\0\0\0\0\0\0").unwrap_err();
    assert_eq!(error.kind, DecodeErrorKind::Trailing { bytes: 1 });
}

#[test]
fn errors_say_where_and_what() {
    let flag = schema("b", &[("flag", FieldType::Bool)]);
    let list = schema("b", &[("list", FieldType::I32.list())]);
    let text = schema("b", &[("text", FieldType::String)]);
    let names: &[&str] = &["b"];
    let mut long = chunk(&record(&[1]), names);
    *long.last_mut().unwrap() = 17;
    let mut text_table = chunk(&record(&[1]), names);
    text_table[23] = 0xff;
    let mut overlong = chunk(&record(&[1]), &["b", "c"]);
    overlong.splice(21..22, [0x82, 0x00]);
    let mut many = chunk(&record(&[1]), names);
    many[21] = 9;
    for (schema, bytes, message) in [
        (
            &flag,
            b"KIKA".to_vec(),
            "byte 4: the data ends: 4 bytes needed, 0 left while reading the body format",
        ),
        (
            &flag,
            b"KIKADFLX....".to_vec(),
            "byte 4: the body format 1145457752 is unknown to this version while reading the body format",
        ),
        (
            &flag,
            b"KIKADFLT\0\0\0".to_vec(),
            "byte 8: the data ends: 4 bytes needed, 3 left while reading the length of the records",
        ),
        (
            &flag,
            long,
            "byte 24: the length 17 is declared, 16 is there while reading the length of the records",
        ),
        (
            &flag,
            b"KIKADFLT\xff\xff\xff\xff".to_vec(),
            "byte 8: the length 4294967295 is declared, 0 is there while reading the length of the records",
        ),
        (
            &flag,
            text_table,
            "byte 23: the text is not UTF-8 while reading a string",
        ),
        (
            &flag,
            overlong,
            "byte 21: the variable-length number is malformed while reading the number of strings",
        ),
        (
            &flag,
            many,
            "byte 21: the data ends: 9 bytes needed, 2 left while reading the number of strings",
        ),
        (
            &flag,
            chunk(&record(&[2]), names),
            "byte 20: 2 is not allowed here while reading a bool",
        ),
        (
            &flag,
            chunk(&RECORD, names),
            "byte 12: the data ends: 9 bytes needed, 8 left while reading the fields of a record",
        ),
        (
            &flag,
            chunk(&record(&[1, 0]), names),
            "byte 21: the data ends: 4 bytes needed, 1 left while reading the id of a record's class",
        ),
        (
            &flag,
            chunk(&record(&[1]), &["x"]),
            "byte 8: the record type x is not in the catalog (--schemas PATH, or schema=PATH in the URI, adds types) while reading the id of a record's class",
        ),
        (
            &flag,
            chunk(&record(&[1]), &[]),
            "byte 8: 0 is not allowed here while reading the id of a record's class",
        ),
        (
            &text,
            chunk(&record(&[0xff; 4]), names),
            "byte 20: 4294967295 is not allowed here while reading a string id",
        ),
        (
            &list,
            chunk(&record(&[0, 0, 0, 2, 0, 0, 0, 1]), names),
            "byte 20: the data ends: 8 bytes needed, 4 left while reading the length of a list",
        ),
        (
            &list,
            chunk(&record(&[0xff; 4]), names),
            "byte 20: the data ends: 17179869180 bytes needed, 0 left while reading the length of a list",
        ),
    ] {
        let error = decode(&[schema], &bytes).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn limits_hold() {
    let text = schema("t", &[("text", FieldType::String)]);
    let other = schema("o", &[("text", FieldType::String)]);
    let words = |word: &str| vec![Value::from(word)];
    let batch = batch(&[
        (&text, words("a")),
        (&other, words("b")),
        (&text, words("a")),
    ]);
    let bytes = encode(&batch).unwrap();
    for (limits, reading, limit, found) in [
        (limits(|it| it.chunk_bytes = 10), "the chunk", 10, 69),
        (limits(|it| it.strings = 3), "the number of strings", 3, 4),
        (
            limits(|it| it.types = 1),
            "the id of a record's class",
            1,
            2,
        ),
        (limits(|it| it.records = 2), "a record", 2, 3),
        (
            limits(|it| it.decoded_bytes = 159),
            "the number of strings",
            159,
            160,
        ),
        (limits(|it| it.decoded_bytes = 161), "a record", 161, 208),
    ] {
        let error = decoder(&[&text, &other], limits)
            .decode(&bytes)
            .unwrap_err();
        assert_eq!(error.reading, reading);
        assert_eq!(
            error.kind,
            DecodeErrorKind::Limit { limit, found },
            "{error}"
        );
    }
    let exact = limits(|it| {
        (it.chunk_bytes, it.strings) = (69, 4);
        (it.types, it.records) = (2, 3);
    });
    let decoded = decoder(&[&text, &other], exact).decode(&bytes).unwrap();
    assert_eq!(decoded.batch, batch);
}
