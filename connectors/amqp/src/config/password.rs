//! Where the password is.

use std::fs;
use std::path::PathBuf;

/// Where the password is. It has no `Debug`, so that it cannot be shown.
use baler_common::transport::Failure;
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Password {
    Text(Box<str>),
    /// Read at every connection, so that a renewed one is taken up.
    File(PathBuf),
}

impl Password {
    /// The password; a file's line end is none of it.
    pub(crate) fn read(&self) -> Result<String, Failure> {
        let path = match self {
            Self::Text(text) => return Ok(text.to_string()),
            Self::File(path) => path,
        };
        let text = fs::read_to_string(path).map_err(|error| {
            let message = format!("password_file {}: {error}", path.display());
            Failure::last("connect to", message)
        })?;
        Ok(text.trim_end_matches(['\r', '\n']).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_is_read_each_time_and_its_line_end_is_no_part_of_it() {
        let name = format!("baler-amqp-password-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let password = Password::File(path.clone());
        for (written, meant) in [("first\n", "first"), (" second \r\n", " second ")] {
            fs::write(&path, written).unwrap();
            assert_eq!(password.read().unwrap(), meant);
        }
        fs::remove_file(&path).unwrap();
        let failure = password.read().unwrap_err();
        assert!(failure.message.contains("password_file"), "{failure:?}");
    }
}
