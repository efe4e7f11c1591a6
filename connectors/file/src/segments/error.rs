//! Errors of the operating system as errors of a medium, with their retry class.

use std::io;
use std::path::Path;

use baler_common::transport::{RetryClass, TransportError};
#[cfg(unix)]
use rustix::io::Errno;

/// Returns the path as an endpoint's name: `file:///folder`.
pub(crate) fn endpoint(path: &Path) -> Box<str> {
    let separator = if path.is_absolute() { "//" } else { "" };
    format!("file:{separator}{}", path.display()).into()
}

/// Wraps an error of the operating system.
pub(crate) fn io_error(operation: &'static str, path: &Path, error: io::Error) -> TransportError {
    let class = retry_class(&error);
    TransportError::caused_by(operation, endpoint(path), class, error)
}

/// Returns the retry class: whether the same call may succeed later.
///
/// A full disk or quota may be cleared, and a missing mount may come back. A forbidden path, or a
/// path that is no folder, stays so until the configuration changes.
fn retry_class(error: &io::Error) -> RetryClass {
    match error.kind() {
        io::ErrorKind::PermissionDenied
        | io::ErrorKind::ReadOnlyFilesystem
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::IsADirectory
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::Unsupported => RetryClass::Final,
        // The kind of this error has no name before Rust 1.87.
        #[cfg(unix)]
        _ if Errno::from_io_error(error) == Some(Errno::NAMETOOLONG) => RetryClass::Final,
        _ => RetryClass::Retry,
    }
}

#[cfg(test)]
mod tests;
