//! Kieker's formats read by the description of its classes alone, without Baler's code.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Map, Value, json};

/// A field: its name and its Java type.
struct Field {
    name: String,
    java: String,
}

/// The fields of Kieker's record classes, as its own generator listed them.
static CLASSES: LazyLock<HashMap<String, Vec<Field>>> = LazyLock::new(|| {
    let text = include_str!("../golden/expected-records.json");
    let classes: Map<String, Value> = serde_json::from_str(text).unwrap();
    let classes = classes.into_iter().map(|(name, class)| {
        let text = |field: &Value, key: &str| field[key].as_str().unwrap().to_owned();
        let fields = class["fields"].as_array().unwrap().iter();
        let fields = fields.map(|field| Field {
            name: text(field, "name"),
            java: text(field, "java"),
        });
        (name, fields.collect())
    });
    classes.collect()
});

/// How many classes there are.
pub(crate) fn class_count() -> usize {
    CLASSES.len()
}

/// The records of a stream over one socket, whose lengths are in bytes, in the form of
/// `baler receive --format json`.
pub(crate) fn stream_records(stream: &[u8]) -> Vec<Value> {
    let mut bytes = Bytes(stream);
    let mut strings = HashMap::new();
    let mut records = Vec::new();
    while !bytes.0.is_empty() {
        match bytes.int() {
            -1 => {
                let id = bytes.int();
                let length = usize::try_from(bytes.int()).unwrap();
                let text = String::from_utf8(bytes.take(length).to_vec()).unwrap();
                strings.insert(id, text);
            }
            class => records.push(bytes.record(class, &strings)),
        }
    }
    records
}

/// The records of a binary log.
pub(crate) fn binary_records(map: &HashMap<i32, String>, log: &[u8]) -> Vec<Value> {
    let mut bytes = Bytes(log);
    let mut records = Vec::new();
    while !bytes.0.is_empty() {
        let class = bytes.int();
        records.push(bytes.record(class, map));
    }
    records
}

/// The records of a text log, whose strings have no escapes.
pub(crate) fn text_records(map: &HashMap<i32, String>, log: &str) -> Vec<Value> {
    let lines = log.lines().map(|line| {
        let mut parts = line.strip_prefix('$').unwrap().split(';');
        let mut next = || parts.next().unwrap();
        let class = &map[&next().parse().unwrap()];
        let timestamp: i64 = next().parse().unwrap();
        let fields = CLASSES[class].iter();
        let fields = fields.map(|field| (field.name.clone(), text_value(&field.java, &mut next)));
        let record = as_json(class, timestamp, fields.collect());
        assert_eq!(parts.next(), None, "{line}");
        record
    });
    lines.collect()
}

/// The strings of a `kieker.map`.
pub(crate) fn map_strings(map: &str) -> HashMap<i32, String> {
    let lines = map.lines().map(|line| {
        let (id, text) = line.strip_prefix('$').unwrap().split_once('=').unwrap();
        (id.parse().unwrap(), text.to_owned())
    });
    lines.collect()
}

/// Bytes that are not read yet.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (head, rest) = self.0.split_at(bytes);
        self.0 = rest;
        head
    }

    fn int(&mut self) -> i32 {
        i32::from_be_bytes(self.take(4).try_into().unwrap())
    }

    fn long(&mut self) -> i64 {
        i64::from_be_bytes(self.take(8).try_into().unwrap())
    }

    fn record(&mut self, class: i32, strings: &HashMap<i32, String>) -> Value {
        let class = &strings[&class];
        let timestamp = self.long();
        let fields = CLASSES[class].iter();
        let fields = fields.map(|field| (field.name.clone(), self.value(&field.java, strings)));
        as_json(class, timestamp, fields.collect())
    }

    fn value(&mut self, java: &str, strings: &HashMap<i32, String>) -> Value {
        if let Some(inner) = java.strip_suffix("[]") {
            return (0..self.int())
                .map(|_| self.value(inner, strings))
                .collect();
        }
        match java {
            "boolean" => match self.take(1) {
                [0] => false.into(),
                [1] => true.into(),
                other => panic!("{other:?} is no boolean"),
            },
            "int" => self.int().into(),
            "long" => self.long().into(),
            "double" => double(f64::from_bits(u64::from_be_bytes(
                self.take(8).try_into().unwrap(),
            ))),
            "String" => strings[&self.int()].as_str().into(),
            other => panic!("no class has a field of type {other}"),
        }
    }
}

fn text_value<'a>(java: &str, next: &mut impl FnMut() -> &'a str) -> Value {
    if let Some(inner) = java.strip_suffix("[]") {
        let count: usize = next().parse().unwrap();
        return (0..count).map(|_| text_value(inner, next)).collect();
    }
    let text = next();
    match java {
        "boolean" => text.parse::<bool>().unwrap().into(),
        "int" => text.parse::<i32>().unwrap().into(),
        "long" => text.parse::<i64>().unwrap().into(),
        "double" => double(match text {
            "NaN" => f64::NAN,
            "Infinity" => f64::INFINITY,
            "-Infinity" => f64::NEG_INFINITY,
            number => number.parse().unwrap(),
        }),
        "String" => text.into(),
        other => panic!("no class has a field of type {other}"),
    }
}

fn double(value: f64) -> Value {
    match value {
        value if value.is_nan() => "NaN".into(),
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        value => value.into(),
    }
}

fn as_json(class: &str, timestamp: i64, fields: Map<String, Value>) -> Value {
    let timestamp = (timestamp != -1).then_some(timestamp);
    json!({"type": class, "timestamp": timestamp, "fields": fields})
}
