//! The settings of a reader of logs.

use std::path::PathBuf;

use baler_common::transport::uri::{Uri, UriError};

use crate::container::TimeUnit;

/// The settings of a reader of logs.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KiekerLogConfig {
    /// The folder of a log, or a folder with several such folders.
    pub folder: PathBuf,
    /// Whether reading waits for more at the end of the log. Default: no.
    pub follow: bool,
    /// The file in which the reader stores the position up to which the log is settled. Reading
    /// begins there if the file exists. Default: none, so reading begins with the first record.
    pub position_file: Option<PathBuf>,
    /// Whether reading ends with an error at the first record that cannot be read. Default: such
    /// records are skipped, and reported as damage.
    pub stops_at_bad_record: bool,
    /// An `.irl` file, or a folder of them, with record types beside Kieker's own. Default none.
    pub schema: Option<PathBuf>,
    /// The unit of the records' times. Default: the unit that their metadata record says.
    pub time_unit: Option<TimeUnit>,
    /// Whether the records that exist now are passed over. Default: no.
    pub from_now: bool,
}

impl KiekerLogConfig {
    /// Returns the defaults for this folder.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            follow: false,
            position_file: None,
            stops_at_bad_record: false,
            schema: None,
            time_unit: None,
            from_now: false,
        }
    }

    /// Reads the settings from `kieker-log:folder?setting=value&…`; README.md lists them. With
    /// `follow`, reading waits for more records, whatever the URI says.
    ///
    /// # Errors
    ///
    /// The URI has a host, no path, or a setting that is unknown or wrong.
    pub fn from_uri(mut uri: Uri, follow: bool) -> Result<Self, UriError> {
        uri.no_host()?;
        if uri.path().is_empty() {
            return Err(uri.missing_in_path("the folder of the log"));
        }
        let mut config = Self::new(uri.path());
        // A reader that follows a log because of its URI must continue there after a restart.
        let follows = uri.take_bool("follow")?.unwrap_or(false);
        config.follow = follow || follows;
        let beside = || config.folder.with_added_extension("position");
        let given = uri.take_path("position");
        config.position_file = given.or_else(|| follows.then(beside));
        let choices = [("skip", false), ("stop", true)];
        let stops = uri.take_choice("on_bad_line", &choices)?;
        config.stops_at_bad_record = stops.unwrap_or(false);
        config.schema = uri.take_path("schema");
        config.time_unit = uri.take_choice("time_unit", &TimeUnit::CHOICES)?;
        uri.finish()?;
        Ok(config)
    }
}

#[cfg(test)]
mod tests;
