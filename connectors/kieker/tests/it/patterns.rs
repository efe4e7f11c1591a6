//! Patterns from bytes, as the fuzz target makes them.

use proptest::prelude::*;

use crate::pattern_bodies::pattern;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_096))]

    #[test]
    fn matching_agrees_with_a_naive_matcher(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        pattern(&bytes);
    }
}

#[test]
fn the_corpus_of_pattern_agrees_with_a_naive_matcher() {
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/pattern");
    let paths: Vec<_> = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    for path in &paths {
        let bytes = std::fs::read(path).unwrap();
        let replayed = std::panic::catch_unwind(|| pattern(&bytes));
        assert!(replayed.is_ok(), "{}", path.display());
    }
    assert!(paths.len() >= 10, "the corpus is gone");
}
