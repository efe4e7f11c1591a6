//! What `#[derive(Record)]` refuses, and how it says so.

#[test]
fn mistakes_are_named_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
