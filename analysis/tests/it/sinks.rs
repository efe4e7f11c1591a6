//! Sinks: their output, and that nothing is settled before it is written.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use baler_analysis::filters::Counts;
use baler_analysis::sinks::{CsvFolder, Existing, Formulas, JsonLines, OutputFile, TextTable};
use baler_analysis::{Source, Stage, Stop};
use baler_common::record::{
    AnyValue, DynamicRecord, EnumType, Field, FieldType, Role, Schema, Value,
};
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

/// A record with maps, and values of any type.
fn span() -> DynamicRecord {
    let any = FieldType::Record(Arc::clone(AnyValue::schema()));
    let fields = [
        ("attributes", any.clone().map()),
        ("counts", FieldType::U8.list().map()),
        ("text", any.clone()),
        ("tags", any.clone()),
        ("none", any),
    ];
    let attributes = [
        ("http.status", AnyValue::I64(200)),
        ("route", AnyValue::String("/a\"b".into())),
        ("key", AnyValue::Bytes([0, 255, 1].as_slice().into())),
        ("load", AnyValue::F64(f64::NAN)),
        ("tags", AnyValue::Json("[\"a\"]".into())),
        ("none", AnyValue::Empty),
        ("broken", AnyValue::Json("{".into())),
        ("http.status", AnyValue::I64(500)),
    ];
    let attributes = attributes.map(|(key, value)| (key, value.to_value()));
    let values = vec![
        Value::map(attributes),
        Value::map([("a", Value::List(vec![Value::Unsigned(1)]))]),
        AnyValue::String("plain".into()).to_value(),
        AnyValue::Json("[1]".into()).to_value(),
        AnyValue::Empty.to_value(),
    ];
    DynamicRecord::new(schema("m::Span", &fields), None, values).unwrap()
}

#[test]
fn maps_and_values_of_any_type_are_plain() {
    let attributes = r#"{"http.status":200,"route":"/a\"b","key":"AP8B","load":"NaN","tags":["a"],"none":null,"broken":"{","http.status":500}"#;
    let output = Shared::default();
    let mut sink = JsonLines::new(output.clone(), "test");
    sink.accept(parcel(&[span()])).unwrap();
    sink.finish().unwrap();
    assert_eq!(
        output.text(),
        format!(
            "{{\"type\":\"m::Span\",\"timestamp\":null,\"fields\":{{\"attributes\":{attributes},\
             \"counts\":{{\"a\":[1]}},\"text\":\"plain\",\"tags\":[1],\"none\":null}}}}\n"
        )
    );
    let read: serde_json::Value = serde_json::from_str(&output.text()).unwrap();
    assert_eq!(read["fields"]["attributes"]["http.status"], 500);

    let folder = tempfile::tempdir().unwrap();
    let mut sink = CsvFolder::new(folder.path());
    sink.accept(parcel(&[span()])).unwrap();
    sink.finish().unwrap();
    let csv = std::fs::read_to_string(folder.path().join("m__Span.csv")).unwrap();
    let quoted = attributes.replace('"', "\"\"");
    assert_eq!(
        csv.lines().nth(1).unwrap(),
        format!(",\"{quoted}\",\"{{\"\"a\"\":[1]}}\",plain,\"[1]\",")
    );

    let output = Shared::default();
    let mut sink = TextTable::new(output.clone(), "test", None);
    sink.accept(parcel(&[span()])).unwrap();
    sink.finish().unwrap();
    assert!(output.text().contains("text=\"plain\" tags=[1] none=null"));
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

/// More types than files may be open, then more types than get a file of their own.
#[test]
fn csv_takes_any_number_of_types() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = CsvFolder::new(folder.path());
    let record = |number: u32| {
        let schema = schema(&format!("t{number}"), &[("n", FieldType::U32)]);
        let value = vec![Value::Unsigned(number.into())];
        DynamicRecord::new(schema, Some(7), value).unwrap()
    };
    for first in [0, 0, 2_000, 4_000] {
        let records: Vec<_> = (first..first + 2_000).map(record).collect();
        sink.accept(parcel(&records)).unwrap();
    }
    sink.finish().unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    // A file that was closed meanwhile goes on, and has one header.
    assert_eq!(read("t3.csv"), "(timestamp),n\n7,3\n7,3\n");
    assert_eq!(read("t4095.csv"), "(timestamp),n\n7,4095\n");
    let others = read("(other types).csv");
    let mut others = others.lines();
    assert_eq!(others.next(), Some("(timestamp),(type),(fields)"));
    assert_eq!(others.next(), Some("7,t4096,\"{\"\"n\"\":4096}\""));
    assert_eq!(others.count(), 6_000 - 4_096 - 1);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4_097);
}

