use super::*;

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root::new(folder.path());
    let error = root.read("proc/stat").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.to_string().contains("proc/stat"), "{error}");
    assert!(!root.has("proc"));
}

#[test]
fn numbers_are_all_there_or_none() {
    assert_eq!(numbers("1  2 3 x"), Some([1, 2, 3]));
    assert_eq!(numbers::<3>("1 2"), None);
    assert_eq!(numbers::<1>("-1"), None);
    assert_eq!(numbers("18446744073709551615"), Some([u64::MAX]));
    assert_eq!(numbers::<1>("18446744073709551616"), None);
}
