//! `#[derive(Record)]`: schemas, writing and reading back.

use std::collections::{BTreeMap, HashMap};

use baler_common::record::{
    AnyValue, BatchBuilder, DynamicRecord, FieldType, FieldValue, Interned, ReadError, Record,
    Role, Value, ValueRef, read,
};
use bytes::Bytes;

#[derive(Debug, Clone, PartialEq, Record)]
struct Everything {
    a: bool,
    b: i8,
    c: i16,
    d: i32,
    e: i64,
    f: u8,
    g: u16,
    h: u32,
    i: u64,
    j: f32,
    k: f64,
    l: char,
    m: String,
    n: Box<str>,
    o: Bytes,
    p: Option<String>,
    q: Vec<i64>,
    r: Option<Vec<Option<u8>>>,
    s: Level,
    t: Vec<Inner>,
    u: Option<Inner>,
    r#type: Empty,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Record)]
enum Level {
    Low,
    High,
}

#[derive(Debug, Clone, PartialEq, Record)]
struct Inner {
    x: i64,
    y: Vec<Level>,
}

#[derive(Debug, Clone, PartialEq, Record)]
struct Empty;

fn everything() -> Everything {
    let inner = Inner {
        x: i64::MIN,
        y: vec![Level::High, Level::Low],
    };
    Everything {
        a: true,
        b: i8::MIN,
        c: i16::MAX,
        d: i32::MIN,
        e: i64::MAX,
        f: u8::MAX,
        g: u16::MAX,
        h: u32::MAX,
        i: u64::MAX,
        j: -0.0,
        k: f64::INFINITY,
        l: '\u{10ffff}',
        m: "text".into(),
        n: "".into(),
        o: Bytes::from_static(&[0, 255]),
        p: Some("some".into()),
        q: vec![-1, 0, 1],
        r: Some(vec![None, Some(7)]),
        s: Level::High,
        t: vec![inner.clone(), Inner { x: 0, y: vec![] }],
        u: Some(inner),
        r#type: Empty,
    }
}

/// The record after a batch, as a consumer reads it.
fn through_a_batch<W: Record, R: Record>(record: &W) -> Result<R, ReadError> {
    let mut builder = BatchBuilder::new();
    builder.push(record).unwrap();
    let batch = builder.take();
    read(batch.records().next().unwrap().fields())
}

#[test]
fn every_field_type_comes_back_from_a_batch() {
    let mut record = everything();
    assert_eq!(through_a_batch::<_, Everything>(&record).unwrap(), record);
    record.p = None;
    record.r = None;
    record.u = None;
    assert_eq!(through_a_batch::<_, Everything>(&record).unwrap(), record);
    assert_eq!(through_a_batch::<_, Empty>(&Empty).unwrap(), Empty);
}

#[test]
fn names_are_those_of_the_identifiers() {
    let schema = Everything::schema();
    assert_eq!(schema.name(), "Everything");
    assert_eq!(schema.fields().last().unwrap().name(), "type");
    assert_eq!(
        schema.fields()[19].field_type().to_string(),
        "list<record Inner>"
    );
    assert!(Empty::schema().fields().is_empty());
}

#[test]
fn schema_is_made_once() {
    assert!(std::ptr::eq(Everything::schema(), Everything::schema()));
    let (FieldType::Enum(a), FieldType::Enum(b)) = (Level::field_type(), Level::field_type())
    else {
        panic!("an enum has an enum's type");
    };
    assert!(std::sync::Arc::ptr_eq(&a, &b));
}

#[derive(Debug, PartialEq, Record)]
#[record(name = "kieker.common.record.controlflow.OperationExecutionRecord")]
#[record(rename_all = "camelCase", crate = "baler_common")]
struct Operation {
    operation_signature: Interned,
    #[record(timestamp)]
    tin: i64,
    #[record(unix_nanos, rename = "tOut")]
    tout: u64,
    #[record(nanos)]
    wait: Option<i64>,
}

#[test]
fn attributes_set_names_roles_and_the_timestamp() {
    let schema = Operation::schema();
    assert_eq!(
        schema.name(),
        "kieker.common.record.controlflow.OperationExecutionRecord"
    );
    let fields: Vec<_> = schema
        .fields()
        .iter()
        .map(|field| (field.name(), field.role()))
        .collect();
    assert_eq!(
        fields,
        [
            ("operationSignature", Role::Plain),
            ("tin", Role::UnixNanos),
            ("tOut", Role::UnixNanos),
            ("wait", Role::Nanos),
        ]
    );
    let record = Operation {
        operation_signature: Interned::new("void a.B.c()"),
        tin: 17,
        tout: 18,
        wait: None,
    };
    assert_eq!(record.timestamp(), Some(17));
    assert_eq!(everything().timestamp(), None);
    let mut builder = BatchBuilder::new();
    builder.push(&record).unwrap();
    let batch = builder.take();
    let written = batch.records().next().unwrap();
    assert_eq!(written.timestamp(), Some(17));
    assert!(matches!(
        written.field("operationSignature"),
        Some(ValueRef::String("void a.B.c()"))
    ));
}

mod facade {
    pub(super) use baler_common as records;
}

#[derive(Debug, PartialEq, Record)]
#[record(crate = "facade::records", rename_all = "SCREAMING_SNAKE_CASE")]
struct Elsewhere {
    level_before: Option<ElsewhereLevel>,
}

#[derive(Debug, PartialEq, Record)]
#[record(crate = "crate::derive::facade::records", name = "Level")]
enum ElsewhereLevel {
    Low,
}

#[test]
fn crate_is_found_where_it_is_said_to_be() {
    assert_eq!(
        format!("{:?}", Elsewhere::schema()),
        "Elsewhere { LEVEL_BEFORE: optional<enum Level> }"
    );
    let record = Elsewhere {
        level_before: Some(ElsewhereLevel::Low),
    };
    assert_eq!(through_a_batch::<_, Elsewhere>(&record).unwrap(), record);
}

#[derive(Debug, PartialEq, Record)]
struct Maps {
    counts: HashMap<String, u16>,
    inner: Option<BTreeMap<String, Vec<Inner>>>,
    attributes: BTreeMap<String, AnyValue<'static>>,
}

#[test]
fn maps_come_back() {
    let inner = Inner { x: 7, y: vec![] };
    let attributes = [
        ("status", AnyValue::I64(200)),
        ("route", AnyValue::String("/orders".into())),
        ("key", AnyValue::Bytes([0, 255].as_slice().into())),
        ("tags", AnyValue::Json("[1]".into())),
        ("cached", AnyValue::Bool(false)),
        ("load", AnyValue::F64(0.5)),
        ("none", AnyValue::Empty),
    ];
    let record = Maps {
        counts: HashMap::from([("a".to_owned(), 1), (String::new(), 2)]),
        inner: Some(BTreeMap::from([("b".to_owned(), vec![inner])])),
        attributes: attributes
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
    };
    assert_eq!(
        format!("{:?}", Maps::schema()),
        "Maps { counts: map<u16>, inner: optional<map<list<record Inner>>>, \
         attributes: map<record baler.AnyValue> }"
    );
    assert_eq!(through_a_batch::<_, Maps>(&record).unwrap(), record);
    let empty = Maps {
        counts: HashMap::new(),
        inner: None,
        attributes: BTreeMap::new(),
    };
    assert_eq!(through_a_batch::<_, Maps>(&empty).unwrap(), empty);
}

#[test]
fn maps_are_read_by_later_versions() {
    #[derive(Debug, PartialEq, Record)]
    #[record(name = "Maps")]
    struct Wider {
        counts: BTreeMap<String, u64>,
        inner: Option<HashMap<String, Vec<Shorter>>>,
    }

    #[derive(Debug, PartialEq, Record)]
    #[record(name = "Inner")]
    struct Shorter {
        x: i64,
        z: Option<u8>,
    }

    #[derive(Debug, PartialEq, Record)]
    #[record(name = "Maps")]
    struct Other {
        counts: BTreeMap<String, String>,
    }

    let inner = Inner { x: 7, y: vec![] };
    let record = Maps {
        counts: HashMap::from([("a".to_owned(), 1)]),
        inner: Some(BTreeMap::from([("b".to_owned(), vec![inner])])),
        attributes: BTreeMap::new(),
    };
    let wider = Wider {
        counts: BTreeMap::from([("a".to_owned(), 1)]),
        inner: Some(HashMap::from([(
            "b".to_owned(),
            vec![Shorter { x: 7, z: None }],
        )])),
    };
    assert_eq!(through_a_batch::<_, Wider>(&record).unwrap(), wider);
    assert_eq!(
        through_a_batch::<_, Other>(&record)
            .unwrap_err()
            .to_string(),
        "Maps.counts is of type map<u16>, which cannot be read as map<string>"
    );
}

#[test]
fn the_last_value_of_a_key_counts() {
    #[derive(Debug, PartialEq, Record)]
    struct Counts {
        counts: BTreeMap<String, u8>,
    }

    let entries = [("a", 1), ("b", 2), ("a", 3)].map(|(key, n)| (key, Value::Unsigned(n)));
    let schema = std::sync::Arc::clone(Counts::schema());
    let record = DynamicRecord::new(schema, None, [Value::map(entries)]).unwrap();
    let Some(ValueRef::Map(map)) = record.as_ref().field("counts") else {
        panic!("the field is a map");
    };
    let keys: Vec<_> = map.iter().map(|(key, _)| key).collect();
    assert_eq!(keys, ["a", "b", "a"]);
    assert!(matches!(map.get("a"), Some(ValueRef::Unsigned(3))));
    assert!(map.get("c").is_none());
    let counts = BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 2)]);
    let read: Counts = read(record.as_ref().fields()).unwrap();
    assert_eq!(read, Counts { counts });
}
