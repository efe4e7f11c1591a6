//! Nothing to set.

use baler_common::transport::uri::{Uri, UriError};

/// The settings of both ends: there are none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NullConfig {}

impl NullConfig {
    /// The settings in `null:`.
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
mod tests {
    use super::*;

    #[test]
    fn anything_behind_the_scheme_is_an_error() {
        let config = |text: &str| NullConfig::from_uri(Uri::parse(text).unwrap());
        assert_eq!(config("null:"), Ok(NullConfig::default()));
        for wrong in ["null://host", "null:path", "null:?a=1"] {
            assert!(config(wrong).is_err(), "{wrong}");
        }
    }
}
