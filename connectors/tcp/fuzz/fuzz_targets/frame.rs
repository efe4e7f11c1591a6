//! Any bytes of a sender are read without a panic, within the limits, whatever pieces they come in.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baler_connector_tcp::fuzzing::frames(bytes));
