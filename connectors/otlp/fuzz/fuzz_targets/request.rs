//! Any bytes of a sender are read without a panic and within the limits, in each form.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| baler_connector_otlp::fuzzing::request(bytes));
