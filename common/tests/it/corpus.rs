//! The inputs that fuzzing kept, replayed on stable.
#![expect(clippy::disallowed_methods, reason = "the corpus is a folder of files")]

use std::path::PathBuf;

use crate::{fuzz_bodies, pattern_bodies};

/// Hands every input of the target to `body`; the number of a failing one is its file's name.
fn replay(target: &str, body: fn(&[u8])) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let replayed = std::panic::catch_unwind(|| body(&bytes));
        assert!(replayed.is_ok(), "{}", path.display());
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of {target} is gone");
}

#[test]
fn the_corpus_of_container_is_taken_without_a_panic() {
    replay("container", fuzz_bodies::container);
}

#[test]
fn the_corpus_of_roundtrip_survives() {
    replay("roundtrip", fuzz_bodies::roundtrip);
}

#[test]
fn the_corpus_of_pattern_agrees_with_a_naive_matcher() {
    replay("pattern", pattern_bodies::pattern);
}
