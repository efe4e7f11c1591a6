//! Errors of the adaptive protocol, with their codes.

use std::fmt;

/// The codes of the protocol's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorCode {
    /// The versions do not fit.
    Version = 1,
    /// The bytes are no command.
    Malformed = 2,
    /// A limit is exceeded.
    Limit = 3,
    /// A verdict on a slot that the program does not have.
    UnknownSlot = 4,
    /// A command of a later version that has no frame.
    UnknownCommand = 5,
    /// A command that may not come now, or not from this end.
    NotAllowed = 6,
    /// The sender ends.
    ShuttingDown = 7,
    /// A fault of the sender.
    Internal = 8,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Version => "the versions do not fit",
            Self::Malformed => "it is malformed",
            Self::Limit => "it is above the limit",
            Self::UnknownSlot => "the slot is unknown",
            Self::UnknownCommand => "the command is unknown",
            Self::NotAllowed => "it is not allowed here",
            Self::ShuttingDown => "the other end shuts down",
            Self::Internal => "internal error",
        })
    }
}

/// A command that ends its connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset}: {reading}: {code}")]
pub struct WireError {
    /// The code for the other end.
    pub code: ErrorCode,
    /// The position of the wrong item, in bytes.
    pub offset: usize,
    /// The slot in question.
    pub slot: Option<u32>,
    /// The wrong item.
    pub reading: &'static str,
}
