use crate::sinks::RecordJson;

use super::*;

/// Returns a record that is kept as text as a whole.
fn line(text: &str) -> DynamicRecord {
    let (field_type, value) = kept(text);
    record(vec![("json", field_type, value)])
}

fn record(fields: Vec<(&str, FieldType, Value)>) -> DynamicRecord {
    let (fields, values): Fields = fields
        .into_iter()
        .map(|(name, field_type, value)| (Field::new(name, field_type), value))
        .unzip();
    let schema = Schema::new("ev", fields).unwrap();
    DynamicRecord::new(Arc::new(schema), Some(7), values).unwrap()
}

/// Returns the type of the opened record, and the record as JSON.
fn shown(record: &DynamicRecord) -> Option<(String, String)> {
    let opened = opened(record.as_ref())?;
    assert_eq!(opened.as_ref().timestamp(), Some(7));
    let json = serde_json::to_string(&RecordJson(opened.as_ref())).unwrap();
    let json = json.strip_prefix(r#"{"type":"ev","timestamp":7,"fields":"#);
    let json = json.unwrap().strip_suffix('}').unwrap().to_owned();
    Some((format!("{:?}", opened.schema()), json))
}

#[test]
fn a_line_gets_the_types_of_its_values() {
    for (text, schema) in [
        (
            r#"{"a":1,"b":-2,"c":18446744073709551615,"d":0.5,"e":true,"f":"x","g":null}"#,
            "ev { a: i64, b: i64, c: u64, d: f64, e: bool, f: string, g: optional<string> }",
        ),
        (
            r#"{"a":[1,2],"b":[],"c":{"d":{"e":"f"}},"g":[{"h":1},{"h":2}]}"#,
            "ev { a: list<i64>, b: list<string>, c: record object, g: list<record object> }",
        ),
        // What no type holds exactly stays text.
        (
            r#"{"a":[1,"b"],"b":1e400,"c":0.12345678901234567890,"d":"\ud800","e":-0,"f":{"":1}}"#,
            "ev { a: record baler.Json, b: record baler.Json, c: record baler.Json, \
             d: record baler.Json, e: f64, f: record baler.Json }",
        ),
        (r#"{"a":0.30000000000000004}"#, "ev { a: f64 }"),
        (r#"{"json":1}"#, "ev { json: i64 }"),
    ] {
        let (shown, json) = shown(&line(text)).unwrap();
        assert_eq!(shown, schema, "{text}");
        let text = text.replace("-0,", "-0.0,");
        assert_eq!(json, text.replace("\\ud800", "\\ufffd"));
    }
}

#[test]
fn keys_that_no_field_can_have_stay_together() {
    let long = "x".repeat(1_025);
    for (text, expected) in [
        (
            r#"{"a":1,"b":2,"a":3,"":4,"b":5}"#.to_owned(),
            r#"{"a":3,"b":5,"json":{"a":1,"b":2,"":4}}"#.to_owned(),
        ),
        (
            r#"{"json":1,"":2,"_json":3}"#.to_owned(),
            r#"{"json":1,"_json":3,"__json":{"":2}}"#.to_owned(),
        ),
        (
            format!(r#"{{"{long}":1,"a":2}}"#),
            format!(r#"{{"a":2,"json":{{"{long}":1}}}}"#),
        ),
    ] {
        assert_eq!(shown(&line(&text)).unwrap().1, expected);
    }
    let members: Vec<_> = (0..2_000).map(|at| format!(r#""k{at}":{at}"#)).collect();
    let many = line(&format!("{{{}}}", members.join(",")));
    let opened = opened(many.as_ref()).unwrap();
    assert_eq!(opened.schema().fields().len(), MAX_FIELDS);
    assert_eq!(opened.schema().fields()[1_022].name(), "k1022");
    let rest = shown(&many).unwrap().1;
    assert!(rest.contains(r#""json":{"k1023":1023,"#), "{rest}");
}

#[test]
fn values_get_types_of_their_own_in_records_that_stay_as_they_are_otherwise() {
    let (text, value) = kept("504");
    let (_, odd) = kept(r#""-""#);
    let inner = Schema::new("inner", vec![Field::new("n", text.clone())]).unwrap();
    let inner = FieldType::Record(Arc::new(inner));
    let record = record(vec![
        ("id", FieldType::U8, Value::Unsigned(1)),
        ("status", text.clone(), value.clone()),
        ("odd", text.clone(), odd),
        ("some", text.clone().optional(), value.clone()),
        ("none", text.clone().optional(), Value::Null),
        ("inner", inner, Value::Record(vec![value.clone()])),
        ("list", text.list(), Value::List(vec![value.clone(), value])),
    ]);
    let (schema, json) = shown(&record).unwrap();
    assert_eq!(
        schema,
        "ev { id: u8, status: i64, odd: string, some: optional<i64>, none: optional<string>, \
         inner: record inner, list: list<i64> }"
    );
    let expected = r#"{"id":1,"status":504,"odd":"-","some":504,"none":null,"#;
    let expected = format!(r#"{expected}"inner":{{"n":504}},"list":[504,504]}}"#);
    assert_eq!(json, expected);
}

#[test]
fn what_has_no_fields_stays_as_it_is() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let has = format!(r#"{{"a":{deep},"b":1}}"#);
    assert_eq!(shown(&line(&has)).unwrap().1, has);
    for text in [
        "",
        "no JSON",
        "[1]",
        r#"{"json":[1,"a"]}"#,
        r#"{"":1}"#,
        r#"{"\ud800":1}"#,
        r#"{"a":1"#,
        &deep,
    ] {
        assert!(opened(line(text).as_ref()).is_none(), "{text}");
    }
    let plain = record(vec![("id", FieldType::U8, Value::Unsigned(1))]);
    assert!(opened(plain.as_ref()).is_none());
}

#[test]
fn a_chunk_of_text_makes_a_bounded_number_of_fields() {
    let mut batch = BatchBuilder::new();
    for record in 0..1_100 {
        let member = |at| format!(r#""k{record}_{at}":{at}"#);
        let members: Vec<_> = (0..1_000).map(member).collect();
        let text = line(&format!("{{{}}}", members.join(",")));
        batch.push_dynamic(&text).unwrap();
    }
    let opened = opened_batch(batch.batch()).unwrap();
    assert_eq!(opened.len(), 1_100);
    let last = opened.records().last().unwrap();
    assert!(line_text(last.fields()).is_some());
    assert_eq!(opened.tables().len(), MAX_CHUNK_FIELDS / 1_000 + 1);
}
