//! The errors of `#[derive(Record)]`, and their texts.

#[test]
fn mistakes_are_named_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
