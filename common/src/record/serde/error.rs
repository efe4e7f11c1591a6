//! The error of a conversion.

use std::fmt::{self, Display};

use ::serde::{de, ser};

use crate::record::{SchemaError, ValueError};

/// Why a value and a record could not be converted: the position, and serde's message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SerdeError {
    /// The fields from the outermost inwards, with dots.
    path: String,
    reason: String,
}

impl SerdeError {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self {
            path: String::new(),
            reason: reason.into(),
        }
    }

    /// Adds the field that contains the error.
    pub(super) fn inside(mut self, field: &str) -> Self {
        let dot = if self.path.is_empty() { "" } else { "." };
        self.path = format!("{field}{dot}{}", self.path);
        self
    }

    /// Returns the position: names of fields with dots; empty for the record itself.
    pub fn path(&self) -> &str {
        &self.path
    }
}

impl Display for SerdeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "field {}: ", self.path)?;
        }
        f.write_str(&self.reason)
    }
}

impl std::error::Error for SerdeError {}

impl de::Error for SerdeError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl ser::Error for SerdeError {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }
}

impl From<SchemaError> for SerdeError {
    fn from(error: SchemaError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<ValueError> for SerdeError {
    fn from(error: ValueError) -> Self {
        Self::new(error.to_string())
    }
}
