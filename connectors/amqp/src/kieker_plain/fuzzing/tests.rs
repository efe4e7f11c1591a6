use super::*;

#[test]
fn corpus_of_the_fuzz_target_yields_no_finding() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/kieker_plain");
    let (mut records, mut broken, mut writers) = (0, 0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let folder = tempfile::tempdir().unwrap();
        let outcome = read(&fs::read(&path).unwrap(), &folder.path().join("registry"))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        records += outcome.records;
        broken += outcome.broken;
        writers += outcome.writers;
    }
    assert!(records > 20, "the corpus has records: {records}");
    assert!(broken > 5, "the corpus has wrong messages: {broken}");
    assert!(writers > 10, "the corpus has writers: {writers}");
}