#[test]
fn csv_escapes_formulas_by_choice() {
    for (text, kept, escaped) in [
        ("=1+1", "=1+1", "'=1+1"),
        ("=a,b", "\"=a,b\"", "\"'=a,b\""),
        ("@x", "@x", "'@x"),
        ("a=1", "a=1", "a=1"),
        ("", "", ""),
    ] {
        for (formulas, cell) in [(Formulas::Keep, kept), (Formulas::Escape, escaped)] {
            let folder = tempfile::tempdir().unwrap();
            let mut sink = CsvFolder::new(folder.path()).with_formulas(formulas);
            let fields = [("=f", FieldType::String), ("n", FieldType::I8)];
            let values = vec![Value::String(text.into()), Value::Signed(-1)];
            let record = DynamicRecord::new(schema("t", &fields), None, values).unwrap();
            sink.accept(parcel(&[record])).unwrap();
            sink.finish().unwrap();
            let written = std::fs::read_to_string(folder.path().join("t.csv")).unwrap();
            let before = if formulas == Formulas::Escape {
                "'"
            } else {
                ""
            };
            assert_eq!(written, format!("(timestamp),{before}=f,n\n,{cell},-1\n"));
        }
    }
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

/// The largest single write, and the sum of all writes.
#[derive(Clone, Default)]
struct Sizes(Arc<Mutex<(usize, usize)>>);

impl Write for Sizes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut sizes = self.0.lock().unwrap();
        *sizes = (sizes.0.max(bytes.len()), sizes.1 + bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn an_output_gets_a_mebibyte_at_once_at_most_whatever_a_chunk_expands_to() {
    let text = "x".repeat(1_000);
    let small = schema("t", &[("text", FieldType::String)]);
    let small = DynamicRecord::new(small, None, vec![text.as_str().into()]).unwrap();
    // One record that is longer than a slice.
    let large = schema("list", &[("texts", FieldType::String.list())]);
    let texts = Value::List(vec![text.as_str().into(); 4_000]);
    let large = DynamicRecord::new(large, None, vec![texts]).unwrap();
    for records in [vec![small; 4_000], vec![large]] {
        let sizes = Sizes::default();
        let mut sink = JsonLines::new(sizes.clone(), "sizes");
        sink.accept(parcel(&records)).unwrap();
        sink.finish().unwrap();
        let (largest, sum) = *sizes.0.lock().unwrap();
        assert!(sum > 4_000_000, "{sum}");
        assert!(largest <= 1 << 20, "{largest} bytes at once");

        let sizes = Sizes::default();
        let mut sink = TextTable::new(sizes.clone(), "sizes", None);
        sink.accept(parcel(&records)).unwrap();
        sink.finish().unwrap();
        assert!(sizes.0.lock().unwrap().0 <= 1 << 20);
    }
}

#[test]
fn lines_follow_those_that_are_there_and_a_torn_one_is_moved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let append = |text: &str, existing| {
        let (mut file, torn) = OutputFile::lines(&path, existing).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        torn.map(|torn| torn.to_string())
    };
    assert_eq!(append("one\ntw", Existing::Append), None);
    let torn = append("two\n", Existing::Append).unwrap();
    assert!(torn.contains("lines was torn: moved 2 bytes"), "{torn}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    let aside = folder.path().join("lines.torn");
    assert_eq!(std::fs::read_to_string(&aside).unwrap(), "tw\n");
    // A line that is longer than what is read at once, and the only one.
    let long = "x".repeat(200_000);
    assert_eq!(append(&long, Existing::Replace), None);
    assert!(append("new\n", Existing::Append).is_some());
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "new\n");
}

#[test]
fn a_file_that_another_process_writes_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines");
    let (first, _) = OutputFile::lines(&path, Existing::Append).unwrap();
    for existing in [Existing::Append, Existing::Replace] {
        let error = OutputFile::lines(&path, existing).unwrap_err();
        assert!(error.to_string().contains("another process"), "{error}");
    }
    drop(first);
    OutputFile::lines(&path, Existing::Append).unwrap();
}

