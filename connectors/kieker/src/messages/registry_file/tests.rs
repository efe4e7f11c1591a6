use baler_connector_testkit::within_patience;

use super::*;

fn strings(texts: &[(i32, &str)]) -> Vec<(i32, Arc<str>)> {
    texts
        .iter()
        .map(|(id, text)| (*id, (*text).into()))
        .collect()
}

/// Tests of one process share the list of locks, which nobody waits for.
fn open(path: &Path) -> (RegistryFile, Vec<KeptString>) {
    let file = within_patience("the lock", || RegistryFile::open(path).ok());
    let kept = file.strings().unwrap().map(Result::unwrap).collect();
    (file, kept)
}

fn error(path: &Path, message: &str) {
    within_patience(message, || {
        let strings = RegistryFile::open(path).and_then(|file| file.strings()?.collect());
        let error = Result::<Vec<KeptString>, Failure>::unwrap_err(strings);
        error.message.contains(message).then_some(())
    });
}

#[test]
fn strings_survive_and_a_torn_line_does_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry");
    let (mut file, kept) = open(&path);
    assert!(kept.is_empty());
    let add = |file: &mut RegistryFile, registry, texts| {
        file.add(registry, &strings(texts), u64::MAX).unwrap()
    };
    add(&mut file, -1, &[(0, "a\\b\r\nc d"), (i32::MAX, "")]);
    add(&mut file, 7, &[(3, "ö")]);
    file.sync().unwrap();
    drop(file);
    let whole = fs::read(&path).unwrap();
    fs::write(&path, [&whole, &b"0000000000000007 4 to"[..]].concat()).unwrap();
    let (mut file, kept) = open(&path);
    let expected = [
        (-1, 0, "a\\b\r\nc d".to_owned()),
        (-1, i32::MAX, String::new()),
        (7, 3, "ö".to_owned()),
    ];
    assert_eq!(kept, expected);
    add(&mut file, 7, &[(4, "torn")]);
    drop(file);
    assert_eq!(open(&path).1.len(), 4);
}

#[test]
fn a_file_is_replaced_and_takes_strings_up_to_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry");
    let (mut file, _) = open(&path);
    let new = strings(&[(0, "x")]);
    let line = 21;
    for number in 1..=3 {
        assert_eq!(file.add(number, &new, 2 * line).unwrap(), number < 3);
    }
    file.replace([(3, 0, "x")].into_iter()).unwrap();
    // The new file is the one that is added to.
    assert!(file.add(4, &new, 2 * line).unwrap());
    drop(file);
    let registries: Vec<_> = open(&path).1.iter().map(|it| it.0).collect();
    assert_eq!(registries, [3, 4]);
}

#[test]
fn a_foreign_file_and_a_second_reader_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("registry");
    let (file, _) = open(&path);
    error(&path, "another reader has it");
    drop(file);
    for foreign in ["hello\n", "zz 1 x\n", "0 x y\n", "0 1 a\\q\n"] {
        fs::write(&path, foreign).unwrap();
        error(&path, "line 1 is no string");
    }
}
