//! Secrets that stand in files.

use std::fs;
use std::path::Path;

/// A setting that names a file, and the setting of librdkafka that the file holds.
use baler_common::transport::Failure;
pub(crate) const FILES: &[(&str, &str)] = &[
    ("sasl.password.file", "sasl.password"),
    ("ssl.key.password.file", "ssl.key.password"),
    ("ssl.keystore.password.file", "ssl.keystore.password"),
];

/// The setting that names the file of a token.
pub(crate) const TOKEN_FILE: &str = "sasl.oauthbearer.token.file";

/// Whether a setting is this connector's own: librdkafka does not know it.
pub(crate) fn is_own(name: &str) -> bool {
    name == TOKEN_FILE || FILES.iter().any(|(file, _)| *file == name)
}

/// What a file holds; its line end is none of it. `setting` named it.
///
/// It is read for every client, so that a renewed secret is taken up.
pub(crate) fn read(setting: &str, path: &str) -> Result<String, Failure> {
    let text = fs::read_to_string(Path::new(path)).map_err(|error| {
        let message = format!("{setting}={path}: {error}");
        Failure::last("open", message)
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_end_is_no_part_of_a_secret_and_a_missing_file_is_named() {
        let name = format!("baler-kafka-secret-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let text = path.to_str().unwrap();
        fs::write(&path, " hush \r\n").unwrap();
        assert_eq!(read("sasl.password.file", text).unwrap(), " hush ");
        fs::remove_file(&path).unwrap();
        let failure = read("sasl.password.file", text).unwrap_err();
        assert!(failure.message.contains("sasl.password.file"));
        assert!(failure.message.contains(text));
    }
}
