//! KIKA/DFLT against chunks that Kieker wrote, and against arbitrary records.

use std::sync::Arc;

use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, DecodeErrorKind, Limits,
};
use baler_common::record::{
    BatchBuilder, Catalog, DynamicRecord, EnumType, Field, FieldType, Record, RecordBatch,
    RowWriter, Schema, Value, ValueRef,
};
use baler_common::transport::{ChunkIdentity, ContainerKind, Epoch, ProducerId};
use baler_connector_kieker::container::{self, KiekerSerializer};
use baler_connector_kieker::types::OperationExecutionRecord;
use proptest::prelude::*;

use crate::arbitrary;

const CONTAINER: &[u8] = include_bytes!("../golden/container.kika");
const OER_1: &[u8] = include_bytes!("../golden/container-oer-1.kika");
const OER_16: &[u8] = include_bytes!("../golden/container-oer-16.kika");
const OER_32: &[u8] = include_bytes!("../golden/container-oer-32.kika");

fn encode(batch: &RecordBatch) -> Vec<u8> {
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 2,
            random: 3,
        },
        lane: 4,
        sequence: 5,
    });
    let mut out = Vec::new();
    let bytes = KiekerSerializer::new()
        .serialize(batch, &header, &mut out)
        .unwrap();
    assert_eq!(bytes, out.len());
    out
}

fn decode(chunk: &[u8]) -> RecordBatch {
    let decoded = container::decoder().decode(chunk).unwrap();
    assert_eq!(decoded.summary.container, ContainerKind::Kieker);
    assert_eq!(decoded.summary.format, "dflt");
    assert_eq!(decoded.summary.bytes, chunk.len());
    assert_eq!(decoded.summary.header, None);
    decoded.batch
}

/// A record as Kieker's text log has it, the class by its name.
fn as_line(record: baler_common::record::RecordRef<'_>) -> String {
    fn append(line: &mut String, value: ValueRef<'_>) {
        line.push(';');
        match value {
            ValueRef::Bool(value) => line.push_str(&value.to_string()),
            ValueRef::Signed(value) => line.push_str(&value.to_string()),
            ValueRef::F64(value) => line.push_str(&format!("{value:?}")),
            ValueRef::String(value) => line.push_str(value),
            ValueRef::List(values) => {
                line.push_str(&values.len().to_string());
                values.iter().for_each(|value| append(line, value));
            }
            other => line.push_str(&format!("{other:?}")),
        }
    }
    let timestamp = record.timestamp().unwrap_or(-1);
    let mut line = format!("${};{timestamp}", record.type_name());
    for (_, value) in record.fields().values() {
        append(&mut line, value);
    }
    line
}

#[test]
fn a_chunk_of_kieker_holds_what_its_text_twin_says() {
    let map = include_str!("../golden/file-text-none/kieker.map");
    let log = include_str!("../golden/file-text-none/kieker-20261120-221155221-UTC-001.dat");
    let classes: Vec<&str> = map
        .lines()
        .map(|line| line.split_once('=').unwrap().1)
        .collect();
    let twin: Vec<String> = log
        .lines()
        .map(|line| {
            let (id, rest) = line.strip_prefix('$').unwrap().split_once(';').unwrap();
            format!("${};{rest}", classes[id.parse::<usize>().unwrap()])
        })
        .collect();
    let batch = decode(CONTAINER);
    let lines: Vec<String> = batch.records().map(as_line).collect();
    assert_eq!(lines, twin);
    assert_eq!(lines.len(), 13);
    assert_eq!(batch.tables().len(), 13);
}

#[test]
fn records_of_kieker_make_the_bytes_that_kieker_made() {
    for golden in [CONTAINER, OER_1, OER_16, OER_32] {
        assert_eq!(encode(&decode(golden)), golden);
    }
    assert_eq!(decode(OER_32).len(), 32);
}

#[test]
fn a_typed_record_makes_the_bytes_that_kieker_made() {
    let record = OperationExecutionRecord {
        operation_signature: "public void a.B.op0()".to_owned(),
        session_id: "<no-session-id>".to_owned(),
        trace_id: 0,
        tin: 0x1797_9CFE_362A_0000,
        tout: 0x1797_9CFE_362A_01F4,
        hostname: "host1".to_owned(),
        eoi: 0,
        ess: 0,
    };
    let mut row = Vec::new();
    record.write_fields(&mut RowWriter::new(&mut row));
    let mut builder = BatchBuilder::new();
    let schema = OperationExecutionRecord::schema();
    builder
        .push_row(schema, 0x1797_9CFE_362A_0258, &row)
        .unwrap();
    assert_eq!(encode(builder.batch()), OER_1);
}

#[test]
fn a_chunk_without_records_has_thirteen_bytes() {
    let empty = RecordBatch::default();
    let bytes = encode(&empty);
    assert_eq!(bytes, b"KIKADFLT\0\0\0\0\0");
    assert_eq!(decode(&bytes), empty);
}

#[test]
fn every_byte_of_a_chunk_is_accounted_for() {
    for golden in [CONTAINER, OER_32] {
        let (_, layout) = container::decoder().decode_with_layout(golden).unwrap();
        let columns: usize = layout.columns.iter().map(|column| column.bytes).sum();
        let body = layout.string_bytes + layout.order_bytes + columns;
        assert_eq!(body, layout.body_bytes);
        assert_eq!(layout.header_bytes + body, golden.len());
    }
}

#[test]
fn no_truncation_of_a_chunk_is_taken_for_a_chunk() {
    let mut decoder = container::decoder();
    for end in 0..CONTAINER.len() {
        let error = decoder.decode(&CONTAINER[..end]).unwrap_err();
        assert!(error.offset <= end, "{error}");
    }
}

