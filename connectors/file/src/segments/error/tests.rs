use super::*;

#[test]
fn full_disk_may_be_tried_again_and_forbidden_folder_not() {
    let path = Path::new("/folder");
    let full = io_error("write to", path, io::ErrorKind::StorageFull.into());
    assert!(full.is_retryable());
    let forbidden = io_error("open", path, io::ErrorKind::PermissionDenied.into());
    assert_eq!(forbidden.class, RetryClass::Final);
    let too_long = io_error("open", path, Errno::NAMETOOLONG.into());
    assert_eq!(too_long.class, RetryClass::Final);
    assert_eq!(&*forbidden.endpoint, "file:///folder");
}
