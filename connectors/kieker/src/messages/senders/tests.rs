use std::fs;
use std::path::PathBuf;

use baler_common::transport::Origin;
use baler_connector_testkit::within_patience;
use tempfile::TempDir;

use super::*;
use crate::types;

/// A folder for the file of strings, and the path of the file.
fn file() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry");
    (folder, path)
}

/// Tests of one process share the list of locks, which nobody waits for.
fn open(path: &Path, limits: (usize, u64)) -> Senders {
    let catalog = types::shared_catalog();
    within_patience("the lock", || {
        Senders::with_limits(path, Arc::clone(&catalog), None, limits).ok()
    })
}

/// Takes the message of a string with the id 0.
fn register(senders: &mut Senders, writer: i64, text: &str) {
    let length = u32::try_from(text.len()).unwrap();
    let head = [&[0xff][..], &writer.to_be_bytes(), &[0; 4]].concat();
    let bytes = [&head[..], &length.to_be_bytes(), text.as_bytes()].concat();
    let message = Delivery {
        token: Token(0),
        bytes: bytes.into(),
        meta: None,
        origin: Origin {
            endpoint: "".into(),
            lane: "".into(),
            position: 0,
        },
        redelivered: false,
        attempts: 0,
    };
    let taken = senders.take(&message, &mut VecDeque::new()).unwrap();
    assert!(taken.broken.is_none(), "{taken:?}");
}

fn string(senders: &Senders, writer: i64) -> Option<&str> {
    senders.senders.get(&writer)?.stream.string(0)
}

#[test]
fn the_writers_that_sent_last_are_known_and_stay_known() {
    let (_folder, path) = file();
    let mut senders = open(&path, (MAX_MEMORY, MAX_FILE_BYTES));
    for writer in 0..1_100 {
        register(&mut senders, writer, "x");
        // It sends again and again.
        register(&mut senders, 0, "y");
    }
    // Settled strings alone do not keep a writer.
    senders.flush(&mut VecDeque::new());
    register(&mut senders, 1_100, "x");
    for _ in 0..2 {
        assert_eq!(senders.len(), MAX_SENDERS);
        assert_eq!(string(&senders, 0), Some("y"));
        assert_eq!(string(&senders, 1_100), Some("x"));
        assert_eq!(string(&senders, 1), None);
        drop(senders);
        senders = open(&path, (MAX_MEMORY, MAX_FILE_BYTES));
    }
}

#[test]
fn a_large_file_is_written_anew_with_the_strings_that_are_known() {
    let (_folder, path) = file();
    let limits = (MAX_MEMORY, 4_000);
    let mut senders = open(&path, limits);
    for number in 0..1_000 {
        register(&mut senders, number % 5, &format!("text-{number}"));
        assert!(fs::metadata(&path).unwrap().len() <= 4_000);
    }
    drop(senders);
    let senders = open(&path, limits);
    for writer in 0..5 {
        let text = format!("text-{}", 995 + writer);
        assert_eq!(string(&senders, writer), Some(&*text));
    }
}

#[test]
fn memory_is_bounded_by_writers_that_are_silent() {
    let (_folder, path) = file();
    let limits = (1 << 20, MAX_FILE_BYTES);
    let mut senders = open(&path, limits);
    let text = "x".repeat(100 << 10);
    for writer in 0..50 {
        register(&mut senders, writer, &text);
        assert!(senders.memory <= 1 << 20, "{}", senders.memory);
    }
    let known = senders.len();
    assert!((5..=10).contains(&known), "{known}");
    drop(senders);
    let senders = open(&path, limits);
    assert_eq!(senders.len(), known);
    assert_eq!(string(&senders, 49), Some(&*text));
}
