//! pyarrow finds every value that was written.

use std::path::Path;
use std::sync::Arc;

use arrow_array::Array as _;
use arrow_array::cast::AsArray as _;
use arrow_array::types::UInt32Type;
use baler_analysis::Stage as _;
use baler_analysis::arrow::{Converter, ParquetFolder, ParquetSettings, TimePartition, Times};
use baler_common::record::{AnyValue, DynamicRecord, Field, FieldType, Role, Schema, Value};
use serde_json::{Map, Value as Json, json};

use super::python;
use super::records::{calls, every_type, identity, parcel, value_json};

/// A row as the other reader prints it, but for the partitions.
fn row_json(
    record: &DynamicRecord,
    sequence: u64,
    index: usize,
    logged: &str,
) -> Map<String, Json> {
    let identity = identity(sequence);
    let own = [
        (logged, json!(record.as_ref().timestamp())),
        ("_producer", json!(identity.producer.to_string())),
        ("_epoch", json!(identity.epoch.to_string())),
        ("_lane", json!(identity.lane)),
        ("_sequence", json!(sequence)),
        ("_index", json!(index)),
    ];
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let fields = record.schema().fields().iter().zip(record.values());
    let fields = fields.map(|(field, value)| {
        let value = value_json(field.field_type(), value);
        (field.name().to_owned(), value)
    });
    own.into_iter().chain(fields).collect()
}

fn settings() -> ParquetSettings {
    let mut settings = ParquetSettings::default();
    settings.identity = true;
    settings
}

/// Writes two chunks, in which types are mixed.
fn write(folder: &Path, settings: ParquetSettings) -> Vec<Vec<DynamicRecord>> {
    let (everything, calls) = (every_type(90), calls(40));
    let mut mixed = Vec::new();
    let mut calls = calls.into_iter();
    for record in everything {
        mixed.push(record);
        mixed.extend(calls.next());
    }
    let chunks: Vec<Vec<_>> = mixed.chunks(70).map(<[_]>::to_vec).collect();
    let mut sink = ParquetFolder::new(folder, settings);
    for (sequence, chunk) in (0..).zip(&chunks) {
        sink.accept(parcel(chunk, sequence)).unwrap();
    }
    sink.finish().unwrap();
    chunks
}

/// Compares the expected rows of one type with the rows in the files.
fn compare(
    folder: &Path,
    chunks: &[Vec<DynamicRecord>],
    name: &str,
    logged: &str,
) -> (Json, Vec<Json>) {
    let mut found = python::read(&[&folder.join(name)]).into_iter();
    let types = found.next().unwrap();
    let mut found: Vec<Json> = found.collect();
    let number = |row: &Json, column: &str| row[column].as_u64().unwrap();
    found.sort_by_key(|row| (number(row, "_sequence"), number(row, "_index")));
    let mut expected = Vec::new();
    for (sequence, chunk) in (0..).zip(chunks) {
        for (index, record) in chunk.iter().enumerate() {
            if record.schema().name() == name {
                expected.push(row_json(record, sequence, index, logged));
            }
        }
    }
    assert!(!expected.is_empty());
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(&expected) {
        for (column, value) in expected {
            assert_eq!(&found[column], value, "{column}");
        }
    }
    (types, found)
}

#[test]
fn every_value_of_every_type_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let chunks = write(folder.path(), settings());
    // A field has the name of the column.
    let (types, _) = compare(folder.path(), &chunks, "test.Everything", "__timestamp");
    let text = "dictionary<values=string, indices=int32, ordered=0>";
    let point = format!(
        "struct<x: double not null, label: {text}, at: timestamp[ns] not null, colors: \
         list<item: {text} not null> not null>"
    );
    for (column, expected) in [
        ("__timestamp", "timestamp[ns]"),
        ("_timestamp", "uint64"),
        ("f1", "int8"),
        ("f8", "uint64"),
        ("f9", "float"),
        ("f12", text),
        ("f14", text),
        ("f17", &point),
        ("f19", "bool"),
        ("began", "timestamp[ns]"),
        ("took", "duration[ns]"),
        ("_producer", text),
    ] {
        assert_eq!(types[column], expected, "{column}");
    }
    let call = "kieker.common.record.controlflow.OperationExecutionRecord";
    let (types, _) = compare(folder.path(), &chunks, call, "_timestamp");
    assert_eq!(types["tin"], "timestamp[ns]");
    assert_eq!(types["traceId"], "int64");
}

