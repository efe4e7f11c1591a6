//! Reads arbitrary messages of Kieker's `AmqpWriter` with an arbitrary file of strings.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    // The reader forces the file to the disk, which takes no time in memory.
    let memory = std::path::PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    let file = folder.join(format!("baler-fuzz-plain-{}", std::process::id()));
    if let Err(problem) = baler_connector_kieker::messages::fuzzing::read(input, &file) {
        panic!("{problem}");
    }
});
