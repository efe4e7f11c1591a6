use super::*;
use crate::number::to_u64;

#[test]
fn every_number_finds_its_schema_and_back() {
    for (number, schema) in (1..).zip(KIEKER_TYPES) {
        assert_eq!(well_known(number), Some(schema()));
        assert_eq!(well_known_number(schema()), Some(number));
    }
    assert_eq!(well_known(0), None);
    assert_eq!(well_known(to_u64(KIEKER_TYPES.len()) + 1), None);
}
