//! Records and chunks for tests.

use std::sync::Arc;

use baler_analysis::Parcel;
use baler_common::container::{ChunkHeader, ChunkSerializer, NativeSerializer};
use baler_common::record::{
    BatchBuilder, DynamicRecord, EnumType, Field, FieldType, Role, Schema, Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_kieker::container;
use baler_connector_kieker::types;
use bytes::Bytes;
use serde_json::{Value as Json, json};

/// 2023-11-14T22:13:20Z.
pub(crate) const NOON: i64 = 1_700_000_000_000_000_000;

pub(crate) fn identity(sequence: u64) -> ChunkIdentity {
    ChunkIdentity {
        producer: ProducerId::new(0xabc),
        epoch: Epoch {
            start_unix_ns: 1_700_000_000_000_000_000,
            random: 7,
        },
        lane: 3,
        sequence,
    }
}

/// The records as a chunk.
pub(crate) fn chunk(records: &[DynamicRecord], sequence: u64) -> Bytes {
    let mut builder = BatchBuilder::new();
    for record in records {
        builder.push_dynamic(record).unwrap();
    }
    let mut chunk = Vec::new();
    let header = ChunkHeader::new(identity(sequence));
    NativeSerializer::default()
        .serialize(&builder.take(), &header, &mut chunk)
        .unwrap();
    chunk.into()
}

/// Decodes the records from a chunk.
pub(crate) fn parcel(records: &[DynamicRecord], sequence: u64) -> Parcel {
    let chunk = chunk(records, sequence);
    Parcel::new(container::decoder().decode(&chunk).unwrap())
}

pub(crate) fn schema(name: &str, fields: Vec<Field>) -> Arc<Schema> {
    Arc::new(Schema::new(name, fields).unwrap())
}

/// Records of a type with every kind of field, the smallest and the largest values among them.
pub(crate) fn every_type(count: u64) -> Vec<DynamicRecord> {
    let color = Arc::new(EnumType::new("Color", ["red", "green", "blue"]).unwrap());
    let nothing = schema("Nothing", Vec::new());
    let point = schema(
        "Point",
        vec![
            Field::new("x", FieldType::F64),
            Field::new("label", FieldType::String.optional()),
            Field::new("at", FieldType::I64).with_role(Role::UnixNanos),
            Field::new("colors", FieldType::Enum(Arc::clone(&color)).list()),
        ],
    );
    let plain = [
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
        FieldType::Enum(Arc::clone(&color)),
        FieldType::I32.optional(),
        FieldType::String.list(),
        FieldType::Record(Arc::clone(&point)),
        FieldType::Record(point).optional().list().optional(),
        FieldType::Record(nothing).optional(),
        FieldType::Bytes.list().optional(),
    ];
    let plain = plain.into_iter().enumerate();
    let mut fields: Vec<_> = plain
        .map(|(number, kind)| Field::new(format!("f{number}"), kind))
        .collect();
    fields.extend([
        Field::new("began", FieldType::I64.optional()).with_role(Role::UnixNanos),
        Field::new("took", FieldType::I64).with_role(Role::Nanos),
        Field::new("_timestamp", FieldType::U64).with_role(Role::UnixNanos),
    ]);
    let everything = schema("test.Everything", fields);
    let point = |n: u64, label: Value| {
        let colors = (0..n % 3).map(|n| Value::Variant(u32::try_from(n).unwrap()));
        let x = f64::from_bits(n.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let at = Value::Signed(NOON + i64::try_from(n).unwrap());
        Value::Record(vec![
            Value::F64(x),
            label,
            at,
            Value::List(colors.collect()),
        ])
    };
    let record = |n: u64| {
        let small = i64::try_from(n % 100).unwrap();
        let (low, high) = (n.is_multiple_of(5), n % 5 == 1);
        let signed = |low_value: i64, high_value: i64| {
            Value::Signed(if low {
                low_value
            } else if high {
                high_value
            } else {
                small - 50
            })
        };
        let unsigned = |most: u64| Value::Unsigned(if high { most } else { n % 100 });
        let values = vec![
            Value::Bool(n.is_multiple_of(2)),
            signed(i8::MIN.into(), i8::MAX.into()),
            signed(i16::MIN.into(), i16::MAX.into()),
            signed(i32::MIN.into(), i32::MAX.into()),
            signed(i64::MIN, i64::MAX),
            unsigned(u8::MAX.into()),
            unsigned(u16::MAX.into()),
            unsigned(u32::MAX.into()),
            unsigned(u64::MAX),
            Value::F32(if low {
                f32::from_bits(0x7fc0_0001)
            } else {
                -0.5
            }),
            Value::F64(if low { f64::NEG_INFINITY } else { 0.1 }),
            Value::Char(if high { char::MAX } else { 'ä' }),
            Value::from(format!("text {}", n % 7)),
            Value::Bytes(vec![255; usize::try_from(n % 4).unwrap()].into()),
            Value::Variant(u32::try_from(n % 3).unwrap()),
            if low { Value::Null } else { Value::Signed(-7) },
            Value::List(
                (0..n % 4)
                    .map(|n| Value::from(format!("item {n}")))
                    .collect(),
            ),
            point(
                n,
                if low {
                    Value::Null
                } else {
                    Value::from("ünï ✓")
                },
            ),
            match n % 3 {
                0 => Value::Null,
                items => Value::List(
                    (0..items)
                        .map(|item| match item {
                            0 => point(n + 1, Value::from("")),
                            _ => Value::Null,
                        })
                        .collect(),
                ),
            },
            if high {
                Value::Null
            } else {
                Value::Record(Vec::new())
            },
            if low {
                Value::Null
            } else {
                Value::List(vec![Value::Bytes(b"\0a"[..].into()); usize::from(high)])
            },
            if high {
                Value::Null
            } else {
                Value::Signed(NOON - 1)
            },
            signed(i64::MIN, 1),
            unsigned(u64::MAX),
        ];
        let time = NOON + i64::try_from(n).unwrap() * 1_800_000_000_001;
        let time = (n % 11 != 3).then_some(time);
        DynamicRecord::new(Arc::clone(&everything), time, values).unwrap()
    };
    (0..count).map(record).collect()
}

/// Calls as Kieker knows them.
pub(crate) fn calls(count: i64) -> Vec<DynamicRecord> {
    let catalog = types::catalog();
    let name = "kieker.common.record.controlflow.OperationExecutionRecord";
    let schema = catalog.get(name).unwrap();
    let call = |number: i64| {
        let tin = NOON + number * 1_001;
        let values = [
            Value::from(format!("public void shop.Catalog.find{}()", number % 4)),
            Value::from("<no-session-id>"),
            Value::Signed(number / 4),
            Value::Signed(tin),
            Value::Signed(tin + 401),
            Value::from("host1"),
            Value::Signed(number % 4),
            Value::Signed(number % 4),
        ];
        DynamicRecord::new(Arc::clone(schema), Some(tin + 401), values).unwrap()
    };
    (0..count).map(call).collect()
}

/// A value as the other reader prints it.
pub(crate) fn value_json(kind: &FieldType, value: &Value) -> Json {
    match (kind, value) {
        (FieldType::Optional(inner), value) if *value != Value::Null => value_json(inner, value),
        (FieldType::List(inner), Value::List(items)) => {
            items.iter().map(|item| value_json(inner, item)).collect()
        }
        (FieldType::Record(schema), _) if schema.fields().is_empty() => json!(true),
        (FieldType::Record(schema), Value::Record(values)) => {
            let fields = schema.fields().iter().zip(values);
            fields
                .map(|(field, value)| json!([field.name(), value_json(field.field_type(), value)]))
                .collect()
        }
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