/// Returns the output of each run of a CSV sink, with the notices of the last one.
fn csv_runs(
    folder: &std::path::Path,
    existing: Existing,
    runs: &[DynamicRecord],
) -> (u64, Vec<String>) {
    let (written, notices) = (Counts::default(), Arc::new(Mutex::new(Vec::new())));
    for record in runs {
        let seen = Arc::clone(&notices);
        seen.lock().unwrap().clear();
        let mut sink = CsvFolder::new(folder)
            .with_existing(existing)
            .with_notice(move |text| seen.lock().unwrap().push(text.to_owned()))
            .counting(written.clone());
        sink.accept(parcel(std::slice::from_ref(record))).unwrap();
        sink.finish().unwrap();
    }
    let notices = notices.lock().unwrap().clone();
    (written.records(), notices)
}

fn text_record(text: &str) -> DynamicRecord {
    let schema = schema("t", &[("a,b", FieldType::String)]);
    DynamicRecord::new(schema, Some(1), vec![text.into()]).unwrap()
}

#[test]
fn csv_goes_on_after_whole_rows_and_has_one_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let read = || std::fs::read_to_string(&path).unwrap();
    let records = [text_record("a\nb \"c\""), text_record("d")];
    let (written, notices) = csv_runs(folder.path(), Existing::Append, &records);
    let whole = "(timestamp),\"a,b\"\n1,\"a\nb \"\"c\"\"\"\n1,d\n";
    assert_eq!((read().as_str(), written), (whole, 2));
    assert!(notices.is_empty(), "{notices:?}");

    // Cut anywhere, the next run leaves whole rows alone and moves the rest.
    let rows = ["(timestamp),\"a,b\"\n", "1,\"a\nb \"\"c\"\"\"\n", "1,d\n"];
    for cut in 1..whole.len() {
        std::fs::write(&path, whole.get(..cut).unwrap()).unwrap();
        let (_, notices) = csv_runs(folder.path(), Existing::Append, &[text_record("e")]);
        let (mut kept, mut end) = (rows[0].to_owned(), rows[0].len());
        for row in &rows[1..] {
            if end + row.len() <= cut {
                kept.push_str(row);
            }
            end += row.len();
        }
        assert_eq!(read(), kept.clone() + "1,e\n", "cut at {cut}");
        let is_torn = cut < rows[0].len() || kept.len() != cut;
        assert_eq!(
            notices.len(),
            usize::from(is_torn),
            "cut at {cut}: {notices:?}"
        );
    }
    csv_runs(folder.path(), Existing::Replace, &[text_record("f")]);
    assert_eq!(read(), "(timestamp),\"a,b\"\n1,f\n");
}

#[test]
fn csv_of_other_columns_stays_and_gets_a_file_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let foreign = "name,value\nx,1\nno end";
    std::fs::write(&path, foreign).unwrap();
    for _ in 0..2 {
        let (_, notices) = csv_runs(folder.path(), Existing::Append, &[text_record("a")]);
        assert!(notices[0].contains("other columns than t"), "{notices:?}");
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap(), foreign);
    let beside = std::fs::read_dir(folder.path()).unwrap();
    let beside = beside.map(|it| it.unwrap().path()).find(|it| *it != path);
    let beside = beside.unwrap();
    let text = std::fs::read_to_string(&beside).unwrap();
    assert_eq!(text, "(timestamp),\"a,b\"\n1,a\n1,a\n");
    // Another program has put something else there, too.
    std::fs::write(&beside, foreign).unwrap();
    let mut sink = CsvFolder::new(folder.path());
    let error = sink.accept(parcel(&[text_record("a")])).unwrap_err();
    assert!(error.to_string().contains("move them away"), "{error}");
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
