//! Sinks: what they write, and that nothing is settled before it is written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use baler_analysis::sinks::{CsvFolder, JsonLines, TextTable};
use baler_analysis::{Source, Stage, Stop};
use baler_common::record::{DynamicRecord, EnumType, Field, FieldType, Role, Schema, Value};
use bytes::Bytes;

use crate::support::{Play, Scripted, chunk, numbered, parcel, schema};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Shared {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn odd() -> DynamicRecord {
    let level = Arc::new(EnumType::new("Level", ["Low", "High"]).unwrap());
    let inner = schema("inner", &[("x", FieldType::U64)]);
    let fields = [
        ("min", FieldType::I64),
        ("max", FieldType::U64),
        ("nan", FieldType::F64),
        ("inf", FieldType::F32),
        ("tenth", FieldType::F32),
        ("c", FieldType::Char),
        ("b", FieldType::Bytes),
        ("level", FieldType::Enum(level)),
        ("none", FieldType::I32.optional()),
        ("list", FieldType::String.list()),
        ("inner", FieldType::Record(inner)),
    ];
    let values = vec![
        Value::Signed(i64::MIN),
        Value::Unsigned(u64::MAX),
        Value::F64(f64::NAN),
        Value::F32(f32::NEG_INFINITY),
        Value::F32(0.1),
        Value::Char('ß'),
        Value::Bytes(Bytes::from_static(&[0, 255, 1])),
        Value::Variant(1),
        Value::Null,
        Value::List(vec!["a\"b".into(), "c,d".into()]),
        Value::Record(vec![Value::Unsigned(3)]),
    ];
    DynamicRecord::new(schema("m::Odd", &fields), None, values).unwrap()
}

#[test]
fn json_is_exact() {
    let output = Shared::default();
    let mut sink = JsonLines::new(output.clone(), "test");
    sink.accept(parcel(&[odd()])).unwrap();
    sink.finish().unwrap();
    assert_eq!(
        output.text(),
        "{\"type\":\"m::Odd\",\"timestamp\":null,\"fields\":{\"min\":-9223372036854775808,\
         \"max\":18446744073709551615,\"nan\":\"NaN\",\"inf\":\"-Infinity\",\"tenth\":0.1,\
         \"c\":\"ß\",\"b\":\"AP8B\",\"level\":\"High\",\"none\":null,\
         \"list\":[\"a\\\"b\",\"c,d\"],\"inner\":{\"x\":3}}}\n"
    );
}

#[test]
fn json_tells_by_choice_who_a_record_is() {
    let output = Shared::default();
    let mut sink = JsonLines::new(output.clone(), "memory").with_identity();
    sink.accept(parcel(&[numbered(1), numbered(2)])).unwrap();
    sink.finish().unwrap();
    let text = output.text();
    let second: serde_json::Value = serde_json::from_str(text.lines().nth(1).unwrap()).unwrap();
    assert_eq!(
        second,
        serde_json::json!({
            "type": "t",
            "timestamp": 2,
            "identity": {
                "producer": "00000000000000000000000000000007",
                "epoch": "1-00000002",
                "lane": 0,
                "sequence": 0,
                "index": 1,
            },
            "fields": {"number": 2},
        })
    );
}

#[test]
fn csv_has_one_file_a_type_with_a_header() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = CsvFolder::new(folder.path().join("out"));
    sink.accept(parcel(&[numbered(1), odd(), numbered(2)]))
        .unwrap();
    sink.finish().unwrap();
    let read = |name| std::fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert_eq!(read("t.csv"), "(timestamp),number\n1,1\n2,2\n");
    let odd = read("m__Odd.csv");
    assert_eq!(
        odd.lines().nth(1).unwrap(),
        ",-9223372036854775808,18446744073709551615,NaN,-Infinity,0.1,ß,AP8B,High,,\
         \"[\"\"a\\\"\"b\"\",\"\"c,d\"\"]\",\"{\"\"x\"\":3}\""
    );
}

#[test]
fn csv_keeps_two_versions_of_a_type_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = CsvFolder::new(folder.path());
    let old = numbered(1);
    let new = DynamicRecord::new(
        schema("t", &[("n", FieldType::I8)]),
        None,
        vec![Value::Signed(1)],
    )
    .unwrap();
    sink.accept(parcel(&[old, new])).unwrap();
    sink.finish().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_type_name_does_not_lead_out_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("inside");
    let evil = DynamicRecord::new(
        schema("../../evil", &[("n", FieldType::I8)]),
        None,
        [Value::Signed(1)],
    )
    .unwrap();
    let mut sink = CsvFolder::new(&inside);
    sink.accept(parcel(&[evil])).unwrap();
    sink.finish().unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::read_dir(&inside).unwrap().count(), 1);
}

