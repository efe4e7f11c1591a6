use baler_common::record::{Field, FieldType, Schema, Value};

use super::super::args::tests::parse;
use super::super::run_log::fingerprint;
use super::*;

/// Returns a record with this text. Its row has four bytes more.
fn record(name: &str, text: &str) -> DynamicRecord {
    let fields = [Field::new("text", FieldType::String)];
    let schema = Schema::new(name, fields).unwrap();
    DynamicRecord::new(schema.into(), Some(7), [Value::from(text)]).unwrap()
}

#[test]
fn what_is_kept_is_read_again_and_other_records_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("results");
    let mut own = UserRecords::new("amqp://user:secret@host/?queue=q");
    assert!(own.is_empty());
    for one in [record("a", "12"), record("b", "1234"), record("a", "")] {
        assert!(own.push(one.as_ref()));
    }
    let report = own.save(&folder).unwrap();
    assert_eq!(read(&file(&folder)).unwrap(), own.records());
    assert_eq!(report, own.save(&folder).unwrap());
    assert_eq!((report.records, report.row_bytes()), (3, 6));
    let sentence = report.sentence();
    assert!(
        sentence.contains("amqp://") && sentence.contains("(the first 3)"),
        "{sentence}"
    );
    assert!(!sentence.contains("secret"), "{sentence}");
    let plan = |report| fingerprint(&parse(&[]), report).unwrap();
    let before = plan(Some(&report));
    own.push(record("a", "").as_ref());
    let other = own.save(&folder).unwrap();
    let after = plan(Some(&other));
    assert!(before != after && before != plan(None));
}

#[test]
fn there_is_room_for_a_number_of_records_and_of_bytes() {
    let mut small = UserRecords::new("null:");
    let one = record("a", "1");
    while small.push(one.as_ref()) {}
    assert_eq!(small.count(), MAX_RECORDS);
    let mut large = UserRecords::new("null:");
    let one = record("a", &"1".repeat(1 << 20));
    while large.push(one.as_ref()) {}
    assert_eq!(large.count(), 16);
    let folder = tempfile::tempdir().unwrap();
    let sentence = large.save(folder.path()).unwrap().sentence();
    assert!(sentence.contains("keeps 16 MiB"), "{sentence}");
}
