//! Any text is read as record types without a panic.
#![no_main]

#[path = "../../tests/it/stream_bodies.rs"]
#[expect(dead_code, reason = "shared with the other target")]
mod stream_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stream_bodies::irl(bytes));