#[test]
fn partitions_are_columns_and_say_where_a_record_belongs() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.by_time = Some(TimePartition::Hour);
    settings.by_producer = true;
    let chunks = write(folder.path(), settings);
    let (_, rows) = compare(folder.path(), &chunks, "test.Everything", "__timestamp");
    let mut hours = std::collections::BTreeSet::new();
    for row in rows {
        assert_eq!(row["chunk_producer"], row["_producer"]);
        let Some(time) = row["__timestamp"].as_i64() else {
            assert_eq!([&row["logged_day"], &row["logged_hour"]], [&Json::Null; 2]);
            continue;
        };
        let hour = time / 3_600_000_000_000;
        // 2023-11-14 is day 19,675.
        let day = 14 + hour / 24 - 19_675;
        assert_eq!(row["logged_day"], format!("2023-11-{day}"));
        assert_eq!(row["logged_hour"], hour % 24);
        hours.insert(hour);
    }
    assert!(hours.len() > 40);
}

/// Two operations, of one, two and three nanoseconds.
fn shop_calls() -> Vec<DynamicRecord> {
    let point = |name| Field::new(name, FieldType::I64).with_role(Role::UnixNanos);
    let fields = vec![
        Field::new("operationSignature", FieldType::String),
        point("tin"),
        point("tout"),
    ];
    let schema = Arc::new(Schema::new("shop.Call", fields).unwrap());
    let noon = super::records::NOON;
    [("buy()", 1), ("buy()", 2), ("look()", 3)]
        .map(|(operation, took)| {
            let times = [noon, noon + took].map(Value::Signed);
            let values = [Value::from(operation)].into_iter().chain(times);
            DynamicRecord::new(Arc::clone(&schema), Some(noon), values.collect::<Vec<_>>()).unwrap()
        })
        .into()
}

#[test]
fn the_query_of_the_readme_runs_as_it_is_printed() {
    let readme = include_str!("../../../src/arrow/README.md");
    let (_, query) = readme.split_once("```sql\n").unwrap();
    let (query, _) = query.split_once("```").unwrap();
    for times in [Times::Nanos, Times::Micros] {
        let folder = tempfile::tempdir().unwrap();
        let mut settings = settings();
        settings.times = times;
        settings.by_time = Some(TimePartition::Day);
        // The folder that it names.
        let mut sink = ParquetFolder::new(folder.path().join("FOLDER"), settings);
        sink.accept(parcel(&shop_calls(), 0)).unwrap();
        sink.finish().unwrap();
        let mut rows = python::last_rows(folder.path(), "duckdb", &[query]);
        rows.sort_by_key(|row| row[0].to_string());
        let expected = match times {
            Times::Micros => [0.0, 0.0],
            _ => [1.5, 3.0],
        };
        let expected = [
            json!(["buy()", expected[0]]),
            json!(["look()", expected[1]]),
        ];
        assert_eq!(rows, expected);
    }
}

#[test]
fn microseconds_are_rounded_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = ParquetSettings::default();
    settings.times = Times::Micros;
    let records = calls(3);
    let mut sink = ParquetFolder::new(folder.path(), settings);
    sink.accept(parcel(&records, 0)).unwrap();
    sink.finish().unwrap();
    let found = python::read(&[folder.path()]);
    assert_eq!(found[0]["tin"], "timestamp[us]");
    let tins: Vec<_> = found[1..]
        .iter()
        .map(|row| row["tin"].as_i64().unwrap())
        .collect();
    let noon = super::records::NOON / 1_000;
    assert_eq!(tins, [noon, noon + 1, noon + 2]);
}

#[test]
fn json_text_has_columns_of_its_own_fields() {
    let text = |name: &str, of| Schema::new(name, vec![Field::new("json", of)]).unwrap();
    let kept = FieldType::Record(Arc::new(text("baler.Json", FieldType::String)));
    let schema = Arc::new(text("ev", kept));
    let lines = [
        r#"{"status":504,"user":{"id":7}}"#,
        r#"{"status":505,"user":{"id":8}}"#,
        r#"{"status":"-","status":506,"user":{"id":9}}"#,
    ];
    let records = lines.map(|line| {
        let values = vec![Value::Record(vec![line.into()])];
        DynamicRecord::new(Arc::clone(&schema), None, values).unwrap()
    });
    let folder = tempfile::tempdir().unwrap();
    let mut sink = ParquetFolder::new(folder.path(), settings());
    sink.accept(parcel(&records, 0)).unwrap();
    sink.finish().unwrap();
    let mut rows: Vec<_> = python::read(&[&folder.path().join("ev")])
        .into_iter()
        .skip(1)
        .collect();
    rows.sort_by_key(|row| row["_index"].as_u64());
    let found: Vec<_> = rows
        .iter()
        .map(|it| (it["status"].clone(), it["user"].clone()))
        .collect();
    let expected = [(504, 7), (505, 8), (506, 9)];
    let expected = expected.map(|(status, id)| (json!(status), json!([["id", id]])));
    assert_eq!(found, expected);
}

