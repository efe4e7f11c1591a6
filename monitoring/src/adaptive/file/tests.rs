use super::*;

struct Folder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Folder {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("patterns.conf");
        Self {
            _folder: folder,
            path,
        }
    }

    fn put(&self, text: &str) {
        fs::write(&self.path, text).unwrap();
    }
}

fn changed(change: FileChange) -> String {
    match change {
        FileChange::Changed(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_change_counts_when_it_is_seen_twice() {
    let folder = Folder::new();
    folder.put("- a.B.c()\n");
    let mut file = PatternFile::new(folder.path.clone());
    assert_eq!(changed(file.check(true)), "- a.B.c()\n");
    assert!(matches!(file.check(false), FileChange::Same));
    // It has the same length, and perhaps the same time in the file system.
    folder.put("- a.B.d()\n");
    assert!(matches!(file.check(false), FileChange::Settling));
    assert_eq!(changed(file.check(false)), "- a.B.d()\n");
    assert!(matches!(file.check(false), FileChange::Same));
}

#[test]
fn a_file_that_is_being_written_is_waited_for() {
    let folder = Folder::new();
    folder.put("- *\n+ a.B.c()\n");
    let mut file = PatternFile::new(folder.path.clone());
    file.check(true);
    // Truncated, then written in two steps.
    folder.put("");
    assert!(matches!(file.check(false), FileChange::Settling));
    folder.put("- *\n");
    assert!(matches!(file.check(false), FileChange::Settling));
    folder.put("- *\n+ a.B.d()\n");
    assert!(matches!(file.check(false), FileChange::Settling));
    assert_eq!(changed(file.check(false)), "- *\n+ a.B.d()\n");
    // One that stays empty counts.
    folder.put("");
    assert!(matches!(file.check(false), FileChange::Settling));
    assert_eq!(changed(file.check(false)), "");
}

#[test]
fn a_file_that_cannot_be_read_is_told_of_once() {
    let folder = Folder::new();
    let mut file = PatternFile::new(folder.path.clone());
    let failed = |change| matches!(change, FileChange::Failed(_));
    assert!(failed(file.check(true)));
    assert!(matches!(file.check(false), FileChange::Same));
    folder.put("- *\n");
    file.check(true);
    fs::remove_file(&folder.path).unwrap();
    assert!(failed(file.check(false)));
    assert!(matches!(file.check(false), FileChange::Same));
    // Back again, as it was.
    folder.put("- *\n");
    assert!(matches!(file.check(false), FileChange::Same));
    fs::write(&folder.path, b"- \xff\n").unwrap();
    assert!(failed(file.check(false)));
    fs::write(&folder.path, vec![b'#'; 2 << 20]).unwrap();
    assert!(failed(file.check(false)));
    fs::remove_file(&folder.path).unwrap();
    fs::create_dir(&folder.path).unwrap();
    assert!(failed(file.check(false)));
}
