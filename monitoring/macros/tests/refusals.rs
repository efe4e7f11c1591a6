//! The errors of `#[probe]`, and their texts.

#![cfg(test)]

#[test]
fn refusals_name_the_cause() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
