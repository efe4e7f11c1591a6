//! The settings of both ends.

use baler_common::transport::uri::{Uri, UriError};

/// The settings of both ends: there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NullConfig {}

impl NullConfig {
    /// Reads the settings from `null:`.
    ///
    /// # Errors
    ///
    /// The URI has a host, a path or a setting.
    pub fn from_uri(uri: Uri) -> Result<Self, UriError> {
        uri.no_host()?;
        uri.no_path()?;
        uri.finish()?;
        Ok(Self {})
    }
}

#[cfg(test)]
mod tests;
