//! Any bytes as the columns or the strings of a chunk are decoded without a panic and within the
//! limits.
#![no_main]

#[path = "../../tests/it/fuzz_bodies.rs"]
#[expect(dead_code, reason = "shared with the other targets")]
mod fuzz_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz_bodies::columns(bytes));
