//! The inputs that fuzzing kept, replayed on stable.

use std::path::Path;

use baler_connector_otlp::fuzzing;

#[test]
fn the_corpus_of_request_is_read_without_a_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/request");
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let replayed = std::panic::catch_unwind(|| fuzzing::request(&bytes));
        assert!(replayed.is_ok(), "{}", path.display());
        inputs += 1;
    }
    assert!(inputs >= 10, "the corpus of request is gone");
}

#[test]
fn changed_inputs_are_read_without_a_panic() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/request");
    let mut random = 1_u64;
    let mut next = move |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 1).unwrap() % below
    };
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        for _ in 0..200 {
            let mut changed = bytes.clone();
            for _ in 0..=next(4) {
                let at = next(changed.len());
                changed[at] ^= 1 << next(8);
            }
            let replayed = std::panic::catch_unwind(|| fuzzing::request(&changed));
            assert!(replayed.is_ok(), "{}: {changed:?}", path.display());
        }
    }
}
