//! Any bytes of a sender are read without a panic and within the limits, in any pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baler_connector_tcp::fuzzing::frames(bytes));
