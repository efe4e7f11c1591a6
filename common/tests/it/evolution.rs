//! Old and new versions of a type read each other's records.

use std::sync::Arc;

use baler_common::record::{
    BatchBuilder, EnumType, FieldType, FieldValue, Projection, ReadError, Record, Value, ValueRef,
    can_read, read,
};
use proptest::prelude::*;

mod old {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(name = "shop.Order")]
    pub(super) struct Order {
        pub(super) customer: String,
        pub(super) count: u16,
        pub(super) price: f32,
        pub(super) status: Status,
        pub(super) lines: Vec<Line>,
        pub(super) removed: bool,
    }

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(name = "shop.Status")]
    pub(super) enum Status {
        Open,
        Paid,
        Cancelled,
    }

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(name = "shop.Line")]
    pub(super) struct Line {
        pub(super) article: i32,
    }
}

mod new {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(name = "shop.Order")]
    pub(super) struct Order {
        pub(super) lines: Option<Vec<Line>>,
        #[record(alias = "client", alias = "customer")]
        pub(super) buyer: String,
        pub(super) price: f64,
        pub(super) count: i64,
        pub(super) status: Status,
        pub(super) note: Option<String>,
        #[record(default)]
        pub(super) retries: u32,
        #[record(default = Line { article: 7, count: 1 })]
        pub(super) gift: Line,
    }

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(name = "shop.Status")]
    pub(super) enum Status {
        #[record(other)]
        Unknown,
        #[record(rename = "Paid")]
        Settled,
        #[record(alias = "Open")]
        Opened,
    }

    #[derive(Debug, Clone, PartialEq, Record)]
    #[record(name = "shop.Line")]
    pub(super) struct Line {
        #[record(default = 1)]
        pub(super) count: u8,
        pub(super) article: i64,
    }
}

fn old_order(status: old::Status) -> old::Order {
    old::Order {
        customer: "Ada".into(),
        count: u16::MAX,
        price: 0.1,
        status,
        lines: vec![old::Line { article: i32::MIN }, old::Line { article: 2 }],
        removed: true,
    }
}

#[test]
fn new_version_reads_old_records() {
    use new::Status::{Opened, Settled, Unknown};
    use old::Status::{Cancelled, Open, Paid};

    let mut builder = BatchBuilder::new();
    for status in [Open, Paid, Cancelled] {
        builder.push(&old_order(status)).unwrap();
    }
    let batch = builder.take();
    let read: Vec<new::Order> = batch.read().map(Result::unwrap).collect();
    let expected = [Opened, Settled, Unknown].map(|status| new::Order {
        lines: Some(vec![
            new::Line {
                count: 1,
                article: i64::from(i32::MIN),
            },
            new::Line {
                count: 1,
                article: 2,
            },
        ]),
        buyer: "Ada".into(),
        price: f64::from(0.1_f32),
        count: 65_535,
        status,
        note: None,
        retries: 0,
        gift: new::Line {
            article: 7,
            count: 1,
        },
    });
    assert_eq!(read, expected);
}

#[test]
fn batch_with_both_versions_is_read_in_order() {
    let mut builder = BatchBuilder::new();
    let old = old_order(old::Status::Paid);
    builder.push(&old).unwrap();
    builder.push(&old::Line { article: 1 }).unwrap();
    let mut new: new::Order = builder.batch().read().next().unwrap().unwrap();
    new.count = 5;
    builder.push(&new).unwrap();
    builder.push(&old).unwrap();
    let batch = builder.take();
    let counts: Vec<i64> = batch
        .read::<new::Order>()
        .map(|order| order.unwrap().count)
        .collect();
    assert_eq!(counts, [65_535, 5, 65_535]);
}

#[test]
fn record_that_cannot_be_read_does_not_stop_the_next() {
    let mut builder = BatchBuilder::new();
    let mut order: new::Order = {
        builder.push(&old_order(old::Status::Paid)).unwrap();
        builder.take().read().next().unwrap().unwrap()
    };
    // A reader that knows only `Settled` does not understand the new type's variant `Unknown`.
    builder.push(&order).unwrap();
    order.status = new::Status::Unknown;
    builder.push(&order).unwrap();
    order.status = new::Status::Settled;
    builder.push(&order).unwrap();

    #[derive(Debug, PartialEq, Record)]
    #[record(name = "shop.Status")]
    enum Status {
        Paid,
    }

    #[derive(Debug, PartialEq, Record)]
    #[record(name = "shop.Order")]
    struct Order {
        status: Status,
    }

    let batch = builder.take();
    let read: Vec<_> = batch.read::<Order>().collect();
    assert!(read[0].is_ok() && read[2].is_ok());
    assert_eq!(
        read[1].as_ref().unwrap_err().to_string(),
        "shop.Order.status: the variant Unknown of the enum shop.Status cannot be read as enum \
         shop.Status"
    );
}

#[test]
fn refusals_name_record_and_field() {
    #[derive(Debug, Record)]
    #[record(name = "shop.Order")]
    struct Narrower {
        count: u8,
    }

    #[derive(Debug, Record)]
    #[record(name = "shop.Order")]
    struct Stranger {
        address: String,
    }

    #[derive(Debug, Record)]
    #[record(name = "shop.Order")]
    struct Inner {
        lines: Vec<InnerLine>,
    }

    #[derive(Debug, Record)]
    struct InnerLine {
        article: String,
    }

    let mut builder = BatchBuilder::new();
    builder.push(&old_order(old::Status::Open)).unwrap();
    let batch = builder.take();
    let order = batch.records().next().unwrap().fields();
    assert_eq!(
        read::<Narrower>(order).unwrap_err().to_string(),
        "shop.Order.count is of type u16, which cannot be read as u8"
    );
    assert_eq!(
        read::<Stranger>(order).unwrap_err().to_string(),
        "shop.Order has no field address, and there is no default for it"
    );
    assert_eq!(
        read::<Inner>(order).unwrap_err().to_string(),
        "shop.Line.article is of type i32, which cannot be read as string"
    );
    assert!(matches!(
        batch.read::<Narrower>().next(),
        Some(Err(ReadError::Type { .. }))
    ));
}

