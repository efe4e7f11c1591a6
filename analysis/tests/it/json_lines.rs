//! Lines of JSON become records, and the JSON sink writes them back.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_analysis::json_lines::{
    BadJsonLine, Inference, JsonLinesReader, JsonLinesSettings, LineError, Next,
};
use baler_analysis::sinks::RecordJson;
use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, NativeSerializer,
};
use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, Schema};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

#[derive(serde::Deserialize)]
struct Written<'a> {
    r#type: String,
    #[serde(borrow)]
    fields: &'a RawValue,
}

/// Writes these records by the JSON sink after a chunk carried them; returns type and fields.
fn written(records: &[DynamicRecord]) -> Vec<(String, String)> {
    let mut batch = BatchBuilder::new();
    for record in records {
        batch.push_ref(record.as_ref()).unwrap();
    }
    let header = ChunkHeader::new(ChunkIdentity {
        producer: ProducerId::new(1),
        epoch: Epoch {
            start_unix_ns: 0,
            random: 0,
        },
        lane: 0,
        sequence: 0,
    });
    let mut chunk = Vec::new();
    let mut serializer = NativeSerializer::new(Compression::None).unwrap();
    serializer
        .serialize(&batch.take(), &header, &mut chunk)
        .unwrap();
    let decoded = ChunkDecoder::default().decode(&chunk).unwrap();
    let lines = decoded.batch.records().map(|record| {
        let line = serde_json::to_string(&RecordJson(record)).unwrap();
        let written: Written<'_> = serde_json::from_str(&line).unwrap();
        (written.r#type, written.fields.get().to_owned())
    });
    lines.collect()
}

fn round_trip<'a>(lines: impl IntoIterator<Item = &'a str>) -> Vec<(String, String)> {
    let mut inference = Inference::new("type");
    let records = lines
        .into_iter()
        .map(|line| inference.record(line).unwrap());
    written(&records.collect::<Vec<_>>())
}

#[test]
fn lines_come_back_as_they_were() {
    let lines = [
        r#"{"type":"a","n":1,"t":"x","b":true,"f":0.1,"list":[1,2],"o":{"k":"v"}}"#,
        // A key is missing, null, or new.
        r#"{"type":"a","n":1}"#,
        r#"{"type":"a","n":null}"#,
        r#"{"type":"a","n":2,"more":[]}"#,
        r#"{"type":"a","n":2,"more":[{"x":1},null,{"x":2}]}"#,
        // No type of a field fits.
        r#"{"type":"b","n":1}"#,
        r#"{"type":"b","n":"one"}"#,
        r#"{"type":"b","n":[1,"one",{"a":[]}]}"#,
        r#"{"type":"b","n":[{"a":1},{"b":2}]}"#,
        // Numbers that neither an integer nor a float can hold.
        r#"{"type":"c","n":18446744073709551615,"i":-9223372036854775808}"#,
        r#"{"type":"c","n":18446744073709551616,"i":-9223372036854775809}"#,
        r#"{"type":"c","d":0.1000000000000000055511151231257827}"#,
        r#"{"type":"c","d":0.30000000000000004}"#,
        r#"{"type":"c","z":-0,"y":-0.0}"#,
        // Values that are not a type, and keys that cannot be a field.
        r#"{"type":7}"#,
        r#"{"other":7}"#,
        r#"{}"#,
        r#"{"":1}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"json":[1,"x"]}"#,
        r#"{"json":{"json":"x"}}"#,
        r#"{"type":"baler.Json","json":"[1"}"#,
        // Text with escapes and beyond ASCII; deep nesting.
        r#"{"type":"d","t":"a\"b\\c\n\u0000é😀"}"#,
        r#"{"type":"d","t":[[[[[[[[[["deep"]]]]]]]]]],"o":{"o":{"o":{"o":{"o":{"o":{"o":{}}}}}}}}"#,
    ];
    for lines in [lines.to_vec(), lines.iter().rev().copied().collect()] {
        let back = round_trip(lines.iter().copied());
        for (line, (name, fields)) in lines.iter().zip(back) {
            let (sent, back) = (value(line), value(&fields));
            assert!(is_equal(&sent, &back), "{line} became {fields}");
            let expected = sent.get("type").and_then(Value::as_str).unwrap_or("json");
            assert_eq!(name, expected, "{line}");
        }
    }
    let exact = [
        lines[9],
        lines[10],
        lines[11],
        lines[18],
        lines[19],
        lines[20],
        r#"{"n":1e400,"tiny":1e-400,"float":2.5e-310}"#,
    ];
    for (line, (_, fields)) in exact.iter().zip(round_trip(exact)) {
        assert_eq!(*line, fields);
    }
}

fn value(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Equality of JSON, where 1 equals 1.0, and -0 does not equal 0.
fn is_equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => {
            a == b || a.as_f64().map(f64::to_bits) == b.as_f64().map(f64::to_bits)
        }
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(key, a)| b.get(key).is_some_and(|b| is_equal(a, b)))
        }
        _ => a == b,
    }
}

