use super::*;

#[test]
fn a_file_is_replaced_whatever_was_planted_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("file"), folder.path().join("victim"));
    fs::write(&victim, "important").unwrap();
    let part = format!("file.{}.part", std::process::id());
    std::os::unix::fs::symlink(&victim, folder.path().join(part)).unwrap();
    replace_file(&path, b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    assert_eq!(fs::read(&victim).unwrap(), b"important");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_symlink_is_followed_if_it_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("file"), folder.path().join("victim"));
    fs::write(&victim, "old").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    replace_file(&path, b"new").unwrap();
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read(&victim).unwrap(), b"new");
}

#[test]
#[ignore = "needs root: scripts/test runs it for root"]
fn a_symlink_of_another_user_is_refused_as_root() {
    let folder = tempfile::tempdir().unwrap();
    let (path, victim) = (folder.path().join("file"), folder.path().join("victim"));
    fs::write(&victim, "old").unwrap();
    std::os::unix::fs::symlink(&victim, &path).unwrap();
    std::os::unix::fs::lchown(&path, Some(65_534), None).unwrap();
    let error = replace_file(&path, b"worse").unwrap_err();
    assert!(error.to_string().contains("another user"), "{error}");
    assert_eq!(fs::read(&victim).unwrap(), b"old");
}

#[test]
fn a_device_is_written_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device");
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    replace_file(&path, b"new").unwrap();
    replace_file(Path::new("/dev/null"), b"new").unwrap();
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn a_file_keeps_its_permissions() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    fs::write(&path, "old").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    replace_file(&path, b"new").unwrap();
    assert_eq!(
        fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(fs::read(&path).unwrap(), b"new");
}
