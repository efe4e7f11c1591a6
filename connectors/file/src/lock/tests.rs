use std::fs;
use std::os::unix::fs::symlink;

use super::*;

#[test]
fn what_somebody_else_put_there_is_neither_followed_nor_emptied() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["victim", "link", "copy", "empty", "link-to-empty"];
    let [victim, link, copy, empty, link_to_empty] = names.map(|it| folder.path().join(it));
    fs::write(&victim, "important").unwrap();
    fs::write(&empty, "").unwrap();
    symlink(&victim, &link).unwrap();
    // Its content does not show that another program owns it.
    symlink(&empty, &link_to_empty).unwrap();
    fs::hard_link(&victim, &copy).unwrap();
    for path in [&link, &copy, &link_to_empty, Path::new("/dev/null")] {
        let error = FileLock::acquire(path).unwrap_err();
        assert_ne!(error.kind(), io::ErrorKind::WouldBlock, "{path:?}");
        assert!(!FileLock::is_held(path), "{path:?}");
    }
    assert_eq!(fs::read(&victim).unwrap(), b"important");
    assert_eq!(fs::read(&empty).unwrap(), b"");
}

#[test]
fn second_lock_is_refused_with_the_process_that_has_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lock");
    assert!(!FileLock::is_held(&path));
    let first = FileLock::acquire(&path).unwrap();
    assert!(FileLock::is_held(&path));
    let error = FileLock::acquire(&path).unwrap_err();
    let process = format!("process {} ", std::process::id());
    assert!(error.to_string().contains(&process), "{error}");
    drop(first);
    assert!(!FileLock::is_held(&path));
    FileLock::acquire(&path).unwrap();
}
