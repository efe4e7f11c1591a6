//! Strategies for arbitrary schemas, values, batches and headers.

use std::sync::Arc;

use baler_common::container::{ChunkHeader, ClockMapping, LostChunks};
use baler_common::record::{
    BatchBuilder, DynamicRecord, EnumType, Field, FieldType, RecordBatch, Role, Schema, Value,
};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use proptest::collection::vec;
use proptest::prelude::*;

/// A type of a field, nested up to three levels.
pub(crate) fn field_type() -> impl Strategy<Value = FieldType> {
    let leaf = prop_oneof![
        Just(FieldType::Bool),
        Just(FieldType::I8),
        Just(FieldType::I16),
        Just(FieldType::I32),
        Just(FieldType::I64),
        Just(FieldType::U8),
        Just(FieldType::U16),
        Just(FieldType::U32),
        Just(FieldType::U64),
        Just(FieldType::F32),
        Just(FieldType::F64),
        Just(FieldType::Char),
        Just(FieldType::String),
        Just(FieldType::Bytes),
        (1_u32..5).prop_map(|variants| {
            let variants = (0..variants).map(|number| format!("variant{number}"));
            FieldType::Enum(Arc::new(EnumType::new("an enum", variants).unwrap()))
        }),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| match inner {
                FieldType::Optional(_) => inner,
                inner => inner.optional(),
            }),
            inner.clone().prop_map(FieldType::list),
            inner.clone().prop_map(FieldType::map),
            vec(inner, 0..4)
                .prop_map(|types| { FieldType::Record(Arc::new(schema_of("nested", types))) }),
        ]
    })
}

fn schema_of(name: &str, types: Vec<FieldType>) -> Schema {
    let roles = [Role::Plain, Role::UnixNanos, Role::Nanos];
    let fields: Vec<Field> = types
        .into_iter()
        .enumerate()
        .zip(roles.into_iter().cycle())
        .map(|((index, kind), role)| Field::new(format!("f{index}"), kind).with_role(role))
        .collect();
    Schema::new(name, fields).unwrap()
}

/// Numbers of the kind that occur: small, extreme, or anything.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0_u64..20,
        1 => prop_oneof![Just(0), Just(u64::MAX), Just(1 << 63), Just((1 << 63) - 1)],
        1 => (0_u32..64).prop_map(|shift| 1 << shift),
        2 => any::<u64>(),
    ]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop_oneof![Just(""), Just("a"), Just("public void a.B.c()"), Just("ünï ✓ 漢")]
            .prop_map(String::from),
        1 => any::<String>(),
    ]
}

/// A value of this type.
pub(crate) fn value(field_type: &FieldType) -> BoxedStrategy<Value> {
    match field_type {
        FieldType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        FieldType::I8 | FieldType::I16 | FieldType::I32 | FieldType::I64 => {
            let unused = 64 - field_type.integer_bits().unwrap();
            number()
                .prop_map(move |n| Value::Signed(((n << unused) as i64) >> unused))
                .boxed()
        }
        FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 => {
            let unused = 64 - field_type.integer_bits().unwrap();
            number()
                .prop_map(move |n| Value::Unsigned((n << unused) >> unused))
                .boxed()
        }
        FieldType::F32 => any::<u32>()
            .prop_map(|n| Value::F32(f32::from_bits(n)))
            .boxed(),
        FieldType::F64 => number().prop_map(|n| Value::F64(f64::from_bits(n))).boxed(),
        FieldType::Char => any::<char>().prop_map(Value::Char).boxed(),
        FieldType::String => text().prop_map(Value::from).boxed(),
        FieldType::Bytes => vec(any::<u8>(), 0..6)
            .prop_map(|bytes| Value::Bytes(bytes.into()))
            .boxed(),
        FieldType::Enum(enum_type) => (0..u32::try_from(enum_type.variants().len()).unwrap())
            .prop_map(Value::Variant)
            .boxed(),
        FieldType::Optional(inner) => prop_oneof![Just(Value::Null), value(inner)].boxed(),
        FieldType::List(inner) | FieldType::Map(inner) => {
            vec(value(inner), 0..4).prop_map(Value::List).boxed()
        }
        FieldType::Record(schema) => values(schema).prop_map(Value::Record).boxed(),
    }
}

fn values(schema: &Schema) -> BoxedStrategy<Vec<Value>> {
    let fields = schema.fields().iter();
    let values: Vec<_> = fields.map(|field| value(field.field_type())).collect();
    values.boxed()
}

fn timestamp() -> impl Strategy<Value = Option<i64>> {
    prop_oneof![
        4 => (0_i64..10_000).prop_map(|n| Some(1_700_000_000_000_000_000 + n * 1_000)),
        1 => Just(None),
        1 => any::<i64>().prop_map(Some),
    ]
}

/// Records of one to three types, mixed.
pub(crate) fn records() -> impl Strategy<Value = Vec<DynamicRecord>> {
    vec(vec(field_type(), 0..5), 1..4).prop_flat_map(|types| {
        let schemas = types.into_iter().enumerate();
        let record: Vec<BoxedStrategy<DynamicRecord>> = schemas
            .map(|(index, types)| {
                let schema = Arc::new(schema_of(&format!("type{index}"), types));
                (values(&schema), timestamp())
                    .prop_map(move |(values, time)| {
                        DynamicRecord::new(Arc::clone(&schema), time, values).unwrap()
                    })
                    .boxed()
            })
            .collect();
        vec(proptest::strategy::Union::new(record), 0..24)
    })
}

/// A batch of these records.
pub(crate) fn batch(records: &[DynamicRecord]) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for record in records {
        builder.push_dynamic(record).unwrap();
    }
    builder.take()
}

/// The records of a batch, owned.
pub(crate) fn records_of(batch: &RecordBatch) -> Vec<DynamicRecord> {
    batch.records().map(DynamicRecord::from).collect()
}

/// A header with everything in it, or with nothing.
pub(crate) fn header() -> impl Strategy<Value = ChunkHeader> {
    let identity = (
        any::<u128>(),
        any::<u64>(),
        any::<u32>(),
        any::<u32>(),
        number(),
    );
    let clock = proptest::option::of((any::<u64>(), any::<i64>(), any::<u32>(), 0_u8..64));
    let losses = vec((any::<u8>(), number()), 0..3);
    let lost = vec((0_u64..1_000, 1_u64..1_000), 0..3);
    (identity, any::<(bool, bool)>(), clock, losses, lost).prop_map(
        |((producer, start, random, lane, sequence), flags, clock, losses, lost)| {
            let mut header = ChunkHeader::new(ChunkIdentity {
                producer: ProducerId::new(producer),
                epoch: Epoch {
                    start_unix_ns: start,
                    random,
                },
                lane,
                sequence,
            });
            (header.last_of_epoch, header.clock_jumped) = flags;
            header.clock = clock.map(|(ticks, unix_ns, multiplier, shift)| ClockMapping {
                anchor_ticks: ticks,
                anchor_unix_ns: unix_ns,
                multiplier,
                shift,
            });
            for (reason, records) in losses {
                header.losses.add_code(reason, records);
            }
            header.lost_chunks = lost
                .into_iter()
                .map(|(first_sequence, chunks)| LostChunks {
                    first_sequence,
                    chunks,
                })
                .collect();
            header
        },
    )
}
