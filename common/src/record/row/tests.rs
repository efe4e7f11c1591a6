use std::sync::Arc;

use super::*;
use crate::record::{Field, Interned, RowWriter};

fn schema() -> Schema {
    let inner = Schema::new("inner", vec![Field::new("a", FieldType::U16)]).unwrap();
    let fields = vec![
        Field::new("text", FieldType::String),
        Field::new("static", FieldType::String),
        Field::new("bytes", FieldType::Bytes),
        Field::new("maybe", FieldType::I8.optional()),
        Field::new("list", FieldType::F64.list()),
        Field::new("inner", FieldType::Record(Arc::new(inner))),
        Field::new("traceId", FieldType::I32),
        Field::new("after", FieldType::Bool),
    ];
    Schema::new("outer", fields).unwrap()
}

fn row(trace: i32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = RowWriter::new(&mut out);
    row.str("some text");
    row.interned(Interned::leaked("a call site"));
    row.bytes(&[1, 2, 3]);
    row.some();
    row.i8(-1);
    row.list(2);
    row.f64(1.0);
    row.f64(2.0);
    row.u16(9);
    row.i32(trace);
    row.bool(true);
    out
}

#[test]
fn number_is_found_behind_values_of_every_kind() {
    let number = RowNumber::find(&schema(), &["trace_id", "traceId"]).unwrap();
    assert_eq!(number.read(&row(77)), Some(77));
    assert_eq!(number.read(&row(-1)), Some(u64::MAX));
}

#[test]
fn field_that_is_missing_or_no_integer_is_not_found() {
    assert!(RowNumber::find(&schema(), &["other"]).is_none());
    assert!(RowNumber::find(&schema(), &["text"]).is_none());
}

#[test]
fn row_that_ends_early_has_no_number() {
    let number = RowNumber::find(&schema(), &["traceId"]).unwrap();
    let row = row(1);
    // The field after it is not looked at.
    for length in 0..row.len() - 1 {
        assert_eq!(number.read(&row[..length]), None, "{length}");
    }
}