/// Records with maps, and with a key that comes twice.
fn maps() -> Vec<DynamicRecord> {
    let any = FieldType::Record(Arc::clone(AnyValue::schema()));
    let fields = vec![
        Field::new("attributes", any.map()),
        Field::new("counts", FieldType::U32.map().optional()),
        Field::new("nested", FieldType::String.list().map()),
    ];
    let schema = Arc::new(Schema::new("shop.Span", fields).unwrap());
    let record = |attributes: &[(&str, AnyValue<'_>)], counts, nested| {
        let attributes = attributes.iter().map(|(key, it)| (*key, it.to_value()));
        let values = [Value::map(attributes), counts, nested];
        DynamicRecord::new(Arc::clone(&schema), None, values).unwrap()
    };
    let none = || Value::map([("", Value::Null); 0]);
    let counts = [("a", 1), ("b", 2), ("a", 3)].map(|(key, n)| (key, Value::Unsigned(n)));
    let status = [
        ("http.status", AnyValue::I64(504)),
        ("route", AnyValue::String("/\"tea\"".into())),
        ("tags", AnyValue::Json("[1, \"a\"]".into())),
        ("load", AnyValue::F64(f64::INFINITY)),
        ("key", AnyValue::Bytes([0, 255, 1].as_slice().into())),
        ("none", AnyValue::Empty),
    ];
    let twice = [
        ("http.status", AnyValue::I64(1)),
        ("ok", AnyValue::Bool(true)),
        ("http.status", AnyValue::I64(200)),
    ];
    let texts = Value::List(vec![Value::from("x"), Value::from("y")]);
    vec![
        record(&[], Value::Null, none()),
        record(&status, Value::map(counts), Value::map([("in", texts)])),
        record(&twice, none(), none()),
    ]
}

#[test]
fn maps_are_columns_of_maps_with_each_key_once() {
    let parcel = parcel(&maps(), 0);
    let batches = Converter::new(Times::Nanos).convert(&parcel.chunk().batch, None, None);
    let rows = &batches.unwrap()[0].rows;
    let attributes = rows["attributes"].as_map();
    assert_eq!(attributes.value_offsets(), [0, 0, 6, 8]);
    let keys: Vec<_> = attributes
        .keys()
        .as_string::<i32>()
        .iter()
        .flatten()
        .collect();
    let status = ["http.status", "route", "tags", "load", "key", "none"];
    assert_eq!(keys, [&status[..], &["ok", "http.status"]].concat());
    let values: Vec<_> = attributes.values().as_string::<i32>().iter().collect();
    let texts = ["504", "/\"tea\"", "[1, \"a\"]", "Infinity", "AP8B"].map(Some);
    assert_eq!(
        values,
        [&texts[..], &[None, Some("true"), Some("200")]].concat()
    );
    let counts = rows["counts"].as_map();
    assert_eq!((counts.is_null(0), counts.is_null(2)), (true, false));
    let numbers = counts.values().as_primitive::<UInt32Type>();
    assert_eq!(numbers.values(), &[2, 3]);
    assert_eq!(rows["nested"].as_map().value_length(1), 1);
}

#[test]
fn duckdb_reads_maps_by_key() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = ParquetFolder::new(folder.path(), settings());
    sink.accept(parcel(&maps(), 0)).unwrap();
    sink.finish().unwrap();
    let query = "SELECT attributes['http.status'], attributes['tags'], counts['a'], nested['in'] \
                 FROM read_parquet('shop.Span/**/*.parquet') ORDER BY _index";
    let rows = python::last_rows(folder.path(), "duckdb", &[query]);
    let expected = [
        json!([null, null, null, null]),
        json!(["504", "[1, \"a\"]", 3, ["x", "y"]]),
        json!(["200", null, null, null]),
    ];
    assert_eq!(rows, expected);
}
