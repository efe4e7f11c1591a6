//! The producer's side: a controller for a medium with a URI.

use std::ops::Deref;

use baler_common::transport::ChunkWriter;
use baler_monitoring::ControllerBuilder;

use crate::config::ControllerConfig;
use crate::error::Error;

/// Sends records to a medium: a [`baler_monitoring::Controller`] that is started by URI.
///
/// It has all methods of that controller, without overhead: `emit`, `install`, `flush`, `stats`,
/// `shutdown`. It is a handle; clones share the collector.
///
/// ```
/// use std::time::Duration;
/// use baler::{Controller, Record};
///
/// #[derive(Record)]
/// struct Order { id: u64, item: String }
///
/// let controller = Controller::to("null:")?;
/// controller.emit(&Order { id: 1, item: "tea".into() });
/// let report = controller.shutdown(Duration::from_secs(5));
/// assert!(report.adds_up());
/// # Ok::<(), baler::Error>(())
/// ```
#[derive(Debug, Clone)]
#[repr(transparent)]
pub struct Controller(baler_monitoring::Controller);

impl Controller {
    /// Starts a controller that sends to this medium, with default settings or those of a
    /// [`ControllerConfig`]. It does not wait for the medium.
    ///
    /// # Errors
    ///
    /// The text is not a URI, no medium of this build has its scheme, or a setting is wrong.
    pub fn to(medium: impl TryInto<ControllerConfig, Error: Into<Error>>) -> Result<Self, Error> {
        Self::with(medium, |builder| builder)
    }

    /// As [`to`](Self::to), with further settings.
    ///
    /// ```
    /// use std::time::Duration;
    /// use baler::Controller;
    ///
    /// let controller = Controller::with("null:", |builder| {
    ///     builder.application("shop").auto_chunks(Duration::from_millis(200))
    /// })?;
    /// # drop(controller);
    /// # Ok::<(), baler::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// As [`to`](Self::to).
    pub fn with(
        medium: impl TryInto<ControllerConfig, Error: Into<Error>>,
        settings: impl FnOnce(ControllerBuilder) -> ControllerBuilder,
    ) -> Result<Self, Error> {
        let config = medium.try_into().map_err(Into::into)?;
        let mut builder = baler_monitoring::Controller::builder(writer(&config)?);
        if let Some(name) = config.application {
            builder = builder.application(name);
        }
        if let Some(records) = config.chunk_records {
            builder = builder.chunk_records(records);
        }
        if let Some(time) = config.wait_time {
            builder = builder.wait_time(time);
        }
        Ok(Self(settings(builder).start()?))
    }
}

impl Deref for Controller {
    type Target = baler_monitoring::Controller;

    #[inline]
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<baler_monitoring::Controller> for Controller {
    fn from(controller: baler_monitoring::Controller) -> Self {
        Self(controller)
    }
}

/// Returns the sending end of the medium, with a spool in front if one is configured.
fn writer(config: &ControllerConfig) -> Result<Box<dyn ChunkWriter>, Error> {
    let made = config.media.writer(config.uri.clone());
    let writer = made.map_err(|source| Error::Setting {
        endpoint: config.uri.to_string().into(),
        source,
    })?;
    #[cfg(feature = "spool")]
    if let Some(folder) = &config.spool {
        let mut spool = baler_connector_file::spool::SpoolConfig::new(folder);
        spool.retry.seed = u64::from(std::process::id());
        return Ok(Box::new(baler_connector_file::spool::Spool::new(
            writer, spool,
        )));
    }
    Ok(writer)
}
