//! The operating system's errors as errors of a medium, with their retry class.

use std::io;
use std::path::Path;

use baler_common::transport::{RetryClass, TransportError};

/// The path as an endpoint's name: `file:///folder`.
pub(crate) fn endpoint(path: &Path) -> Box<str> {
    let separator = if path.is_absolute() { "//" } else { "" };
    format!("file:{separator}{}", path.display()).into()
}

/// Wraps an error of the operating system.
pub(crate) fn io_error(operation: &'static str, path: &Path, error: io::Error) -> TransportError {
    let class = retry_class(error.kind());
    TransportError::caused_by(operation, endpoint(path), class, error)
}

/// Whether the same call may succeed later.
///
/// A full disk or quota may be cleared, and a missing mount may come back. A forbidden path, or one
/// that is no folder, stays so until somebody changes the configuration.
const fn retry_class(kind: io::ErrorKind) -> RetryClass {
    match kind {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::Unsupported => RetryClass::Final,
        _ => RetryClass::Retry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_disk_may_be_tried_again_and_forbidden_folder_not() {
        let path = Path::new("/folder");
        let full = io_error("write to", path, io::ErrorKind::StorageFull.into());
        assert!(full.is_retryable());
        let forbidden = io_error("open", path, io::ErrorKind::PermissionDenied.into());
        assert_eq!(forbidden.class, RetryClass::Final);
        assert_eq!(&*forbidden.endpoint, "file:///folder");
    }
}
