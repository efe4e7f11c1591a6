//! Reads arbitrary messages of Kieker's `AmqpWriter` with an arbitrary file of strings.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    let file = std::env::temp_dir().join(format!("baler-fuzz-plain-{}", std::process::id()));
    if let Err(problem) = baler_connector_amqp::kieker_plain_fuzzing::read(input, &file) {
        panic!("{problem}");
    }
});
