//! Reads arbitrary maps and files of Kieker's text logs.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    if let Err(problem) = baler_connector_kieker::log::fuzzing::read(input) {
        panic!("{problem}");
    }
});
