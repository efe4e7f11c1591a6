use super::*;

fn schema(name: &str, fields: &[(&str, FieldType)]) -> Schema {
    let fields: Vec<Field> = fields
        .iter()
        .map(|(name, kind)| Field::new(*name, kind.clone()))
        .collect();
    Schema::new(name, fields).unwrap()
}

#[test]
fn fingerprints_tell_names_types_and_order_apart() {
    let base = schema("t", &[("ab", FieldType::I32), ("c", FieldType::I32)]);
    let same = schema("t", &[("ab", FieldType::I32), ("c", FieldType::I32)]);
    assert_eq!(base.fingerprint(), same.fingerprint());
    for other in [
        schema("t", &[("a", FieldType::I32), ("bc", FieldType::I32)]),
        schema("t", &[("c", FieldType::I32), ("ab", FieldType::I32)]),
        schema("t", &[("ab", FieldType::U32), ("c", FieldType::I32)]),
        schema("u", &[("ab", FieldType::I32), ("c", FieldType::I32)]),
        schema("t", &[("ab", FieldType::I32.map()), ("c", FieldType::I32)]),
        schema("t", &[("ab", FieldType::I64.map()), ("c", FieldType::I32)]),
    ] {
        assert_ne!(base.fingerprint(), other.fingerprint(), "{other:?}");
    }
}

#[test]
fn a_field_given_twice_is_named() {
    let fields = vec![
        Field::new("a", FieldType::Bool),
        Field::new("a", FieldType::I8),
    ];
    assert_eq!(
        Schema::new("t", fields).unwrap_err().to_string(),
        "the record type t has the field a twice"
    );
}

#[test]
fn nesting_is_bounded() {
    let mut deep = FieldType::Bool;
    for _ in 1..MAX_DEPTH {
        deep = deep.list();
    }
    assert!(Schema::new("t", vec![Field::new("a", deep.clone())]).is_ok());
    let error = Schema::new("t", vec![Field::new("a", deep.list())]).unwrap_err();
    assert!(matches!(error, SchemaError::TooDeep { .. }));
}

#[test]
fn maps_have_entries_of_key_and_value() {
    let error = |kind| Schema::new("t", [Field::new("a", kind)]).unwrap_err();
    let map = FieldType::U8.optional().map();
    assert_eq!(map.map_value(), Some(&FieldType::U8.optional()));
    assert_eq!(map.clone().list().to_string(), "list<map<optional<u8>>>");
    assert_eq!(map.depth(), 4);
    assert!(Schema::new("t", [Field::new("a", map)]).is_ok());
    let entry = schema("entry", &[("key", FieldType::U8), ("value", FieldType::U8)]);
    for entry in [FieldType::U8, FieldType::Record(entry.into())] {
        let wrong = error(FieldType::Map(Box::new(entry)).map().list());
        assert!(matches!(wrong, SchemaError::WrongMap { .. }), "{wrong}");
    }
    let twice = error(FieldType::U8.optional().optional().map());
    assert!(matches!(twice, SchemaError::NestedOptional { .. }));
}