#[test]
fn fields_get_the_narrowest_type_that_fits_all_lines() {
    let mut inference = Inference::new("kind");
    let mut schema = |line: &str| format!("{:?}", inference.record(line).unwrap().schema());
    for (line, expected) in [
        (r#"{"kind":"k","n":1}"#, "k { kind: string, n: i64 }"),
        (
            r#"{"kind":"k","n":18446744073709551615}"#,
            "k { kind: string, n: u64 }",
        ),
        (r#"{"kind":"k","n":1}"#, "k { kind: string, n: u64 }"),
        (
            r#"{"kind":"k","n":-1}"#,
            "k { kind: string, n: record baler.Json }",
        ),
        (
            r#"{"kind":"l","n":1,"o":null}"#,
            "l { kind: string, n: i64, o: optional<string> }",
        ),
        (
            r#"{"kind":"l","n":1.5,"o":{"a":[]}}"#,
            "l { kind: string, n: f64, o: optional<record object> }",
        ),
        (
            r#"{"kind":"l","n":9007199254740993,"o":null}"#,
            "l { kind: string, n: record baler.Json, o: optional<record object> }",
        ),
        (
            r#"{"kind":"m","l":[]}"#,
            "m { kind: string, l: list<string> }",
        ),
        (
            r#"{"kind":"m","l":[1,null]}"#,
            "m { kind: string, l: list<optional<i64>> }",
        ),
    ] {
        assert_eq!(schema(line), expected, "{line}");
    }
}

#[test]
fn records_that_were_no_lines_keep_a_field_named_json() {
    let field = |field_type| vec![Field::new("json", field_type)];
    let inner = Schema::new("shop.Inner", field(FieldType::String)).unwrap();
    let outer = field(FieldType::Record(Arc::new(inner)));
    let outer = Arc::new(Schema::new("shop.Outer", outer).unwrap());
    let value = baler_common::record::Value::Record(vec!["{}".into()]);
    let record = DynamicRecord::new(outer, None, vec![value]).unwrap();
    let expected = (
        "shop.Outer".to_owned(),
        r#"{"json":{"json":"{}"}}"#.to_owned(),
    );
    assert_eq!(written(&[record]), [expected]);
}

#[test]
fn other_lines_are_refused() {
    let mut inference = Inference::new("type");
    for (line, error) in [
        ("[1]", "the line is JSON, but not an object {...}"),
        (
            "x",
            "the line is not JSON: expected value at line 1 column 1",
        ),
        (
            r#"{"a":}"#,
            "the line is not JSON: expected value at line 1 column 6",
        ),
    ] {
        assert_eq!(inference.record(line).unwrap_err().to_string(), error);
    }
    assert!(matches!(inference.record("1"), Err(LineError::NoObject)));
}

/// However many types and keys there are, memory is limited and no line is changed.
#[test]
fn lines_beyond_what_is_kept_of_types_are_kept_as_text() {
    let lines: Vec<_> = (0..200)
        .map(
            |index| json!({"type": "a", format!("k{index}"): index, "o": {format!("k{index}"): 1}}),
        )
        .chain((0..70_000).map(|index| json!({"type": format!("t{index}"), "n": 1})))
        .map(|line| line.to_string())
        .collect();
    let mut inference = Inference::new("type");
    let mut names = std::collections::HashSet::new();
    for (index, line) in lines.iter().enumerate() {
        let record = inference.record(line).unwrap();
        names.insert(record.schema().fingerprint());
        if index % 500 < 3 {
            let (_, fields) = written(&[record]).remove(0);
            assert_eq!(value(&fields), value(line));
        }
    }
    assert!(names.len() < 40_000, "{}", names.len());
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-9..9_i64).prop_map(Value::from),
        any::<f64>()
            .prop_filter("JSON has no NaN", |float| float.is_finite())
            .prop_map(Value::from),
        "[a-c\"\\\\é\n]{0,3}".prop_map(Value::from),
    ];
    leaf.prop_recursive(9, 40, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map("[ab]|type|json|", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_objects_come_back(
        lines in prop::collection::vec(prop::collection::hash_map("[ab]|type|json|", any_json(), 0..4), 1..12),
    ) {
        let lines: Vec<_> = lines
            .into_iter()
            .map(|map| Value::Object(map.into_iter().collect()))
            .collect();
        let texts: Vec<_> = lines.iter().map(Value::to_string).collect();
        for (line, (_, fields)) in lines.iter().zip(round_trip(texts.iter().map(|text| &**text))) {
            prop_assert!(is_equal(&value(&line.to_string()), &value(&fields)), "{line} became {fields}");
        }
    }
}

/// Reads everything that is available: the numbers in the lines, bad lines, and reasons of losses.
fn read_all(reader: &mut JsonLinesReader) -> (Vec<i64>, Vec<BadJsonLine>, Vec<String>) {
    let (mut numbers, mut bad, mut lost) = Default::default();
    loop {
        match reader.read().unwrap() {
            Next::Record(record) => Vec::push(&mut numbers, number(&record)),
            Next::Bad(line) => Vec::push(&mut bad, line),
            Next::Lost(why) => Vec::push(&mut lost, why),
            Next::Waiting | Next::End => return (numbers, bad, lost),
        }
    }
}

/// Waits for lines.
fn read_numbers(reader: &mut JsonLinesReader, count: usize) -> Vec<i64> {
    let by = Instant::now() + Duration::from_secs(60);
    let mut numbers = Vec::new();
    while numbers.len() < count && Instant::now() < by {
        let (more, bad, lost) = read_all(reader);
        assert!(bad.is_empty() && lost.is_empty(), "{bad:?} {lost:?}");
        numbers.extend(more);
        std::thread::yield_now();
    }
    numbers
}

fn number(record: &DynamicRecord) -> i64 {
    match record.values() {
        [baler_common::record::Value::Signed(number)] => *number,
        other => panic!("{other:?}"),
    }
}

fn append(path: &Path, text: &str) {
    let mut file = OpenOptions::new()
        .append(true)
        .create(true)
        .open(path)
        .unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn settings(follow: bool, position_file: Option<&Path>) -> JsonLinesSettings {
    let mut settings = JsonLinesSettings::default();
    settings.follow = follow;
    settings.position_file = position_file.map(Path::to_owned);
    settings.line_bytes = 20;
    settings
}

#[test]
fn bad_lines_are_returned_with_their_offset() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let long = "x".repeat(300_000);
    append(
        &path,
        &format!("{{\"n\":1}}\r\n\n no\n{long}\n{{\"n\":2}}\n{{\"n\":3}}"),
    );
    let mut reader = JsonLinesReader::open(&path, settings(false, None)).unwrap();
    let (numbers, bad, lost) = read_all(&mut reader);
    assert_eq!((numbers, lost.len()), (vec![1, 2, 3], 0));
    let bad: Vec<_> = bad
        .iter()
        .map(|it| (it.offset, &*it.bytes, &*it.reason))
        .collect();
    let long = &long.as_bytes()[..20];
    assert_eq!(
        bad,
        [
            (
                10,
                &b" no"[..],
                "the line is not JSON: expected ident at line 1 column 3"
            ),
            (14, long, "the line is longer than 20 bytes"),
        ]
    );
}

#[test]
fn a_followed_file_is_read_across_rotations_truncation_and_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    let saved = folder.path().join("app.log.position");
    append(&path, "{\"n\":1}\n{\"n\":2");
    let mut reader = JsonLinesReader::open(&path, settings(true, Some(&saved))).unwrap();
    assert_eq!(
        read_all(&mut reader).0,
        [1],
        "half of a line waits for the rest"
    );
    append(&path, "}\n");
    assert_eq!(read_all(&mut reader).0, [2]);
    assert!(reader.has_moved());
    reader.save_position().unwrap();
    assert!(!reader.has_moved());
    drop(reader);

    // Two rotations while no process reads.
    append(&path, "{\"n\":3}\n");
    fs::rename(&path, folder.path().join("app.log.2")).unwrap();
    append(&path, "{\"n\":4}\n");
    fs::rename(&path, folder.path().join("app.log.1")).unwrap();
    append(&path, "{\"n\":5}\n");
    let mut reader = JsonLinesReader::open(&path, settings(true, Some(&saved))).unwrap();
    assert_eq!(read_numbers(&mut reader, 3), [3, 4, 5]);

    // The writer copies the file elsewhere and begins it again.
    OpenOptions::new()
        .write(true)
        .truncate(true)
        .open(&path)
        .unwrap();
    append(&path, "{}\n");
    assert!(matches!(reader.read().unwrap(), Next::Record(_)));

    // The file is gone, with what it had.
    fs::remove_file(&path).unwrap();
    append(&path, "{\"n\":6}\n");
    let gone = "{\"device\":1,\"inode\":18446744073709551615,\"offset\":5}";
    fs::write(&saved, gone).unwrap();
    let mut reader = JsonLinesReader::open(&path, settings(true, Some(&saved))).unwrap();
    let (numbers, _, lost) = read_all(&mut reader);
    assert_eq!(numbers, [6]);
    assert!(lost[0].contains("is gone"), "{lost:?}");
}

#[test]
fn a_file_that_is_rotated_while_it_is_read_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.log");
    append(&path, "{\"n\":1}\n");
    let mut reader = JsonLinesReader::open(&path, settings(true, None)).unwrap();
    assert_eq!(read_all(&mut reader).0, [1]);
    let old = folder.path().join("app.log.1");
    fs::rename(&path, &old).unwrap();
    append(&path, "{\"n\":3}\n");
    // Its writer may still have it open.
    assert!(read_all(&mut reader).0.is_empty());
    append(&old, "{\"n\":2}\n");
    assert_eq!(read_numbers(&mut reader, 2), [2, 3]);
}
