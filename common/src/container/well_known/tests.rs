use super::*;
use crate::record::Record;

#[derive(Debug, Record)]
struct First {}

#[derive(Debug, Record)]
struct Second {
    value: u8,
}

static TABLE: WellKnownTypes = WellKnownTypes::new(&[First::schema, Second::schema]);

#[test]
fn every_number_finds_its_schema_and_back() {
    for (number, schema) in [(1, First::schema()), (2, Second::schema())] {
        assert_eq!(TABLE.get(number), Some(schema));
        assert_eq!(TABLE.number(schema), Some(number));
    }
    assert_eq!(TABLE.get(0), None);
    assert_eq!(TABLE.get(3), None);
}

#[test]
fn a_type_with_only_the_name_of_a_known_one_has_no_number() {
    let other = Schema::new(Second::schema().name(), Vec::new()).unwrap();
    assert_eq!(TABLE.number(&other), None);
}
