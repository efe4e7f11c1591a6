//! Why a line is not a record, and the errors of files.

use std::io;

use baler_common::record::PushError;
use baler_common::transport::{RetryClass, TransportError};

/// Why a line is not a record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LineError {
    /// It is JSON, but not an object.
    #[error("the line is JSON, but not an object {{...}}")]
    NoObject,
    /// It is not JSON.
    #[error("the line is not JSON: {0}")]
    Syntax(#[from] serde_json::Error),
    /// It is longer than the limit.
    #[error("the line has {length} bytes, more than the limit of {limit} (max_line_bytes)")]
    TooLong {
        /// Its length in bytes.
        length: u64,
        /// The limit.
        limit: usize,
    },
    /// The batch refuses it.
    #[error(transparent)]
    Unfit(#[from] PushError),
    /// It is not UTF-8.
    #[error("the line is not UTF-8: {0}")]
    Utf8(#[from] std::str::Utf8Error),
}

/// Wraps an error of the operating system, which this reader does not wait out.
pub(crate) fn failed(operation: &'static str, endpoint: &str, error: io::Error) -> TransportError {
    TransportError::caused_by(operation, endpoint, RetryClass::Final, error)
}
