//! Any bytes are parsed as patterns without a panic, and matching agrees with a naive matcher.
#![no_main]

#[path = "../../tests/it/pattern_bodies.rs"]
mod pattern_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| pattern_bodies::pattern(bytes));
