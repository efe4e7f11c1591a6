//! Native chunks that were written once and are kept. They stay readable, and today's encoder does
//! not need notably more bytes for their records.
//!
//! `UPDATE_GOLDEN=1 cargo test -p baler-common --all-features golden` writes missing chunks; an
//! existing one is never overwritten.
#![expect(
    clippy::disallowed_methods,
    reason = "golden chunks are files, and UPDATE_GOLDEN is how they are made"
)]

use std::path::PathBuf;
use std::sync::Arc;

use baler_common::container::{
    ChunkHeader, ChunkSerializer as _, ClockMapping, Compression, LossReason, LostChunks,
};
use baler_common::record::{
    AnyValue, DynamicRecord, EnumType, Field, FieldType, Role, Schema, Value,
};
use baler_connector_kieker::types;

use crate::arbitrary;
use crate::native_calls;
use crate::native_chunks::{compressions, decoder, header, serializer, service_records};

struct Golden {
    name: &'static str,
    header: ChunkHeader,
    records: Vec<DynamicRecord>,
    compression: Compression,
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden/native")
}

fn schema(name: &str, fields: Vec<Field>) -> Arc<Schema> {
    Arc::new(Schema::new(name, fields).unwrap())
}

/// One record with every type, and its opposite.
fn every_type() -> Vec<DynamicRecord> {
    let color = EnumType::new("Color", ["red", "green", "blue"]).unwrap();
    let point = schema(
        "Point",
        vec![
            Field::new("x", FieldType::F64),
            Field::new("label", FieldType::String.optional()),
        ],
    );
    let types = vec![
        FieldType::Bool,
        FieldType::I8,
        FieldType::I16,
        FieldType::I32,
        FieldType::I64,
        FieldType::U8,
        FieldType::U16,
        FieldType::U32,
        FieldType::U64,
        FieldType::F32,
        FieldType::F64,
        FieldType::Char,
        FieldType::String,
        FieldType::Bytes,
        FieldType::Enum(Arc::new(color)),
        FieldType::I32.optional(),
        FieldType::String.list(),
        FieldType::Record(Arc::clone(&point)),
        FieldType::Record(point).list().optional(),
    ];
    let fields = types.into_iter().enumerate();
    let fields = fields.map(|(index, kind)| Field::new(format!("f{index}"), kind));
    let everything = schema("Everything", fields.collect());
    let low = vec![
        Value::Bool(false),
        Value::Signed(i8::MIN.into()),
        Value::Signed(i16::MIN.into()),
        Value::Signed(i32::MIN.into()),
        Value::Signed(i64::MIN),
        Value::Unsigned(0),
        Value::Unsigned(0),
        Value::Unsigned(0),
        Value::Unsigned(0),
        Value::F32(-0.0),
        Value::F64(f64::NEG_INFINITY),
        Value::Char('\0'),
        Value::from(""),
        Value::Bytes(bytes::Bytes::new()),
        Value::Variant(0),
        Value::Null,
        Value::List(Vec::new()),
        Value::Record(vec![Value::F64(0.5), Value::Null]),
        Value::Null,
    ];
    let point = |x, label: &str| Value::Record(vec![Value::F64(x), Value::from(label)]);
    let high = vec![
        Value::Bool(true),
        Value::Signed(i8::MAX.into()),
        Value::Signed(i16::MAX.into()),
        Value::Signed(i32::MAX.into()),
        Value::Signed(i64::MAX),
        Value::Unsigned(u8::MAX.into()),
        Value::Unsigned(u16::MAX.into()),
        Value::Unsigned(u32::MAX.into()),
        Value::Unsigned(u64::MAX),
        Value::F32(f32::from_bits(0x7fc0_0001)),
        Value::F64(f64::from_bits(0xfff8_0000_0000_0001)),
        Value::Char(char::MAX),
        Value::from("ünï ✓ 漢"),
        Value::Bytes(vec![0, 255, 1].into()),
        Value::Variant(2),
        Value::Signed(-7),
        Value::List(vec![Value::from("a"), Value::from("")]),
        point(-1.25, "p"),
        Value::List(vec![point(1.0, "q"), point(2.0, "p")]),
    ];
    let record = |time, values: Vec<Value>| {
        DynamicRecord::new(Arc::clone(&everything), time, values).unwrap()
    };
    vec![record(None, low), record(Some(i64::MAX), high)]
}

