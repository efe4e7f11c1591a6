//! The encoding of opaque fields: exact, and safe to read with any content.

use std::collections::BTreeMap;
use std::sync::Arc;

use baler_common::record::serde::{SerdeError, SerdeType, from_record};
use baler_common::record::{DynamicRecord, Field, FieldType, Schema, Value, ValueRef};
use bytes::Bytes;
use proptest::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::serde_bridge::round_trip;

type Map = BTreeMap<u8, Vec<f32>>;

/// Reads an opaque field with these bytes.
fn read<T: DeserializeOwned>(encoded: &[u8]) -> Result<T, SerdeError> {
    let schema = SerdeType::<Map>::trace("t").unwrap().schema().clone();
    let opaque = Value::Record(vec![Value::Bytes(Bytes::copy_from_slice(encoded))]);
    let record = DynamicRecord::new(schema, None, vec![opaque]).unwrap();
    from_record(record.as_ref().fields())
}

fn encoded<T: serde::Serialize + DeserializeOwned>(value: &T) -> Vec<u8> {
    let record = SerdeType::<T>::trace("t").unwrap().to_record(None, value);
    let record = record.unwrap();
    let Some(ValueRef::Record(content)) = record.as_ref().fields().get(0) else {
        return Vec::new();
    };
    match content.field("encoded") {
        Some(ValueRef::Bytes(encoded)) => encoded.to_vec(),
        _ => Vec::new(),
    }
}

#[test]
fn encoding_is_as_documented() {
    assert_eq!(
        encoded(&json!({"a": [-1, 300, 0.5, true, null]})),
        [
            1, 13, 10, 1, b'a', 12, 5, 1, 6, 0xac, 2, 8, 0, 0, 0, 0, 0, 0, 0xe0, 0x3f, 4, 0, 14, 14
        ]
    );
    assert_eq!(
        encoded(&Map::from([(1, vec![f32::NAN])])),
        [1, 13, 6, 1, 12, 7, 0, 0, 0xc0, 0x7f, 14, 14]
    );
}

/// A number in the manner of Peano: an option of itself.
#[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Peano(Option<Box<Self>>);

#[test]
fn an_option_of_itself_ends_at_a_value_that_is_none() {
    let two = Peano(Some(Box::new(Peano(Some(Box::new(Peano(None)))))));
    assert_eq!(round_trip(&two), two);
    // The same type over a unit, as an opaque field and as a field of its own.
    assert!(read::<Peano>(&[1, 0]).is_err());
    let fields = vec![Field::new("serde.value", FieldType::U8)];
    let schema = Arc::new(Schema::new("t", fields).unwrap());
    let record = DynamicRecord::new(schema, None, vec![Value::Unsigned(1)]).unwrap();
    assert!(from_record::<Peano>(record.as_ref().fields()).is_err());
}

#[test]
fn every_truncation_is_an_error() {
    let whole = encoded(&Map::from([(1, vec![1.0]), (200, vec![])]));
    assert!(read::<Map>(&whole).is_ok());
    for len in 0..whole.len() {
        assert!(read::<Map>(&whole[..len]).is_err(), "{len}");
        assert!(read::<serde_json::Value>(&whole[..len]).is_err(), "{len}");
    }
    let longer = [&whole[..], &[0]].concat();
    assert_eq!(
        read::<Map>(&longer).unwrap_err().to_string(),
        "an opaque field has 1 bytes after its value"
    );
    assert_eq!(
        read::<Map>(&[9, 0]).unwrap_err().to_string(),
        "an opaque field is of version 9; 1 is known"
    );
}

#[test]
fn nesting_is_bounded_on_both_sides() {
    let mut value = json!(null);
    for _ in 0..128 {
        value = json!([value]);
    }
    assert_eq!(round_trip(&value), value);
    let types = SerdeType::<serde_json::Value>::trace("t").unwrap();
    let error = types.to_record(None, &json!([value])).unwrap_err();
    assert_eq!(error.to_string(), "a value nests deeper than 128 levels");
    for tag in [2, 12, 13] {
        let deep: Vec<u8> = std::iter::once(1)
            .chain(std::iter::repeat_n(tag, 1_000_000))
            .collect();
        assert!(read::<serde_json::Value>(&deep).is_err());
    }
}

#[test]
fn declared_length_beyond_the_end_is_an_error() {
    for tag in [10, 11] {
        let huge = [&[1, tag][..], &[0xff; 18], &[3]].concat();
        assert_eq!(
            read::<String>(&huge).unwrap_err().to_string(),
            "an opaque field ends inside a value"
        );
    }
    let too_wide = [&[1, 6][..], &[0xff; 18], &[4]].concat();
    assert_eq!(
        read::<u128>(&too_wide).unwrap_err().to_string(),
        "an opaque field has a number above 128 bits"
    );
}

proptest! {
    #[test]
    fn any_integer_comes_back(signed: i128, unsigned: u128) {
        prop_assert_eq!(round_trip(&signed), signed);
        prop_assert_eq!(round_trip(&unsigned), unsigned);
    }

    #[test]
    fn any_bytes_are_read_or_refused(mut bytes: Vec<u8>) {
        bytes.insert(0, 1);
        // Neither may panic or hang; most are refused.
        drop(read::<serde_json::Value>(&bytes));
        drop(read::<Map>(&bytes));
        drop(read::<Option<String>>(&bytes));
    }
}
