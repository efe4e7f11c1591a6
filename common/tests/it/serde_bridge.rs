//! serde types become records and come back.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use baler_common::record::serde::{SerdeType, VALUE_FIELD, from_record};
use baler_common::record::{BatchBuilder, Record};
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The value after a record and a batch.
pub(crate) fn round_trip<T: Serialize + DeserializeOwned>(value: &T) -> T {
    let record_type = SerdeType::<T>::trace("t").unwrap();
    let record = record_type.to_record(Some(1), value).unwrap();
    let mut builder = BatchBuilder::new();
    builder.push_dynamic(&record).unwrap();
    let batch = builder.take();
    from_record(batch.records().next().unwrap().fields()).unwrap()
}

fn comes_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(value: T) {
    assert_eq!(round_trip(&value), value);
}

fn schema_of<T: DeserializeOwned>() -> String {
    format!("{:?}", SerdeType::<T>::trace("t").unwrap().schema())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Plain {
    a_bool: bool,
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
    n: Option<String>,
    o: Vec<Option<u64>>,
    p: Level,
    q: Vec<Line>,
    r: Id,
    s: (u8, String),
    t: [i32; 3],
    u: Option<Vec<Line>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Level {
    Low,
    #[serde(rename = "HIGH", alias = "Up")]
    High,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Line {
    article: u64,
    level: Option<Level>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Id(u64);

fn plain() -> Plain {
    let line = Line {
        article: u64::MAX,
        level: Some(Level::High),
    };
    Plain {
        a_bool: true,
        b: i8::MIN,
        c: i16::MIN,
        d: i32::MIN,
        e: i64::MIN,
        f: u8::MAX,
        g: u16::MAX,
        h: u32::MAX,
        i: u64::MAX,
        j: f32::MIN_POSITIVE,
        k: f64::MAX,
        l: '\u{1f980}',
        m: "text".into(),
        n: None,
        o: vec![None, Some(u64::MAX)],
        p: Level::Low,
        q: vec![
            line.clone(),
            Line {
                article: 0,
                level: None,
            },
        ],
        r: Id(7),
        s: (1, "tuple".into()),
        t: [1, 2, 3],
        u: Some(vec![line]),
    }
}

#[test]
fn struct_becomes_a_record_with_its_fields() {
    assert_eq!(
        schema_of::<Plain>(),
        "t { aBool: bool, b: i8, c: i16, d: i32, e: i64, f: u8, g: u16, h: u32, i: u64, j: f32, \
         k: f64, l: char, m: string, n: optional<string>, o: list<optional<u64>>, p: enum Level, \
         q: list<record Line>, r: u64, s: record tuple, t: list<i32>, \
         u: optional<list<record Line>> }"
    );
    comes_back(plain());
    comes_back(Plain {
        n: Some(String::new()),
        o: vec![],
        q: vec![],
        u: None,
        p: Level::High,
        ..plain()
    });
}

/// A type that no schema can hold.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Odd {
    map: BTreeMap<i32, Vec<Line>>,
    data: Message,
    untagged: Either,
    tagged: Vec<Tagged>,
    flat: Flat,
    any: serde_json::Value,
    unit: (),
    wide: i128,
    twice: Option<Option<u8>>,
    tree: Tree,
    plain: u8,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Message {
    Nothing,
    Text(String),
    Pair(u8, f32),
    Named { x: Option<i64>, level: Level },
    Wrapped(Box<Self>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Text(String),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
enum Tagged {
    A { x: u64 },
    B { y: Option<String> },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Flat {
    own: u8,
    #[serde(flatten)]
    line: Line,
    #[serde(flatten)]
    rest: HashMap<String, i64>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Tree {
    value: u8,
    children: Vec<Self>,
    next: Option<Box<Self>>,
}

fn odd() -> Odd {
    let leaf = Tree {
        value: 1,
        children: vec![],
        next: None,
    };
    Odd {
        map: BTreeMap::from([(-1, vec![]), (i32::MAX, plain().q)]),
        data: Message::Named {
            x: Some(i64::MIN),
            level: Level::High,
        },
        untagged: Either::Text("either".into()),
        tagged: vec![Tagged::A { x: u64::MAX }, Tagged::B { y: None }],
        flat: Flat {
            own: 1,
            line: Line {
                article: 2,
                level: None,
            },
            rest: HashMap::from([("more".into(), -3)]),
        },
        any: json!({"a": [1, -2, 3.5, null, "x"], "b": {"c": true}}),
        unit: (),
        wide: i128::MIN,
        twice: Some(None),
        tree: Tree {
            value: 0,
            children: vec![leaf.clone(), leaf.clone()],
            next: Some(Box::new(leaf)),
        },
        plain: 9,
    }
}

#[test]
fn what_no_schema_holds_goes_into_opaque_fields() {
    let opaque = "record baler.serde.Opaque";
    assert_eq!(
        schema_of::<Odd>(),
        format!(
            "t {{ map: {opaque}, data: {opaque}, untagged: {opaque}, tagged: list<{opaque}>, \
             flat: {opaque}, any: {opaque}, unit: {opaque}, wide: {opaque}, \
             twice: {opaque}, tree: record Tree, plain: u8 }}"
        )
    );
    comes_back(odd());
    for data in [
        Message::Nothing,
        Message::Text("text".into()),
        Message::Pair(255, f32::MIN_POSITIVE),
        Message::Named {
            x: None,
            level: Level::Low,
        },
        Message::Wrapped(Box::new(Message::Wrapped(Box::new(Message::Nothing)))),
    ] {
        comes_back(Odd { data, ..odd() });
    }
    for twice in [None, Some(None), Some(Some(1))] {
        comes_back(Odd { twice, ..odd() });
    }
    comes_back(Odd {
        untagged: Either::Number(-1),
        wide: i128::MAX,
        any: serde_json::Value::Null,
        ..odd()
    });
}

#[test]
fn maps_with_text_as_keys_become_maps() {
    #[derive(Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    struct Name(String);

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Maps {
        plain: BTreeMap<String, u8>,
        named: HashMap<Name, Vec<Line>>,
        addresses: BTreeMap<IpAddr, Option<f32>>,
        maybe: Option<BTreeMap<String, Tree>>,
        nested: BTreeMap<String, BTreeMap<String, Level>>,
        any: serde_json::Map<String, serde_json::Value>,
        numbers: BTreeMap<u8, u8>,
        last: bool,
    }

    let opaque = "record baler.serde.Opaque";
    assert_eq!(
        schema_of::<Maps>(),
        format!(
            "t {{ plain: map<u8>, named: map<list<record Line>>, addresses: map<optional<f32>>, \
             maybe: optional<map<record Tree>>, nested: map<map<enum Level>>, \
             any: map<{opaque}>, numbers: {opaque}, last: bool }}"
        )
    );
    let tree = odd().tree;
    comes_back(Maps {
        plain: BTreeMap::from([("a".into(), 1), (String::new(), 2)]),
        named: HashMap::from([(Name("n".into()), plain().q)]),
        addresses: BTreeMap::from([([127, 0, 0, 1].into(), Some(0.5))]),
        maybe: Some(BTreeMap::from([("tree".into(), tree)])),
        nested: BTreeMap::from([("b".into(), BTreeMap::from([("c".into(), Level::High)]))]),
        any: json!({"d": [1, null], "e": {"f": "g"}})
            .as_object()
            .unwrap()
            .clone(),
        numbers: BTreeMap::from([(1, 2)]),
        last: true,
    });
    comes_back(Maps {
        plain: BTreeMap::new(),
        named: HashMap::new(),
        addresses: BTreeMap::new(),
        maybe: None,
        nested: BTreeMap::new(),
        any: serde_json::Map::new(),
        numbers: BTreeMap::new(),
        last: false,
    });
}

#[test]
fn map_is_read_as_a_struct() {
    let types = SerdeType::<BTreeMap<String, i64>>::trace("t").unwrap();
    let map = BTreeMap::from([("article".to_owned(), 7)]);
    let record = types.to_record(None, &map).unwrap();
    let line: Line = from_record(record.as_ref().fields()).unwrap();
    assert_eq!(line.article, 7);
}

#[test]
fn option_of_something_opaque_is_told_from_an_option_inside_it() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(untagged)]
    enum Inner {
        Maybe(Option<u8>),
    }
    comes_back(vec![
        None,
        Some(Inner::Maybe(None)),
        Some(Inner::Maybe(Some(1))),
    ]);
}

#[test]
fn type_that_is_no_struct_becomes_one_field() {
    assert_eq!(schema_of::<u8>(), format!("t {{ {VALUE_FIELD}: u8 }}"));
    comes_back(7_u8);
    comes_back(Id(7));
    comes_back("text".to_owned());
    comes_back(vec![1.5_f32, -0.0]);
    comes_back((1_u8, 'x', Some(plain())));
    comes_back(Some(plain()));
    comes_back(None::<u8>);
    comes_back(BTreeMap::from([("a".to_owned(), plain())]));
    comes_back(Message::Pair(1, 2.0));
    comes_back(Level::High);
    comes_back(odd().flat);
    comes_back((odd().flat, 1_u8));
    comes_back(());
}

#[test]
fn type_that_refuses_made_up_values_hides_only_itself() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Picky {
        address: IpAddr,
        count: NonZeroU32,
        even: Even,
        inner: Inner,
        took: Duration,
        last: u8,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Inner {
        even: Even,
        more: Option<Even>,
        word: Word,
        last: bool,
    }

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    #[serde(try_from = "u16", into = "u16")]
    struct Even(u16);

    impl TryFrom<u16> for Even {
        type Error = &'static str;
        fn try_from(value: u16) -> Result<Self, Self::Error> {
            // None of the sample values of tracing.
            match value {
                100.. if value % 2 == 0 => Ok(Self(value)),
                _ => Err("odd or small"),
            }
        }
    }

    impl From<Even> for u16 {
        fn from(value: Even) -> Self {
            value.0
        }
    }

    impl Clone for Even {
        fn clone(&self) -> Self {
            Self(self.0)
        }
    }

    #[derive(Debug, PartialEq, Serialize)]
    struct Word(String);

    impl<'de> Deserialize<'de> for Word {
        fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
            let text = String::deserialize(deserializer)?;
            if text == "word" {
                Ok(Self(text))
            } else {
                Err(serde::de::Error::custom("not the word"))
            }
        }
    }

    assert_eq!(
        schema_of::<Picky>(),
        "t { address: string, count: u32, even: u16, inner: record Inner, took: record Duration, \
         last: u8 }"
    );
    comes_back(Picky {
        address: "::1".parse().unwrap(),
        count: NonZeroU32::MAX,
        even: Even(400),
        inner: Inner {
            even: Even(200),
            more: Some(Even(300)),
            word: Word("word".into()),
            last: true,
        },
        took: Duration::from_nanos(u64::MAX),
        last: 1,
    });
}

#[test]
fn aliases_are_no_fields() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Renamed {
        #[serde(alias = "aaa", alias = "zzz")]
        name: String,
        #[serde(alias = "addr")]
        address: IpAddr,
        #[serde(skip)]
        cache: Option<u8>,
        #[serde(default)]
        count: u8,
    }
    assert_eq!(
        schema_of::<Renamed>(),
        "t { name: string, address: string, count: u8 }"
    );
    comes_back(Renamed {
        name: "n".into(),
        address: [127, 0, 0, 1].into(),
        cache: None,
        count: 3,
    });
}

#[test]
fn skipped_fields_come_back_as_they_were() {
    #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    struct Sparse {
        #[serde(skip_serializing_if = "Option::is_none")]
        a: Option<u8>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        b: Vec<u8>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        c: BTreeMap<u8, u8>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty")]
        d: BTreeMap<String, u8>,
    }
    comes_back(Sparse::default());
    comes_back(Sparse {
        a: Some(0),
        b: vec![0],
        c: BTreeMap::from([(1, 2)]),
        d: BTreeMap::from([("a".into(), 2)]),
    });
}

#[test]
fn disagreements_name_the_field() {
    fn is_zero(value: &u8) -> bool {
        *value == 0
    }

    #[derive(Serialize, Deserialize)]
    struct Outer {
        inner: Inner,
    }

    #[derive(Serialize, Deserialize)]
    struct Inner {
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u8,
        #[serde(rename(serialize = "out", deserialize = "in"))]
        named: Option<u8>,
    }

    let types = SerdeType::<Outer>::trace("t").unwrap();
    let record = |number| {
        let named = None;
        types.to_record(
            None,
            &Outer {
                inner: Inner { number, named },
            },
        )
    };
    assert_eq!(
        record(1).unwrap_err().to_string(),
        "field inner.out: is written by the type, but not asked for when it is read"
    );

    #[derive(Debug, Serialize, Deserialize)]
    struct Skipping {
        #[serde(default, skip_serializing_if = "is_zero")]
        number: u8,
    }
    let types = SerdeType::<Skipping>::trace("t").unwrap();
    assert!(types.to_record(None, &Skipping { number: 1 }).is_ok());
    let error = types.to_record(None, &Skipping { number: 0 }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "field number: was skipped, which only options, lists, maps and opaque fields can be"
    );

    #[derive(Debug, Deserialize)]
    struct Narrow {
        #[expect(dead_code, reason = "never read into")]
        q: Vec<NarrowLine>,
    }
    #[derive(Debug, Deserialize)]
    struct NarrowLine {
        #[expect(dead_code, reason = "never read into")]
        article: u8,
    }
    let record = SerdeType::trace("t")
        .unwrap()
        .to_record(None, &plain())
        .unwrap();
    let error = from_record::<Narrow>(record.as_ref().fields()).unwrap_err();
    assert_eq!(error.path(), "q.article");
    assert!(
        error.to_string().contains("18446744073709551615"),
        "{error}"
    );
}

#[test]
fn records_of_any_origin_are_read_by_field_name() {
    #[derive(Debug, Record)]
    struct Derived {
        id: u32,
        note: Option<String>,
        bytes: bytes::Bytes,
        lines: Vec<DerivedLine>,
    }

    #[derive(Debug, Record)]
    struct DerivedLine {
        article: u64,
        level: DerivedLevel,
    }

    #[derive(Debug, Record)]
    enum DerivedLevel {
        #[record(rename = "HIGH")]
        High,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Read<'a> {
        id: i64,
        note: Option<&'a str>,
        bytes: Vec<u8>,
        lines: Vec<Line>,
        #[serde(default)]
        added: u8,
    }

    let mut builder = BatchBuilder::new();
    builder
        .push(&Derived {
            id: u32::MAX,
            note: Some("borrowed".into()),
            bytes: bytes::Bytes::from_static(&[0, 255]),
            lines: vec![DerivedLine {
                article: 1,
                level: DerivedLevel::High,
            }],
        })
        .unwrap();
    let batch = builder.take();
    let fields = batch.records().next().unwrap().fields();
    let expected = Read {
        id: i64::from(u32::MAX),
        note: Some("borrowed"),
        bytes: vec![0, 255],
        lines: vec![Line {
            article: 1,
            level: Some(Level::High),
        }],
        added: 0,
    };
    assert_eq!(from_record::<Read<'_>>(fields).unwrap(), expected);

    #[derive(Serialize, Deserialize)]
    struct Both {
        flat: Flat,
        tree: Tree,
    }
    let Odd { flat, tree, .. } = odd();
    let types = SerdeType::trace("t").unwrap();
    let record = types.to_record(None, &Both { flat, tree }).unwrap();
    let value: serde_json::Value = from_record(record.as_ref().fields()).unwrap();
    assert_eq!(
        value["flat"],
        json!({"own": 1, "article": 2, "level": null, "more": -3})
    );
    assert_eq!(value["tree"]["children"][1]["value"], json!(1));
}

#[test]
fn bytes_stay_bytes() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Blob {
        data: bytes_as_bytes::Blob,
    }

    /// The same as `serde_bytes`.
    mod bytes_as_bytes {
        use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

        #[derive(Debug, PartialEq)]
        pub(super) struct Blob(pub(super) Vec<u8>);

        impl Serialize for Blob {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_bytes(&self.0)
            }
        }

        struct Visitor;

        impl de::Visitor<'_> for Visitor {
            type Value = Blob;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("bytes")
            }
            fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Blob, E> {
                Ok(Blob(bytes.to_vec()))
            }
        }

        impl<'de> Deserialize<'de> for Blob {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                deserializer.deserialize_bytes(Visitor)
            }
        }
    }

    assert_eq!(schema_of::<Blob>(), "t { data: bytes }");
    for data in [vec![], vec![0, 1, 255]] {
        comes_back(Blob {
            data: bytes_as_bytes::Blob(data),
        });
    }
}

proptest! {
    #[test]
    fn numbers_and_text_come_back_bit_for_bit(
        (b, e, f, i) in any::<(i8, i64, u8, u64)>(),
        (j, k) in any::<(u32, u64)>(),
        l: char,
        m: String,
        o: Vec<Option<u64>>,
    ) {
        let (j, k) = (f32::from_bits(j), f64::from_bits(k));
        let value = Plain { b, e, f, i, j, k, l, m, o, ..plain() };
        let back = round_trip(&value);
        prop_assert_eq!(back.j.to_bits(), j.to_bits());
        prop_assert_eq!(back.k.to_bits(), k.to_bits());
        prop_assert_eq!(Plain { j: 0.0, k: 0.0, ..back }, Plain { j: 0.0, k: 0.0, ..value });
    }
}