#[test]
fn table_lines_fit_their_width() {
    let output = Shared::default();
    let mut sink = TextTable::new(output.clone(), "test", Some(100));
    sink.accept(parcel(&[numbered(5), odd()])).unwrap();
    sink.finish().unwrap();
    let text = output.text();
    assert!(
        text.lines().all(|line| line.chars().count() <= 100),
        "{text}"
    );
    assert!(text.lines().nth(1).unwrap().ends_with("number=5"), "{text}");
}

/// One record of a type with one field each of these, in a table without a width.
fn shown(type_name: &str, fields: Vec<(Field, Value)>) -> String {
    let (fields, values): (Vec<_>, Vec<_>) = fields.into_iter().unzip();
    let schema = Arc::new(Schema::new(type_name, fields).unwrap());
    let record = DynamicRecord::new(schema, Some(1_283_156_545_250_000_999), values).unwrap();
    let output = Shared::default();
    let mut sink = TextTable::new(output.clone(), "test", None);
    sink.accept(parcel(&[record])).unwrap();
    sink.finish().unwrap();
    let text = output.text();
    assert_eq!(text.lines().count(), 2, "{text:?}");
    text.lines().nth(1).unwrap().to_owned()
}

#[test]
fn table_shows_times_and_spans_by_the_roles_of_fields() {
    let list = FieldType::U64.list();
    let line = shown(
        "p.T",
        vec![
            (
                Field::new("at", FieldType::I64).with_role(Role::UnixNanos),
                Value::Signed(1_500),
            ),
            (
                Field::new("never", FieldType::I64).with_role(Role::UnixNanos),
                Value::Signed(-1),
            ),
            (
                Field::new("took", FieldType::I64).with_role(Role::Nanos),
                Value::Signed(1_234_567),
            ),
            (
                Field::new("all", list).with_role(Role::Nanos),
                Value::List(vec![Value::Unsigned(2), Value::Unsigned(3_000)]),
            ),
            (
                Field::new("plain", FieldType::I64),
                Value::Signed(1_234_567),
            ),
            (
                Field::new("long", FieldType::String),
                "x".repeat(300).into(),
            ),
        ],
    );
    let start = "2010-08-30T08:22:25.250000Z  T                         \
        at=1970-01-01T00:00:00.000001Z never=- took=1.23 ms all=[2 ns,3.00 us] plain=1234567 ";
    assert_eq!(line, format!("{start}long=\"{}\"", "x".repeat(300)));
}

#[test]
fn nothing_of_a_record_can_control_the_terminal() {
    let evil = "\x1b[2J\u{9b}31m\r\n\x07";
    let line = shown(
        &format!("p.{evil}"),
        vec![
            (Field::new(evil, FieldType::String), evil.into()),
            (Field::new("c", FieldType::Char), Value::Char('\u{85}')),
        ],
    );
    assert!(!line.contains(char::is_control), "{line:?}");
    assert!(line.contains("\\u009b31m"), "{line}");
}

/// The most bytes that came at once.
#[derive(Clone, Default)]
struct Largest(Arc<Mutex<usize>>);

impl Write for Largest {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut largest = self.0.lock().unwrap();
        *largest = bytes.len().max(*largest);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn table_of_a_large_chunk_is_written_in_pieces() {
    let records: Vec<_> = (0..10_000).map(numbered).collect();
    let output = Largest::default();
    let mut sink = TextTable::new(output.clone(), "test", None);
    sink.accept(parcel(&records)).unwrap();
    sink.finish().unwrap();
    let largest = *output.0.lock().unwrap();
    assert!((1_000..100_000).contains(&largest), "{largest}");
}

struct Full;

impl Write for Full {
    fn write(&mut self, _bytes: &[u8]) -> io::Result<usize> {
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn what_could_not_be_written_is_not_acknowledged() {
    let (reader, verdicts) = Scripted::new((0..10).map(|sequence| Play::Chunk(chunk(sequence))));
    let mut source = Source::new(reader.endless()).with_demand(4);
    let mut sink = JsonLines::new(Full, "a full disk");
    let error = source
        .run(&mut sink, Stop::default(), |_| true)
        .unwrap_err();
    assert!(error.to_string().contains("a full disk"), "{error}");
    drop(sink);
    assert!(verdicts.lock().unwrap().is_empty());
}
