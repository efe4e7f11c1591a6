//! Any bytes are cut as Kieker's streams and messages without a panic; what is taken is one again.
#![no_main]

#[path = "../../tests/it/stream_bodies.rs"]
mod stream_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| stream_bodies::stream(bytes));