#[test]
fn no_altered_byte_makes_the_decoder_panic_or_allocate_above_its_limits() {
    let mut limits = Limits::default();
    limits.decoded_bytes = 16 << 10;
    let mut decoder =
        ChunkDecoder::new(limits).with_deserializer(container::KiekerDeserializer::default());
    let mut chunk = CONTAINER.to_vec();
    for at in 0..chunk.len() {
        for alter in [1, 0x80, 0xff] {
            chunk[at] ^= alter;
            match decoder.decode(&chunk) {
                Ok(decoded) => assert_eq!(decoded.batch.records().count(), decoded.batch.len()),
                Err(error) => assert!(error.offset <= chunk.len(), "{error}"),
            }
            chunk[at] ^= alter;
        }
    }
}

#[test]
fn an_unknown_class_is_named_with_its_place() {
    let mut decoder = container::decoder().with_catalog(Arc::new(Catalog::new()));
    let error = decoder.decode(OER_1).unwrap_err();
    assert_eq!(error.offset, 8);
    assert!(matches!(
        error.kind,
        DecodeErrorKind::UnknownRecordType { name }
            if &*name == "kieker.common.record.controlflow.OperationExecutionRecord"
    ));
}

#[test]
fn a_class_by_its_former_name_is_the_present_one() {
    let old = Schema::new(
        "kieker.common.record.OperationExecutionRecord",
        OperationExecutionRecord::schema().fields().to_vec(),
    )
    .unwrap();
    let golden = decode(OER_1);
    let first = DynamicRecord::from(golden.records().next().unwrap());
    let renamed = DynamicRecord::new(
        Arc::new(old),
        first.as_ref().timestamp(),
        first.values().to_vec(),
    )
    .unwrap();
    let mut builder = BatchBuilder::new();
    builder.push_dynamic(&renamed).unwrap();
    assert_eq!(decode(&encode(builder.batch())), golden);
}

fn field_types() -> Vec<FieldType> {
    let colours = EnumType::new("Colour", ["red", "green", "blue"]).unwrap();
    let plain = [
        FieldType::Bool,
        FieldType::I8,
        FieldType::I16,
        FieldType::I32,
        FieldType::I64,
        FieldType::F32,
        FieldType::F64,
        FieldType::Char,
        FieldType::String,
        FieldType::Enum(Arc::new(colours)),
    ];
    let lists = plain.clone().map(FieldType::list);
    plain.into_iter().chain(lists).collect()
}

/// Chars of 16 bits, and whatever else there is.
fn value(field_type: &FieldType) -> BoxedStrategy<Value> {
    let char = any::<u16>().prop_map(|unit| char::from_u32(unit.into()).unwrap_or('\u{ffff}'));
    match field_type {
        FieldType::Char => char.prop_map(Value::from).boxed(),
        FieldType::List(inner) if **inner == FieldType::Char => {
            proptest::collection::vec(char.prop_map(Value::from), 0..4)
                .prop_map(Value::List)
                .boxed()
        }
        other => arbitrary::value(other),
    }
}

/// Three types with some of the field types each, and records of them in any order.
fn records() -> impl Strategy<Value = (Vec<Arc<Schema>>, Vec<DynamicRecord>)> {
    let schema = |name: &'static str| {
        proptest::sample::subsequence(field_types(), 0..8).prop_map(move |types| {
            let fields: Vec<_> = types
                .into_iter()
                .enumerate()
                .map(|(at, field_type)| Field::new(format!("field{at}"), field_type))
                .collect();
            Arc::new(Schema::new(name, fields).unwrap())
        })
    };
    (schema("type0"), schema("type1"), schema("type2")).prop_flat_map(|(a, b, c)| {
        let schemas = vec![a, b, c];
        let record = proptest::sample::select(schemas.clone()).prop_flat_map(|schema| {
            let fields: Vec<_> = schema
                .fields()
                .iter()
                .map(|f| value(f.field_type()))
                .collect();
            (any::<i64>(), fields).prop_map(move |(timestamp, values)| {
                DynamicRecord::new(Arc::clone(&schema), Some(timestamp), values).unwrap()
            })
        });
        (Just(schemas), proptest::collection::vec(record, 0..20))
    })
}

proptest! {
    #[test]
    fn any_records_that_kieker_can_hold_survive((schemas, records) in records()) {
        let mut catalog = Catalog::new();
        for schema in schemas {
            catalog.register(schema);
        }
        let mut builder = BatchBuilder::new();
        for record in &records {
            builder.push_dynamic(record).unwrap();
        }
        let chunk = encode(builder.batch());
        let mut decoder = container::decoder().with_catalog(Arc::new(catalog));
        let batch = decoder.decode(&chunk).unwrap().batch;
        prop_assert_eq!(&batch, builder.batch());
        let decoded: Vec<_> = batch.records().map(DynamicRecord::from).collect();
        prop_assert_eq!(decoded, records);
    }

    #[test]
    fn any_bytes_are_refused_or_decoded(
        records in proptest::collection::vec(any::<u8>(), 0..200),
        strings in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut chunk = b"KIKADFLT".to_vec();
        chunk.extend_from_slice(&records);
        chunk.extend_from_slice(&strings);
        chunk.extend_from_slice(&u32::try_from(records.len()).unwrap().to_be_bytes());
        if let Err(error) = container::decoder().decode(&chunk) {
            prop_assert!(error.offset <= chunk.len());
        }
    }
}
