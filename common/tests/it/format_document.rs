//! FORMAT.md agrees with the encoder: its worked example and its tables are read and compared.

use std::sync::Arc;

use baler_common::container::Compression;
use baler_common::record::{DynamicRecord, Field, FieldType, Role, Schema, Value};
use baler_connector_kieker::types;

use crate::arbitrary;
use crate::native_chunks::{decoder, encode, header};

const DOCUMENT: &str = include_str!("../../FORMAT.md");

/// The lines of the fenced block under the heading.
fn block_under(heading: &str) -> impl Iterator<Item = &'static str> {
    let under = DOCUMENT
        .lines()
        .skip_while(move |line| *line != heading)
        .skip_while(|line| !line.starts_with("```"))
        .skip(1);
    under.take_while(|line| !line.starts_with("```"))
}

/// The three records of the worked example.
fn example_records() -> Vec<DynamicRecord> {
    let fields = vec![
        Field::new("operation", FieldType::String),
        Field::new("duration", FieldType::U32).with_role(Role::Nanos),
        Field::new("error", FieldType::Bool.optional()),
    ];
    let schema = Arc::new(Schema::new("shop.Call", fields).unwrap());
    let record = |time, operation: &str, duration, error| {
        let values = [Value::from(operation), Value::Unsigned(duration), error];
        DynamicRecord::new(Arc::clone(&schema), Some(time), values).unwrap()
    };
    vec![
        record(1_700_000_000_000_000_000, "find", 1_200, Value::Null),
        record(1_700_000_000_000_002_000, "buy", 1_300, Value::Bool(true)),
        record(1_700_000_000_000_004_000, "find", 1_210, Value::Null),
    ]
}

#[test]
fn the_worked_example_is_what_the_encoder_writes() {
    let mut header = header(0x0f0e_0d0c_0b0a_0908_0706_0504_0302_0100, 5);
    header.last_of_epoch = true;
    let records = example_records();
    let chunk = encode(&arbitrary::batch(&records), &header, Compression::None);

    let mut documented = Vec::new();
    for line in block_under("## A worked example") {
        let (offset, rest) = line.split_once(':').unwrap();
        assert_eq!(offset.trim().parse(), Ok(documented.len()), "{line}");
        let bytes = rest.split_once('|').unwrap().0;
        for byte in bytes.split_whitespace() {
            documented.push(u8::from_str_radix(byte, 16).unwrap());
        }
    }
    assert_eq!(documented, chunk, "FORMAT.md differs from {chunk:02x?}");
    let decoded = decoder().decode(&documented).unwrap();
    assert_eq!(arbitrary::records_of(&decoded.batch), records);
    assert_eq!(decoded.summary.header, Some(header));
}

/// A field of a well-known type as the document has it.
fn documented_field(field: &Field) -> String {
    let kind = match field.field_type() {
        FieldType::List(item) => format!("{item}[]"),
        kind => kind.to_string(),
    };
    let role = match field.role() {
        Role::Plain => "",
        Role::UnixNanos => " time",
        Role::Nanos => " span",
    };
    format!("{} {kind}{role}", field.name())
}

#[test]
fn the_well_known_types_are_those_of_the_catalog() {
    let mut expected = String::new();
    for (number, schema) in (1..).zip(types::catalog().schemas()) {
        expected += &format!("{number:2} {}\n", schema.name());
        let fields: Vec<_> = schema.fields().iter().map(documented_field).collect();
        if !fields.is_empty() {
            expected += &format!("   {}\n", fields.join(", "));
        }
    }
    let documented: String = block_under("### Well-known types")
        .flat_map(|line| [line, "\n"])
        .collect();
    assert!(documented == expected, "FORMAT.md must say\n{expected}");
}
