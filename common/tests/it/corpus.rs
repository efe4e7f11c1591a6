//! The inputs that fuzzing kept, replayed on stable.
#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::path::PathBuf;

use crate::fuzz_bodies;
use crate::native_chunks::decoder;

/// The inputs kept for a target, with the files' names.
fn inputs(target: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let entries = std::fs::read_dir(&folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

/// Passes every input of the target to `body`; a failure's number is its file's name.
fn replay(target: &str, body: fn(&[u8])) {
    let inputs = inputs(target);
    for (path, bytes) in &inputs {
        let replayed = std::panic::catch_unwind(|| body(bytes));
        assert!(replayed.is_ok(), "{}", path.display());
    }
    assert!(inputs.len() >= 10, "the corpus of {target} is gone");
}

#[test]
fn the_corpus_of_container_is_taken_without_a_panic() {
    replay("container", fuzz_bodies::container);
}

#[test]
fn the_corpus_of_columns_is_taken_without_a_panic() {
    replay("columns", fuzz_bodies::columns);
}

#[test]
fn memory_that_a_decoder_keeps_shows_nothing_of_what_was_in_it() {
    let mut inputs = [inputs("columns"), inputs("container")].concat();
    inputs.sort();
    let chunks = inputs
        .iter()
        .flat_map(|(_, bytes)| fuzz_bodies::chunks(bytes));
    let chunks: Vec<_> = chunks.collect();
    let mut kept = decoder();
    let mut decoded = 0;
    // In both orders, so that each comes after larger ones and smaller ones.
    for chunk in chunks.iter().chain(chunks.iter().rev()) {
        let expected = decoder().decode(chunk);
        let found = kept.decode(chunk);
        assert_eq!(found, expected);
        decoded += u32::from(found.is_ok());
    }
    assert!(decoded > 50, "{decoded} chunks of the corpus are taken");
}

/// Fuzzing finds code late if no input leads to it.
#[test]
fn the_corpus_of_columns_has_every_encoding() {
    let inputs = inputs("columns");
    let found = inputs
        .iter()
        .flat_map(|(_, bytes)| fuzz_bodies::encodings(bytes));
    let found: Vec<_> = found.collect();
    for encoding in [
        "constant",
        "varint",
        "packed",
        "run length",
        "dictionary",
        "delta varint",
        "delta packed",
        "fixed",
        "reference",
        "patched",
        "delta patched",
        "stepped",
        "ticks",
        "plain",
    ] {
        let mut names = found.iter().flat_map(|column| column.split(", "));
        assert!(names.any(|name| name == encoding), "{encoding}");
    }
}

#[test]
fn the_corpus_of_roundtrip_survives() {
    replay("roundtrip", fuzz_bodies::roundtrip);
}

#[cfg(feature = "irl")]
#[test]
fn the_corpus_of_irl_is_read_without_a_panic() {
    replay("irl", crate::irl_bodies::irl);
}
