//! The settings of a reader of lines.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use baler_common::non_zero;
use baler_common::transport::uri::{Uri, UriError, set};

use crate::lines::{JSON_SCHEME, TEXT_SCHEME};

/// The longest line in bytes, by default.
const LINE_BYTES: usize = 1 << 20;

/// What a line is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Format {
    /// A JSON object. The field with this name names the record's type.
    Json {
        /// The name of the field.
        type_field: Box<str>,
    },
    /// Text, as a record of this type with one field.
    Text {
        /// The name of the type.
        type_name: Box<str>,
    },
}

/// The settings of a reader of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinesConfig {
    /// A file, a folder, names with `*`, `?` or `[abc]`, a pipe, or `-` for standard input.
    pub path: PathBuf,
    /// What a line is. Default: JSON, its type in the field `type`.
    pub format: Format,
    /// Whether reading waits for more at the end. Default: no.
    pub follow: bool,
    /// Whether the lines that exist now are passed over. Default: no.
    pub from_now: bool,
    /// The longest line in bytes; a longer one is bad. Default 1 MiB.
    pub max_line_bytes: NonZeroUsize,
    /// Whether each record has the file and the offset of its line. Default: no.
    pub origin: bool,
    /// The file in which the reader stores the position up to which the lines are settled. Reading
    /// begins there if the file exists. Default: none, so reading begins with the first line.
    pub position_file: Option<PathBuf>,
}

impl LinesConfig {
    /// Returns the defaults for this path.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            format: Format::Json {
                type_field: "type".into(),
            },
            follow: false,
            from_now: false,
            max_line_bytes: non_zero!(LINE_BYTES),
            origin: false,
            position_file: None,
        }
    }

    /// Reads the settings from `jsonl:PATH?setting=value&…` or `text:PATH`; README.md lists them.
    /// With `follow`, reading waits for more lines, whatever the URI says.
    ///
    /// # Errors
    ///
    /// The URI has a host, no path, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri, follow: bool) -> Result<Self, UriError> {
        uri.no_host()?;
        if uri.path().is_empty() {
            let what = "the file or folder with the lines, or - for standard input";
            return Err(uri.missing_in_path(what));
        }
        let mut config = Self::new(uri.path());
        let name = uri.take_text("type");
        config.format = match uri.scheme() {
            TEXT_SCHEME => Format::Text {
                type_name: name.unwrap_or_else(|| crate::lines::TEXT_NAME.into()),
            },
            _ => Format::Json {
                type_field: name.unwrap_or_else(|| "type".into()),
            },
        };
        if let Format::Text { type_name } = &config.format
            && !crate::lines::inference::is_name(type_name)
        {
            return Err(UriError::refused(
                "type is empty or too long for the name of a type",
            ));
        }
        // A reader that follows files because of its URI must continue there after a restart.
        let follows = uri.take_bool("follow")?.unwrap_or(false);
        config.follow = follow || follows;
        set(
            &mut config.max_line_bytes,
            uri.take_bytes_in("max_line_bytes")?,
        );
        config.origin = uri.take_bool("origin")?.unwrap_or(false);
        let given = uri.take_path("position");
        uri.finish()?;
        if config.is_standard_input() && (follows || given.is_some()) {
            let setting = if follows { "follow" } else { "position" };
            let why = "standard input has no position to go on from";
            return Err(UriError::conflict(setting, "-", why));
        }
        config.follow &= !config.is_standard_input();
        config.position_file = given.or_else(|| follows.then(|| beside(&config.path)));
        Ok(config)
    }

    pub(crate) fn is_standard_input(&self) -> bool {
        self.path == Path::new("-")
    }

    /// Returns the name of the lines in messages.
    pub(crate) fn endpoint(&self) -> String {
        format!("{}:{}", self.scheme(), self.path.display())
    }

    pub(crate) fn scheme(&self) -> &'static str {
        match self.format {
            Format::Json { .. } => JSON_SCHEME,
            Format::Text { .. } => TEXT_SCHEME,
        }
    }
}

/// Returns the file of the position beside a file or folder. For a pattern its name has no
/// wildcards.
fn beside(path: &Path) -> PathBuf {
    let text = path.to_string_lossy();
    let text = text.trim_end_matches('/');
    let wildcard = text.find(['*', '?', '[']);
    let Some(wildcard) = wildcard.filter(|_| !path.exists()) else {
        return PathBuf::from(format!("{text}.position"));
    };
    // It is in the last folder without wildcards.
    let folder = text
        .get(..wildcard)
        .and_then(|it| it.rfind('/'))
        .map_or(0, |slash| slash + 1);
    let (folder, rest) = text.split_at_checked(folder).unwrap_or(("", text));
    let name = rest.replace(['*', '?', '[', ']', '/', '!'], "_");
    PathBuf::from(format!("{folder}{name}.position"))
}

#[cfg(test)]
mod tests;
