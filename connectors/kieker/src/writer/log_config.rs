//! The settings of a log that is written: its folder and the form of its files.

use std::fmt;
use std::num::{NonZeroU64, NonZeroUsize};
use std::path::PathBuf;

use baler_common::non_zero;
use baler_common::transport::WindowLimits;
use baler_common::transport::uri::{Uri, UriError, set};

use super::compression::LogCompression;
use crate::LOG_SCHEME;

/// The settings of a writer of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KiekerLogWriterConfig {
    /// The folder in which each log gets a folder (Kieker's `customStoragePath`).
    pub parent: PathBuf,
    /// The format of the files. Default text, as in Kieker.
    pub format: LogFormat,
    /// The compression of complete files. Default none, as in Kieker.
    pub compression: LogCompression,
    /// The most records of a file, unless one chunk has more. Default 25,000, as Kieker's
    /// `maxEntriesInFile`.
    pub max_entries: NonZeroUsize,
    /// The most bytes of a file before it is compressed, unless one chunk has more. Default none,
    /// as Kieker's `maxLogSize`.
    pub max_bytes: Option<NonZeroU64>,
    /// Whether a record without a logging timestamp gets the time of writing. Default true, because
    /// Kieker's trace analysis needs timestamps.
    pub set_timestamps: bool,
    /// The host in the name of the folder. Default empty, as Kieker's `hostname`.
    pub hostname: Box<str>,
    /// The controller in the name of the folder. Default `KIEKER`, as Kieker's `name`.
    pub name: Box<str>,
    /// The limits of unconfirmed chunks. Default 64 chunks and 64 MiB.
    pub window: WindowLimits,
    /// An `.irl` file, or a folder of them, with record types that the reader has beside Kieker's
    /// own. Default none.
    pub schema: Option<PathBuf>,
}

/// The format of a log's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// Kieker's `BinaryLogStreamHandler`.
    Binary,
    /// Kieker's `TextLogStreamHandler`.
    Text,
}

impl LogFormat {
    /// Returns the extension of a file without compression, with its dot.
    pub(super) const fn extension(self) -> &'static str {
        match self {
            Self::Binary => ".bin",
            Self::Text => ".dat",
        }
    }
}

impl KiekerLogWriterConfig {
    /// Returns Kieker's defaults for logs in this folder.
    pub fn new(parent: impl Into<PathBuf>) -> Self {
        Self {
            parent: parent.into(),
            format: LogFormat::Text,
            compression: LogCompression::None,
            max_entries: non_zero!(25_000),
            max_bytes: None,
            set_timestamps: true,
            hostname: "".into(),
            name: "KIEKER".into(),
            window: WindowLimits::new(non_zero!(64)),
            schema: None,
        }
    }

    /// Reads the settings from `kieker-log:DIR?setting=value&…`; README.md lists them.
    ///
    /// # Errors
    ///
    /// The URI has a host, no path, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri) -> Result<Self, UriError> {
        uri.no_host()?;
        let parent = PathBuf::from(uri.path());
        if parent.as_os_str().is_empty() {
            return Err(uri.missing_in_path("the folder for logs"));
        }
        let mut config = Self::new(parent);
        let formats = [("binary", LogFormat::Binary), ("text", LogFormat::Text)];
        set(&mut config.format, uri.take_choice("format", &formats)?);
        let compression = uri.take_choice("compression", &LogCompression::NAMES)?;
        set(&mut config.compression, compression);
        set(&mut config.max_entries, uri.take_number("max_entries")?);
        config.max_bytes = uri.take_bytes_in("max_bytes")?;
        set(&mut config.set_timestamps, uri.take_bool("set_timestamps")?);
        for (name, part) in [
            ("hostname", &mut config.hostname),
            ("name", &mut config.name),
        ] {
            let plain = |text: &str| (!text.contains(['/', '\0'])).then(|| text.into());
            set(
                part,
                uri.take_with(name, "a part of a name, without /", plain)?,
            );
        }
        config.window.take(&mut uri)?;
        config.schema = uri.take_path("schema");
        uri.finish()?;
        Ok(config)
    }
}

/// Shows the endpoint as a URI without settings.
impl fmt::Display for KiekerLogWriterConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{LOG_SCHEME}:{}", self.parent.display())
    }
}

#[cfg(test)]
mod tests;
