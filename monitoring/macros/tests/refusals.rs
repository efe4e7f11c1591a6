//! What `#[probe]` refuses, and the words it finds for it.

#![cfg(test)]

#[test]
fn refusals_name_the_cause() {
    trybuild::TestCases::new().compile_fail("tests/refused/*.rs");
}
