//! The settings of both sides, from a URI or a file.

use std::str::FromStr;
use std::time::Duration;

#[cfg(feature = "consumer")]
use baler_common::container::{ChunkDecoder, Limits};
use baler_common::transport::Media;
use baler_common::transport::uri::Uri;

use crate::error::Error;
use crate::media::media;

/// The default number of attempts of a chunk, as with the program `baler`.
#[cfg(feature = "consumer")]
const MAX_ATTEMPTS: u32 = 5;

/// The default number of chunks that are received and not settled.
#[cfg(feature = "consumer")]
const DEMAND: usize = 64;

/// The destination of a [`Controller`](crate::Controller), and its settings.
///
/// A URI alone is enough: `"amqp://localhost/?queue=orders".parse()`. With the feature `serde` it
/// is read from files, with times as text:
///
/// ```
/// # #[cfg(feature = "serde")] {
/// let text = r#"
///     uri = "amqp://localhost/?queue=orders"
///     application = "shop"
///     wait_time = "200ms"
/// "#;
/// let config: baler::ControllerConfig = toml::from_str(text)?;
/// assert_eq!(config.application.as_deref(), Some("shop"));
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct ControllerConfig {
    /// The medium.
    pub uri: Uri,
    /// The name of the application in metadata records.
    #[cfg_attr(feature = "serde", serde(default))]
    pub application: Option<Box<str>>,
    /// The most records of a chunk; by default as in
    /// [`ControllerBuilder`](baler_monitoring::ControllerBuilder::chunk_records).
    #[cfg_attr(feature = "serde", serde(default))]
    pub chunk_records: Option<usize>,
    /// How long a record waits for its chunk to fill; by default as in
    /// [`ControllerBuilder`](baler_monitoring::ControllerBuilder::wait_time).
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "text::duration"))]
    pub wait_time: Option<Duration>,
    /// The folder in which chunks wait while the medium is away.
    #[cfg(feature = "spool")]
    #[cfg_attr(feature = "serde", serde(default))]
    pub spool: Option<std::path::PathBuf>,
    /// The available media; by default the media of this build.
    #[cfg_attr(feature = "serde", serde(skip, default = "media"))]
    pub media: Media,
}

impl ControllerConfig {
    /// Sends to the medium of this URI.
    pub fn new(uri: Uri) -> Self {
        Self {
            uri,
            application: None,
            chunk_records: None,
            wait_time: None,
            #[cfg(feature = "spool")]
            spool: None,
            media: media(),
        }
    }
}

/// The source of a [`Consumer`](crate::Consumer), and its settings.
///
/// A URI alone is enough: `"kafka://host/orders?group.id=billing".parse()`. With the feature
/// `serde` it is read from files, with times as text.
#[cfg(feature = "consumer")]
#[derive(Debug, Clone)]
#[cfg_attr(feature = "serde", derive(serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(deny_unknown_fields))]
#[non_exhaustive]
pub struct ConsumerConfig {
    /// The medium.
    pub uri: Uri,
    /// Whether a source with an end, such as a folder, waits for more. Default no.
    #[cfg_attr(feature = "serde", serde(default))]
    pub follow: bool,
    /// End when nothing has arrived for this time while the medium had no more. Default never.
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "text::duration"))]
    pub idle_timeout: Option<Duration>,
    /// The quarantine for chunks that cannot be processed: a folder, or the URI of a medium.
    /// Without one, chunks that do not decode are counted and skipped, and all others stay at the
    /// medium.
    #[cfg_attr(feature = "serde", serde(default))]
    pub quarantine: Option<Box<str>>,
    /// The number of failed attempts after which a chunk goes to the quarantine, if there is one; 0
    /// means never. Default 5.
    #[cfg_attr(feature = "serde", serde(default = "text::max_attempts"))]
    pub max_attempts: u32,
    /// The most chunks that are received and not settled. Default 64.
    #[cfg_attr(feature = "serde", serde(default = "text::demand"))]
    pub demand: usize,
    /// The available media; by default the media of this build.
    #[cfg_attr(feature = "serde", serde(skip, default = "media"))]
    pub media: Media,
    /// Decodes chunks: its limits, and containers, formats and compressions of other crates.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub decoder: ChunkDecoder,
}

#[cfg(feature = "consumer")]
impl ConsumerConfig {
    /// Reads from the medium of this URI.
    pub fn new(uri: Uri) -> Self {
        Self {
            uri,
            follow: false,
            idle_timeout: None,
            quarantine: None,
            max_attempts: MAX_ATTEMPTS,
            demand: DEMAND,
            media: media(),
            decoder: crate::decoder(Limits::default()),
        }
    }
}

/// Implements the conversion from a URI as text.
macro_rules! from_text {
    ($($config:ty),*) => {$(
        impl FromStr for $config {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                Ok(Self::new(Uri::parse(text)?))
            }
        }

        impl TryFrom<&str> for $config {
            type Error = Error;

            fn try_from(text: &str) -> Result<Self, Error> {
                text.parse()
            }
        }

        impl TryFrom<String> for $config {
            type Error = Error;

            fn try_from(text: String) -> Result<Self, Error> {
                text.parse()
            }
        }

        impl TryFrom<&String> for $config {
            type Error = Error;

            fn try_from(text: &String) -> Result<Self, Error> {
                text.parse()
            }
        }
    )*};
}

from_text!(ControllerConfig);
#[cfg(feature = "consumer")]
from_text!(ConsumerConfig);

/// Values in configuration files.
#[cfg(feature = "serde")]
mod text {
    use std::borrow::Cow;
    use std::time::Duration;

    use baler_common::transport::uri::parse_duration;
    use serde::{Deserialize as _, Deserializer, de};

    pub(super) fn duration<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Duration>, D::Error> {
        let text = Cow::<'_, str>::deserialize(deserializer)?;
        let duration = parse_duration(&text);
        duration.map(Some).ok_or_else(|| {
            de::Error::invalid_value(de::Unexpected::Str(&text), &"a time such as 200ms or 5s")
        })
    }

    #[cfg(feature = "consumer")]
    pub(super) const fn max_attempts() -> u32 {
        super::MAX_ATTEMPTS
    }

    #[cfg(feature = "consumer")]
    pub(super) const fn demand() -> usize {
        super::DEMAND
    }
}
