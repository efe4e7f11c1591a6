//! Whole commands over mutated chunks, whose lengths and checksums are right.
//!
//! The parser is reached, unlike by bytes with a wrong checksum. The mutations are seeded, so a
//! finding repeats. `BALER_MUTATED_CHUNKS` sets how many chunks there are.

use std::fs;
use std::path::Path;
use std::process::Command;

use baler_common::container::Limits;
use bytes::Bytes;

use crate::hostile::store;
use crate::support::{command, workspace};

#[path = "../../../common/tests/it/fuzz_bodies.rs"]
#[expect(dead_code, reason = "shared with the fuzz targets of common")]
mod fuzz_bodies;

/// How many chunks there are, unless the environment says otherwise. A quarantine has room for
/// 10,000.
const CHUNKS: usize = 1_000;

/// The memory limit of a chunk's decoded columns, and the memory that a process may take beside
/// them.
const DECODED_LIMIT: u64 = 16 << 20;
const SLACK: u64 = 64 << 20;

/// Runs a command and prints the largest size of its memory, in KiB, as the last line.
const PEAK: &str = "import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], timeout=300).returncode
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(code if code >= 0 else 100 - code)";

/// Chunks of the fuzz corpora with some bytes changed, doubled or removed.
fn mutated(count: usize) -> Vec<Bytes> {
    let mut inputs = Vec::new();
    for corpus in ["analysis/fuzz/corpus/sinks", "common/fuzz/corpus/columns"] {
        let entries = fs::read_dir(workspace(corpus)).unwrap();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        inputs.extend(paths.into_iter().map(|path| fs::read(path).unwrap()));
    }
    // xorshift64*, by S. Vigna.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move |below: usize| {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        let high = state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).unwrap() % below.max(1)
    };
    let mut chunks = Vec::new();
    while chunks.len() < count {
        let mut input = inputs[random(inputs.len())].clone();
        for _ in 0..random(4) {
            let at = random(input.len());
            match random(4) {
                0 => drop(input.drain(at..(at + random(8)).min(input.len()))),
                1 => input.extend_from_within(at..),
                _ if input.is_empty() => {}
                _ => input[at] = u8::try_from(random(256)).unwrap(),
            }
        }
        input.truncate(1 << 16);
        for chunk in fuzz_bodies::chunks(&input) {
            let chunk = with_producer(chunk, chunks.len());
            if is_short_when_written(&chunk) {
                chunks.push(Bytes::from(chunk));
            }
        }
    }
    chunks
}

/// Returns the chunk with a producer of its own. Otherwise it would count as a conflicting copy of
/// another chunk.
fn with_producer(mut chunk: Vec<u8>, number: usize) -> Vec<u8> {
    let identity = chunk.windows(28).position(|bytes| bytes == [7; 28]);
    if let Some(at) = identity {
        chunk[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    fuzz_bodies::sealed(&chunk).unwrap_or(chunk)
}

/// Whether the chunk is refused, or has few enough records for a quick test. How much output a
/// small chunk can make is the matter of `hostile`.
fn is_short_when_written(chunk: &[u8]) -> bool {
    let decoded = baler::decoder(Limits::default()).decode(chunk);
    decoded.map_or(true, |decoded| decoded.batch.len() <= 10_000)
}

/// Runs the program, which must end in good order or with damaged data; the peak of its memory in
/// bytes.
fn peak_of(args: &[&str], folder: &Path) -> u64 {
    let program = command();
    let run = Command::new("python3")
        .args(["-c", PEAK])
        .arg(program.get_program())
        .args(args)
        .current_dir(folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&run.stdout);
    let kib = text
        .lines()
        .last()
        .and_then(|line| line.parse::<u64>().ok());
    let errors = String::from_utf8_lossy(&run.stderr);
    let kib = kib.unwrap_or_else(|| panic!("{args:?}: {errors}"));
    assert!(!errors.contains("panicked"), "{args:?}: {errors}");
    let code = run.status.code().unwrap();
    assert!(
        matches!(code, 0 | 65),
        "{args:?} ends with {code}: {errors}"
    );
    kib << 10
}

#[test]
fn no_command_takes_more_memory_than_the_decoded_limit_and_64_mib() {
    let folder = tempfile::tempdir().unwrap();
    let count = std::env::var("BALER_MUTATED_CHUNKS");
    let count = count.map_or(CHUNKS, |count| count.parse().unwrap());
    let from = store(&folder.path().join("chunks"), mutated(count));
    let limit = &*DECODED_LIMIT.to_string();
    let store = folder.path().join("chunks");
    let commands: [&[&str]; 7] = [
        &["receive", "--format", "json", "--output", "all.jsonl"],
        &["receive", "--format", "csv", "--output", "csv"],
        &["receive", "--format", "table", "--output", "all.txt"],
        &["receive", "--format", "none"],
        &["send", "--to", "file:sent"],
        &["relay", "--to", "file:relayed"],
        &["inspect", store.to_str().unwrap(), "--count", "1000000"],
    ];
    for (number, args) in commands.into_iter().enumerate() {
        let mut all = args.to_vec();
        let poison = format!("poison-{number}");
        if args[0] != "inspect" {
            all.extend(["--from", &from, "--quarantine", &poison]);
        }
        if matches!(args[0], "receive" | "send") {
            all.extend(["--decoded-limit", limit]);
        }
        let peak = peak_of(&all, folder.path());
        let most = DECODED_LIMIT + SLACK;
        assert!(peak <= most, "{all:?} took {} MiB", peak >> 20);
    }
}