/// Maps of numbers and of values of any type, with no entry, and with a key that comes twice.
fn maps() -> Vec<DynamicRecord> {
    let any = FieldType::Record(Arc::clone(AnyValue::schema()));
    let fields = vec![
        Field::new("counts", FieldType::U32.map()),
        Field::new("attributes", any.map()),
        Field::new("nested", FieldType::String.list().map().map().optional()),
    ];
    let schema = schema("Maps", fields);
    let record = |values: [Value; 3]| DynamicRecord::new(Arc::clone(&schema), None, values);
    let attributes = [
        ("http.status", AnyValue::I64(200)),
        ("http.route", AnyValue::String("/orders".into())),
        ("cached", AnyValue::Bool(true)),
        ("load", AnyValue::F64(0.5)),
        ("key", AnyValue::Bytes([1, 2].as_slice().into())),
        ("tags", AnyValue::Json(r#"["a"]"#.into())),
        ("none", AnyValue::Empty),
    ];
    let attributes = attributes.map(|(key, value)| (key, value.to_value()));
    let counts = [("a", 1), ("", 2), ("a", 3)].map(|(key, n)| (key, Value::Unsigned(n)));
    let texts = Value::List(vec![Value::from("x"), Value::from("y")]);
    let none = || Value::map([("", Value::Null); 0]);
    let nested = [("outer", none()), ("other", Value::map([("in", texts)]))];
    let records = [
        record([none(), none(), Value::Null]),
        record([
            Value::map(counts),
            Value::map(attributes),
            Value::map(nested),
        ]),
    ];
    records.map(Result::unwrap).into()
}

/// Calls as Kieker knows them, one every microsecond.
fn kieker_calls() -> Vec<DynamicRecord> {
    let catalog = types::catalog();
    let name = "kieker.common.record.controlflow.OperationExecutionRecord";
    let schema = catalog.get(name).unwrap();
    (0..48_i64)
        .map(|number| {
            let tin = 1_700_000_000_000_000_000 + number * 1_000;
            let tout = tin + 400 + number * 37 % 100;
            let values = [
                Value::from(format!("public void shop.Catalog.find{}()", number % 4)),
                Value::from("<no-session-id>"),
                Value::Signed(number / 4),
                Value::Signed(tin),
                Value::Signed(tout),
                Value::from("host1"),
                Value::Signed(number % 4),
                Value::Signed(number % 4),
            ];
            DynamicRecord::new(Arc::clone(schema), Some(tout), values).unwrap()
        })
        .collect()
}

/// One column for each encoding of integers.
fn every_encoding() -> Vec<DynamicRecord> {
    let fields = [
        ("constant", FieldType::U64, Role::Plain),
        ("varint", FieldType::I64, Role::Plain),
        ("packed", FieldType::U32, Role::Plain),
        ("runs", FieldType::U64, Role::Plain),
        ("dictionary", FieldType::U64, Role::Plain),
        ("delta_varint", FieldType::U64, Role::Plain),
        ("delta_packed", FieldType::I64, Role::UnixNanos),
        ("fixed", FieldType::U64, Role::Plain),
    ];
    let fields = fields
        .into_iter()
        .map(|(name, kind, role)| Field::new(name, kind).with_role(role));
    let schema = schema("Encodings", fields.collect());
    // splitmix64
    let noise = |n: u64| {
        let n = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        n ^ (n >> 31)
    };
    (0..32_u64)
        .map(|n| {
            let time = i64::try_from(1_700_000_000_000_000_000 + n * 1_000 + noise(n) % 50);
            let time = time.unwrap();
            let values = [
                Value::Unsigned(7),
                Value::Signed(match n {
                    9 => -5_000_000_000,
                    _ => i64::try_from(noise(n) % 60).unwrap() - 30,
                }),
                Value::Unsigned(1_000 + noise(n) % 30),
                Value::Unsigned(noise(n / 11)),
                Value::Unsigned(noise(noise(n) % 3)),
                Value::Unsigned(n * n * n + if n > 20 { 1 << 50 } else { 0 }),
                Value::Signed(time),
                Value::Unsigned(noise(n)),
            ];
            DynamicRecord::new(Arc::clone(&schema), Some(time), values).unwrap()
        })
        .collect()
}

/// Numbers of which few are large.
fn patched() -> Vec<DynamicRecord> {
    let kinds = [
        ("patched", FieldType::U64),
        ("delta_patched", FieldType::I64),
    ];
    let fields = kinds.map(|(name, kind)| Field::new(name, kind));
    let schema = schema("Patched", fields.into());
    let mut sum = -5_000;
    (0..100_u64)
        .map(|n| {
            let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
            let large = if n % 29 == 7 { noise << 22 } else { noise };
            sum += i64::try_from(large).unwrap() + 1;
            let values = [Value::Unsigned(large + 3), Value::Signed(sum)];
            DynamicRecord::new(Arc::clone(&schema), Some(sum), values).unwrap()
        })
        .collect()
}

/// Numbers with a step: of a clock, of sizes, of floats without a fraction, and a large one.
fn stepped() -> Vec<DynamicRecord> {
    let kinds = [
        ("time", FieldType::I64),
        ("bytes", FieldType::U32),
        ("below", FieldType::I16),
        ("float", FieldType::F64),
        ("large", FieldType::I64),
        ("patched", FieldType::U64),
    ];
    let fields = kinds.map(|(name, kind)| Field::new(name, kind));
    let schema = schema("Stepped", fields.into());
    let mut time = 1_700_000_000_000_000_000;
    (0..100_u64)
        .map(|n| {
            let noise = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
            let small = i64::try_from(noise).unwrap();
            let large = if n % 29 == 7 { noise << 22 } else { noise };
            time += 1_000_000 * (1 + small % 20);
            let values = [
                Value::Signed(time + 7),
                Value::Unsigned(4_096 * noise),
                Value::Signed(5 * (small % 100) - 301),
                Value::F64(noise as f64 * 3.0),
                Value::Signed((i64::MIN + 3).wrapping_add((small % 4) << 62)),
                Value::Unsigned(1_000 * large),
            ];
            let logged = time + 100_000 * (small % 7);
            DynamicRecord::new(Arc::clone(&schema), Some(logged), values).unwrap()
        })
        .collect()
}

/// Calls whose clock moves by microseconds.
fn stepped_calls() -> Vec<DynamicRecord> {
    let calls = native_calls::nested(3, 5, 3);
    let calls = calls.iter().map(|call| call.by_clock(1_000));
    calls.map(|call| native_calls::record(&call)).collect()
}

/// Calls of three threads that nest, and one that does not.
fn nested_calls() -> Vec<DynamicRecord> {
    let mut calls = native_calls::nested(3, 5, 3);
    if let Some(call) = calls.get_mut(30) {
        call.ess = 9;
    }
    calls.iter().map(native_calls::record).collect()
}

/// Strings of every kind: digits, words of every kind, beginnings, and one that is too long.
fn every_string() -> Vec<DynamicRecord> {
    let fields = vec![Field::new("text", FieldType::String)];
    let schema = schema("Strings", fields);
    let long = "long ".repeat(300);
    let texts = [
        "public void org.shop.Catalog.find17(java.lang.String, int)",
        "public void org.shop.Catalog.find18(java.lang.String)",
        "0123456789abcdef0123456789abcdef",
        "",
        "public void org.shop.cart.Cart.add(int)",
        "public void org.shop.",
        "ünï ✓ 漢, ünï ✓ 字",
        "ABCDEF0123456789",
        &long,
        "<no-session-id>",
    ];
    let record = |(time, text)| {
        DynamicRecord::new(Arc::clone(&schema), Some(time), [Value::from(text)]).unwrap()
    };
    (1..).zip(texts).map(record).collect()
}

/// With this number of strings for each record, short words are spelled again and again.
fn spelled_words() -> Vec<DynamicRecord> {
    let schema = schema("Strings", vec![Field::new("text", FieldType::String)]);
    let pick = |from: [&'static str; 3], number: usize| from.into_iter().nth(number % 3).unwrap();
    (0..40_usize)
        .map(|number| {
            let part = pick(["cart", "catalog", "checkout"], number);
            let types = ["int", "com.example.Request", "java.lang.String"];
            let parameters = pick(types, number % 7);
            let text = format!("public void org.shop.{part}.Part{number}.get({parameters})");
            DynamicRecord::new(Arc::clone(&schema), Some(5), [Value::from(text)]).unwrap()
        })
        .collect()
}

/// Text that a compressor can shorten, and numbers that it cannot.
#[cfg(feature = "zstd")]
fn text_and_noise() -> Vec<DynamicRecord> {
    let fields = vec![
        Field::new("text", FieldType::String),
        Field::new("noise", FieldType::U64),
    ];
    let schema = schema("TextAndNoise", fields);
    (0..40_u64)
        .map(|n| {
            let noise = (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let noise = (noise ^ (noise >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let text = format!("{}qxyzzyvwqjkpqwertzuiopasdfghjklyxcvbnm{}", n * 7919, n);
            let values = [Value::from(text), Value::Unsigned(noise)];
            DynamicRecord::new(Arc::clone(&schema), None, values).unwrap()
        })
        .collect()
}

fn full_header() -> ChunkHeader {
    let mut header = header(u128::MAX, u64::MAX);
    header.identity.lane = u32::MAX;
    header.last_of_epoch = true;
    header.clock_jumped = true;
    header.clock = Some(ClockMapping {
        anchor_ticks: 123_456_789,
        anchor_unix_ns: -5,
        multiplier: 3_000_000_000,
        shift: 33,
    });
    header.losses.add(LossReason::QueueFullNewest, 300);
    header.losses.add(LossReason::TooLarge, 1);
    header.losses.add_code(200, 5);
    header.lost_chunks = vec![LostChunks {
        first_sequence: 1_000,
        chunks: 17,
    }];
    header
}

fn goldens() -> Vec<Golden> {
    let golden = |name, header, records, compression| Golden {
        name,
        header,
        records,
        compression,
    };
    let none = Compression::None;
    vec![
        #[cfg(feature = "zstd")]
        golden(
            "two-blocks",
            header(5, 1),
            text_and_noise(),
            Compression::Zstd { level: 1 },
        ),
        golden("empty", header(1, 0), Vec::new(), none),
        golden("empty-full-header", full_header(), Vec::new(), none),
        golden("every-type", header(2, 1), every_type(), none),
        golden("every-encoding", header(2, 2), every_encoding(), none),
        golden("maps", header(2, 10), maps(), none),
        golden("kieker-calls", header(3, 3), kieker_calls(), none),
        golden(
            "kieker-calls-lz4",
            header(3, 4),
            kieker_calls(),
            Compression::Lz4,
        ),
        golden(
            "kieker-calls-zstd",
            header(3, 5),
            kieker_calls(),
            Compression::Zstd { level: 3 },
        ),
        golden("two-types", full_header(), service_records(4, 30), none),
        golden(
            "two-types-words",
            full_header(),
            service_records(4, 30),
            none,
        ),
        golden(
            "two-types-stepped",
            full_header(),
            service_records(4, 30),
            none,
        ),
        golden("patched", header(2, 8), patched(), none),
        golden("nested-calls", header(3, 7), nested_calls(), none),
        golden("nested-calls-packed", header(3, 7), nested_calls(), none),
        golden("nested-calls-level", header(3, 7), nested_calls(), none),
        golden("nested-calls-short", header(3, 7), nested_calls(), none),
        golden("nested-calls-outliers", header(3, 7), nested_calls(), none),
        golden("stepped", header(2, 9), stepped(), none),
        golden("stepped-calls", header(3, 8), stepped_calls(), none),
        golden(
            "stepped-calls-outliers",
            header(3, 8),
            stepped_calls(),
            none,
        ),
        golden("every-string", header(4, 6), every_string(), none),
        golden("every-string-digits", header(4, 6), every_string(), none),
        golden("spelled-words", header(4, 7), spelled_words(), none),
    ]
}

#[test]
fn golden_chunks_are_read_and_still_as_small() {
    let update = std::env::var_os("UPDATE_GOLDEN").is_some();
    let built_in = compressions();
    let mut decoder = decoder();
    for golden in goldens() {
        let name = golden.name;
        if !built_in
            .iter()
            .any(|c| c.name() == golden.compression.name())
        {
            continue;
        }
        let path = folder().join(format!("{name}.chunk"));
        let batch = arbitrary::batch(&golden.records);
        let mut serializer = serializer(golden.compression);
        let mut encoded = Vec::new();
        // Only strings that come again are cut into words.
        for _ in 0..2 {
            encoded.clear();
            let written = serializer.serialize(&batch, &golden.header, &mut encoded);
            written.unwrap();
        }
        if update && !path.exists() {
            std::fs::create_dir_all(folder()).unwrap();
            std::fs::write(&path, &encoded).unwrap();
        }
        let chunk = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"));
        let decoded = decoder.decode(&chunk).unwrap();
        assert_eq!(
            arbitrary::records_of(&decoded.batch),
            golden.records,
            "{name}"
        );
        assert_eq!(decoded.summary.header, Some(golden.header), "{name}");
        let compression = golden.compression.name();
        assert_eq!(decoded.summary.compression.name(), compression, "{name}");
        // The encoder may choose other encodings than before, but none that takes notably more
        // bytes.
        let is_plain = golden.compression == Compression::None;
        assert!(
            !is_plain || encoded.len() <= chunk.len() + chunk.len() / 10,
            "{name}: {} bytes, {} in the golden chunk",
            encoded.len(),
            chunk.len()
        );
    }
}

/// The columns of a golden chunk, each with the encodings that it has.
fn golden_columns(name: &str) -> Vec<(String, String)> {
    let chunk = std::fs::read(folder().join(name)).unwrap();
    let (_, layout) = decoder().decode_with_layout(&chunk).unwrap();
    let columns = layout.columns.iter();
    columns
        .map(|it| (it.field.to_string(), it.encoding.to_string()))
        .collect()
}

#[test]
fn every_encoding_stands_in_a_golden_chunk() {
    let columns = golden_columns("every-encoding.chunk");
    assert_eq!(columns.len(), 9);
    for (field, encoding) in columns {
        let expected = match field.as_str() {
            "runs" => "run length".to_owned(),
            "(timestamp)" => "reference".to_owned(),
            field => field.replace('_', " "),
        };
        assert_eq!(encoding.split(", ").next(), Some(&*expected));
    }
    for (field, encoding) in golden_columns("patched.chunk").iter().take(2) {
        assert_eq!(encoding.split(", ").next(), Some(&*field.replace('_', " ")));
    }
    let stepped = golden_columns("stepped.chunk");
    let is_stepped = |(_, encoding): &(String, String)| encoding.starts_with("stepped, ");
    assert!(stepped.iter().any(is_stepped));
}

#[test]
fn every_golden_chunk_is_known() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".chunk"))
        .collect();
    files.sort();
    let mut known: Vec<_> = goldens()
        .iter()
        .map(|g| format!("{}.chunk", g.name))
        .collect();
    known.sort();
    assert_eq!(files, known);
}
