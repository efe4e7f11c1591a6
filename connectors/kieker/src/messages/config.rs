//! The settings in the URI of a medium that may carry the messages of Kieker's `AmqpWriter`.

use std::path::PathBuf;

use baler_common::transport::uri::{Uri, UriError};

use crate::container::TimeUnit;

/// The settings of such messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MessageConfig {
    /// The file for the strings of the writers.
    pub(super) registry_file: PathBuf,
    /// An `.irl` file, or a folder of them, with further record types.
    pub(super) schema: Option<PathBuf>,
    /// The unit of times, if the metadata record's does not count.
    pub(super) time_unit: Option<TimeUnit>,
}

/// The settings as they were given.
pub(super) struct Settings {
    pub(super) is_kieker_plain: bool,
    registry_file: Option<PathBuf>,
    schema: Option<PathBuf>,
    time_unit: Option<TimeUnit>,
    is_stream: bool,
}

impl Settings {
    pub(super) fn take(uri: &mut Uri) -> Result<Self, UriError> {
        let formats = [("chunks", false), ("kieker-plain", true)];
        // The medium takes the type of its queue.
        let queue_type = uri.clone().take_text("queue_type");
        Ok(Self {
            is_kieker_plain: uri.take_choice("format", &formats)?.unwrap_or(false),
            registry_file: uri.take_path("registry_file"),
            schema: uri.take_path("schema"),
            time_unit: uri.take_choice("time_unit", &TimeUnit::CHOICES)?,
            is_stream: queue_type.as_deref() == Some("stream"),
        })
    }

    /// Returns the settings if the messages are Kieker's, and refuses those that exclude each other.
    pub(super) fn check(self) -> Result<Option<MessageConfig>, UriError> {
        let registry_file = match (self.is_kieker_plain, self.registry_file) {
            (true, Some(path)) => path,
            (false, None) => {
                let schema = self.schema.map(|_| {
                    let why = "chunks have the schemas of their records";
                    UriError::conflict("schema", "format=chunks", why)
                });
                let time_unit = self.time_unit.map(|_| {
                    let why = "times in chunks are nanoseconds";
                    UriError::conflict("time_unit", "format=chunks", why)
                });
                return schema.or(time_unit).map_or(Ok(None), Err);
            }
            _ => {
                let what = "format=kieker-plain and registry_file belong together: one of them";
                return Err(UriError::missing(what));
            }
        };
        if self.is_stream {
            let why = "Kieker's strings are kept for a queue, whose messages come once";
            let first = "format=kieker-plain";
            return Err(UriError::conflict(first, "queue_type=stream", why));
        }
        Ok(Some(MessageConfig {
            registry_file,
            schema: self.schema,
            time_unit: self.time_unit,
        }))
    }
}
