//! The errors of the macros, and their texts.

#[test]
fn mistakes_are_named_where_they_are_made() {
    trybuild::TestCases::new().compile_fail("tests/derive/*.rs");
}

#[test]
fn refusals_name_the_cause() {
    trybuild::TestCases::new().compile_fail("tests/probe/*.rs");
}
