//! Any text is read as record types without a panic.
#![no_main]

#[path = "../../tests/it/irl_bodies.rs"]
mod irl_bodies;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| irl_bodies::irl(bytes));
