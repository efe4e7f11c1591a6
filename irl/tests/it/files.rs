//! Files below folders.

use std::fs;

use baler_irl::{FileError, MAX_BYTES, find_files, read_files};

#[test]
fn a_folder_stands_for_all_files_below_it() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let error = read_files(&[root]).unwrap_err();
    assert!(matches!(error, FileError::NoFile(_)), "{error}");
    fs::create_dir_all(root.join("b/c")).unwrap();
    for (name, text) in [("b/c/two.irl", "2"), ("one.irl", "1"), ("b/no.txt", "3")] {
        fs::write(root.join(name), text).unwrap();
    }
    let files = read_files(&[root.join("one.irl"), root.to_owned()]).unwrap();
    let texts: Vec<_> = files.iter().map(|it| &*it.text).collect();
    assert_eq!(texts, ["1", "2"]);
    assert_eq!(
        find_files(&[root]).unwrap(),
        [root.join("b/c/two.irl"), root.join("one.irl")]
    );
    let missing = root.join("missing");
    let error = read_files(&[&missing]).unwrap_err();
    assert!(error.to_string().starts_with("cannot open "), "{error}");
}

#[test]
fn no_more_than_the_language_allows_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.irl", "b.irl"] {
        fs::write(folder.path().join(name), "é".repeat(MAX_BYTES)).unwrap();
    }
    let files = read_files(&[folder.path()]).unwrap();
    let bytes: usize = files.iter().map(|it| it.text.len()).sum();
    assert!((MAX_BYTES + 1..MAX_BYTES + 8).contains(&bytes), "{bytes}");
    fs::write(folder.path().join("a.irl"), b"ab\xff").unwrap();
    let error = read_files(&[folder.path()]).unwrap_err();
    assert!(matches!(error, FileError::NotText(_, 2)), "{error}");
}
