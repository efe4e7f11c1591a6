use super::*;

/// A process that dies with these chunks in work, one a source.
fn die_with(folder: &Path, chunks: &[&[u8]]) {
    let attempts = Attempts::open(folder).unwrap();
    for chunk in chunks {
        let mut entry = attempts.entry();
        // No earlier process has died with these chunks; otherwise one would wait for another.
        entry.file.suspect.1.try_recv().ok();
        entry.begin(chunk).unwrap();
        std::mem::forget(entry);
    }
    // The lock goes with the process.
    attempts.0.file.unlock().unwrap();
}

#[test]
fn deaths_are_counted_for_the_chunks_in_work_and_for_no_others() {
    let folder = tempfile::tempdir().unwrap();
    die_with(folder.path(), &[b"one", b"two"]);
    die_with(folder.path(), &[b"one"]);
    let attempts = Attempts::open(folder.path()).unwrap();
    let mut entry = attempts.entry();
    let counts = [b"one", b"two", b"six"].map(|chunk| entry.attempts(chunk));
    assert_eq!(counts, [2, 1, 0]);
    // Chunks that were processed, or are in work when the process ends by itself, are not counted.
    entry.begin(b"six").unwrap();
    entry.end().unwrap();
    entry.begin(b"six").unwrap();
    drop((entry, attempts));
    let attempts = Attempts::open(folder.path()).unwrap();
    let entry = attempts.entry();
    assert_eq!((entry.attempts(b"six"), entry.attempts(b"one")), (0, 2));
}

#[test]
fn a_process_that_ends_in_order_leaves_no_file_behind() {
    let folder = tempfile::tempdir().unwrap();
    let attempts = Attempts::open(folder.path()).unwrap();
    let mut entry = attempts.entry();
    entry.begin(b"one").unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    drop((entry, attempts));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn processes_share_a_folder_and_the_next_one_counts_for_all() {
    let folder = tempfile::tempdir().unwrap();
    let living = Attempts::open(folder.path()).unwrap();
    let mut in_work = living.entry();
    in_work.begin(b"alive").unwrap();
    die_with(folder.path(), &[b"dead"]);
    let next = Attempts::open(folder.path()).unwrap();
    let entry = next.entry();
    assert_eq!((entry.attempts(b"dead"), entry.attempts(b"alive")), (1, 0));
}

#[test]
fn a_torn_or_foreign_file_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("0.attempts"), [7; 23]).unwrap();
    let attempts = Attempts::open(folder.path()).unwrap();
    assert_eq!(attempts.entry().attempts(b"one"), 0);
}

/// The keys are in files, so they may not change.
#[test]
fn keys_of_chunks_stay_as_they_are() {
    assert_eq!(key(b""), 0xa8c7_f832_281a_39c5);
    assert_eq!(key(b"one"), 0x3a3a_0fa2_e93d_6da6);
}

#[test]
fn counts_of_an_earlier_version_are_discarded_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let mut old = vec![0; 2 * ENTRIES * ENTRY_BYTES];
    fs::write(folder.path().join("0.attempts"), &old).unwrap();
    old[..8].copy_from_slice(&key(b"one").to_le_bytes());
    fs::write(folder.path().join("1.attempts"), &old).unwrap();
    let attempts = Attempts::open(folder.path()).unwrap();
    assert_eq!(attempts.entry().attempts(b"one"), 0);
    assert_eq!(attempts.discarded_files(), 1);
    drop(attempts);
    let next = Attempts::open(folder.path()).unwrap();
    assert_eq!(next.discarded_files(), 0);
}
