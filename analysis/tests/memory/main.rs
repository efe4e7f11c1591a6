//! Sinks take bounded memory, whatever the bytes of a chunk say: the corpus of the fuzz target
//! `sinks`, and that of the columns.
//!
//! A test binary of its own, because it counts every allocation of its process.
#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests fail by panicking, like the tests"
)]

use std::fs;
use std::path::Path;

mod bodies;
#[path = "../../../common/tests/it/counting.rs"]
mod counting;

#[global_allocator]
static ALLOCATOR: counting::Counting = counting::Counting;

#[test]
fn the_corpora_of_sinks_and_columns_are_written_within_bounded_memory() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for corpus in ["fuzz/corpus/sinks", "../common/fuzz/corpus/columns"] {
        let entries = fs::read_dir(root.join(corpus)).unwrap();
        let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        assert!(paths.len() >= 10, "the corpus {corpus} is gone");
        for path in paths {
            bodies::sinks(&fs::read(&path).unwrap());
        }
    }
}
