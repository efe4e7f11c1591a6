//! Lines of JSON become records, and the JSON sink writes them back.

use std::sync::Arc;

use baler_analysis::sinks::RecordJson;
use baler_common::container::{
    ChunkDecoder, ChunkHeader, ChunkSerializer, Compression, NativeSerializer,
};
use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, RecordBatch, Schema};
use baler_common::transport::{ChunkIdentity, Epoch, ProducerId};
use baler_connector_file::lines::{Inference, LineError, Origin};
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
fn written(batch: &RecordBatch) -> Vec<(String, String)> {
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
    serializer.serialize(batch, &header, &mut chunk).unwrap();
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
    let mut batch = BatchBuilder::new();
    for line in lines {
        inference.add(line, None, &mut batch).unwrap();
    }
    written(&batch.take())
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
    let mut schema = |line: &str| {
        let mut batch = BatchBuilder::new();
        inference.add(line, None, &mut batch).unwrap();
        let batch = batch.take();
        let record = batch.records().next().unwrap();
        format!("{:?}", record.schema())
    };
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
    let mut batch = BatchBuilder::new();
    batch.push_dynamic(&record).unwrap();
    assert_eq!(written(&batch.take()), [expected]);
}

#[test]
fn other_lines_are_refused() {
    let mut inference = Inference::new("type");
    let mut error_of = |line: &str| {
        inference
            .add(line, None, &mut BatchBuilder::new())
            .unwrap_err()
    };
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
        assert_eq!(error_of(line).to_string(), error);
    }
    assert!(matches!(error_of("1"), LineError::NoObject));
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
        let mut batch = BatchBuilder::new();
        inference.add(line, None, &mut batch).unwrap();
        let batch = batch.take();
        let record = batch.records().next().unwrap();
        names.insert(record.schema().fingerprint());
        if index % 500 < 3 {
            let (_, fields) = written(&batch).remove(0);
            assert_eq!(value(&fields), value(line));
        }
    }
    assert!(names.len() < 40_000, "{}", names.len());
}

/// JSON allows half of a surrogate pair, which no text in UTF-8 can have. The line is kept as text,
/// and the fields of other lines stay as they are. Many readers of JSON refuse such a text, so the
/// sink writes U+FFFD.
#[test]
fn lines_with_half_a_surrogate_pair_come_back() {
    let lines = [
        r#"{"type":"log","msg":"whole"}"#,
        r#"{"type":"log","msg":"cut \ud83d"}"#,
        r#"{"type":"log","\udfff":{"a":["\ud800x"]}}"#,
        r#"{"type":"log","msg":"whole \ud83d\ude00"}"#,
    ];
    let back = round_trip(lines);
    assert!(back.iter().all(|(name, _)| name == "log"), "{back:?}");
    let back: Vec<_> = back.iter().map(|(_, fields)| &**fields).collect();
    let expected = [
        lines[0],
        r#"{"type":"log","msg":"cut \ufffd"}"#,
        r#"{"type":"log","\ufffd":{"a":["\ufffdx"]}}"#,
        r#"{"type":"log","msg":"whole 😀"}"#,
    ];
    assert_eq!(back, expected);
}

#[test]
fn records_have_the_place_of_their_line() {
    let mut inference = Inference::new("type").with_origin(true);
    let mut batch = BatchBuilder::new();
    let origin = |offset| Origin {
        file: "/log",
        id: "1f",
        offset,
    };
    let lines = [
        r#"{"a":1}"#,
        r#"{"a":"\ud800"}"#,
        "{}",
        r#"{"":1}"#,
        r#"{"json":1}"#,
        r#"{"origin_id":7}"#,
    ];
    for (offset, line) in (0..).zip(lines) {
        inference
            .add(line, Some(&origin(offset)), &mut batch)
            .unwrap();
    }
    let written = written(&batch.take());
    let fields: Vec<_> = written.iter().map(|(_, fields)| &**fields).collect();
    let place =
        |offset| format!(r#""origin_file":"/log","origin_id":"1f","origin_offset":{offset}}}"#);
    for ((offset, line), fields) in (0..).zip(lines).zip(&fields) {
        let (head, comma) = (
            line.replace("\\ud800", "\\ufffd"),
            if line == "{}" { "" } else { "," },
        );
        let head = head.strip_suffix('}').unwrap();
        assert_eq!(**fields, format!("{head}{comma}{}", place(offset)));
    }
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

/// Lines with the same keys, whose values are one of two.
fn alike_lines() -> impl Strategy<Value = Vec<Value>> {
    let keys = prop::collection::hash_map("[ab]|type|json|\"|", [any_json(), any_json()], 0..4);
    let lines = prop::collection::vec(any::<[bool; 4]>(), 1..8);
    (keys, lines).prop_map(|(keys, lines)| {
        let line = |which: [bool; 4]| {
            let members = keys.iter().zip(which);
            let members = members.map(|((key, [first, second]), is_first)| {
                let value = if is_first { first } else { second };
                (key.clone(), value.clone())
            });
            Value::Object(members.collect())
        };
        lines.into_iter().map(line).collect()
    })
}

proptest! {
    #[test]
    fn any_objects_come_back(lines in prop::collection::vec(alike_lines(), 1..6)) {
        let lines = lines.concat();
        let texts: Vec<_> = lines.iter().map(Value::to_string).collect();
        for (line, (_, fields)) in lines.iter().zip(round_trip(texts.iter().map(|text| &**text))) {
            prop_assert!(is_equal(&value(&line.to_string()), &value(&fields)), "{line} became {fields}");
        }
    }
}

/// Parts of lines, most of which are JSON only in some places.
const PARTS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "\\",
    " ",
    "\t",
    "\u{b}",
    "\"a\"",
    "\"é\"",
    "\"\\u0041\"",
    "\"\\ud800\"",
    "\"\\u12\"",
    "\"\\x\"",
    "\"\\é\"",
    "\"eight of\u{1f}\"",
    "\"12345678\\\"\"",
    "0",
    "1",
    "-",
    "01",
    "1.",
    ".5",
    "1.5",
    "1e",
    "1e+5",
    "null",
    "nul",
    "true",
    "falsefalse",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_000))]

    #[test]
    fn exactly_the_lines_that_are_not_json_are_refused(
        before in prop::sample::select(&["0", "0.5", "\"a\"", "true", "null", "[0]", "{\"a\":0}"][..]),
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..6),
        is_member in any::<bool>(),
    ) {
        let (mut inference, mut batch) = (Inference::new("type"), BatchBuilder::new());
        for _ in 0..2 {
            inference.add(&format!("{{\"a\":{before}}}"), None, &mut batch).unwrap();
        }
        let parts = parts.concat();
        let line = if is_member { format!("{{\"a\":{parts}}}") } else { parts };
        let added = inference.add(&line, None, &mut batch);
        let refused = match added {
            Err(LineError::Syntax(error)) => Some(error.to_string()),
            _ => None,
        };
        let expected = serde_json::from_str::<&RawValue>(&line).err();
        prop_assert_eq!(refused, expected.map(|error| error.to_string()), "{}", line);
    }
}