#[test]
fn projection_of_another_schema_is_not_used() {
    let mut builder = BatchBuilder::new();
    builder.push(&old_order(old::Status::Open)).unwrap();
    let old = builder.take();
    let new: new::Order = old.read().next().unwrap().unwrap();
    builder.push(&new).unwrap();
    let batch = builder.take();
    let of_old = Projection::new(new::Order::schema(), old::Order::schema()).unwrap();
    let record = batch.records().next().unwrap();
    assert_eq!(of_old.read::<new::Order>(record.fields()).unwrap(), new);
}

fn leaves() -> Vec<FieldType> {
    use FieldType as T;
    vec![
        T::Bool,
        T::I8,
        T::I16,
        T::I32,
        T::I64,
        T::U8,
        T::U16,
        T::U32,
        T::U64,
        T::F32,
        T::F64,
        T::Char,
        T::String,
        T::Bytes,
    ]
}

#[test]
fn table_of_what_can_be_read_holds_for_every_pair() {
    // One row a writer: the readers that accept it, besides itself.
    let table = [
        ("bool", ""),
        ("i8", "i16 i32 i64 f32 f64"),
        ("i16", "i32 i64 f32 f64"),
        ("i32", "i64 f64"),
        ("i64", ""),
        ("u8", "u16 u32 u64 i16 i32 i64 f32 f64"),
        ("u16", "u32 u64 i32 i64 f32 f64"),
        ("u32", "u64 i64 f64"),
        ("u64", ""),
        ("f32", "f64"),
        ("f64", ""),
        ("char", ""),
        ("string", ""),
        ("bytes", ""),
    ];
    for (writer, (name, readers)) in leaves().iter().zip(table) {
        assert_eq!(writer.to_string(), name);
        for reader in leaves() {
            let text = reader.to_string();
            let expected = text == name || readers.split(' ').any(|reader| reader == text);
            assert_eq!(can_read(writer, &reader), expected, "{name} as {text}");
            let (w, r) = (writer.clone(), reader);
            assert_eq!(can_read(&w, &r.clone().optional()), expected);
            assert_eq!(can_read(&w.clone().list(), &r.clone().list()), expected);
            assert_eq!(
                can_read(&w.clone().optional(), &r.clone().optional()),
                expected
            );
            assert!(!can_read(&w.clone().optional(), &r));
            assert!(!can_read(&w.clone().list(), &r));
            assert!(!can_read(&w, &r.list()));
        }
    }
}

#[test]
fn enums_and_records_are_matched_by_their_content() {
    let one = FieldType::Enum(Arc::new(EnumType::new("A", ["x"]).unwrap()));
    let other = FieldType::Enum(Arc::new(EnumType::new("B", ["y"]).unwrap()));
    assert!(can_read(&one, &other));
    assert!(!can_read(&one, &FieldType::String));
    assert!(can_read(&old::Line::field_type(), &new::Line::field_type()));
    assert!(!can_read(
        &new::Line::field_type(),
        &old::Line::field_type()
    ));
}

/// Reads a value of type `W` as `R`, which the table allows.
fn widened<W: FieldValue, R: FieldValue>(value: impl Into<Value>) -> R {
    assert!(can_read(&W::field_type(), &R::field_type()));
    let (value, field_type) = (value.into(), W::field_type());
    R::read(ValueRef::of(&value, &field_type).unwrap(), None).unwrap()
}

macro_rules! integers_widen {
    ($($test:ident: $from:ty => $($to:ty),+;)*) => {
        proptest! {$(
            #[test]
            fn $test(value: $from) {
                $(prop_assert_eq!(i128::from(widened::<$from, $to>(value)), i128::from(value));)+
            }
        )*}
    };
}

integers_widen! {
    i8_keeps_its_value: i8 => i8, i16, i32, i64;
    i16_keeps_its_value: i16 => i16, i32, i64;
    i32_keeps_its_value: i32 => i32, i64;
    i64_keeps_its_value: i64 => i64;
    u8_keeps_its_value: u8 => u8, u16, u32, u64, i16, i32, i64;
    u16_keeps_its_value: u16 => u16, u32, u64, i32, i64;
    u32_keeps_its_value: u32 => u32, u64, i64;
    u64_keeps_its_value: u64 => u64;
}

macro_rules! floats_widen {
    ($($test:ident: $from:ty => $($to:ty),+;)*) => {
        proptest! {$(
            #[test]
            fn $test(value: $from) {
                $(prop_assert_eq!(f64::from(widened::<$from, $to>(value)), f64::from(value));)+
            }
        )*}
    };
}

floats_widen! {
    i8_is_exact_as_a_float: i8 => f32, f64;
    i16_is_exact_as_a_float: i16 => f32, f64;
    i32_is_exact_as_a_float: i32 => f64;
    u8_is_exact_as_a_float: u8 => f32, f64;
    u16_is_exact_as_a_float: u16 => f32, f64;
    u32_is_exact_as_a_float: u32 => f64;
    f32_is_exact_as_f64: f32 => f32, f64;
}
