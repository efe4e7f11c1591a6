use baler_connector_testkit::within_patience;

use super::*;

#[test]
fn corpus_of_the_fuzz_target_yields_no_finding() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/messages");
    let (mut records, mut broken, mut writers) = (0, 0, 0);
    for entry in fs::read_dir(corpus).unwrap() {
        let path = entry.unwrap().path();
        let bytes = fs::read(&path).unwrap();
        // Tests of one process share the list of locks, which nobody waits for.
        let outcome = within_patience("the lock", || {
            let folder = tempfile::tempdir().unwrap();
            match read(&bytes, &folder.path().join("registry")) {
                Err(error) if error.to_string().contains("another reader has it") => None,
                outcome => Some(outcome),
            }
        });
        let outcome = outcome.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        records += outcome.records;
        broken += outcome.broken;
        writers += outcome.writers;
    }
    assert!(records > 20, "the corpus has records: {records}");
    assert!(broken > 5, "the corpus has wrong messages: {broken}");
    assert!(writers > 10, "the corpus has writers: {writers}");
}
