//! Reads arbitrary maps and files of Kieker's logs, in a folder of this process.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let folder = std::env::temp_dir().join(format!("baler-fuzz-log-{}", std::process::id()));
    if let Err(problem) = baler_connector_kieker::log::fuzzing::read(input, &folder) {
        panic!("{problem}");
    }
});
