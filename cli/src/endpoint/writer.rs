//! The sending end of a medium.

use std::num::NonZeroU64;

use baler_common::transport::ChunkWriter;
use baler_connector_file::SyncPolicy;
use baler_connector_file::spool::{Spool, SpoolConfig, SpoolWatch};

use super::{media, parse, wrong};
use crate::args::{SpoolArgs, SpoolSyncChoice};
use crate::exit::Failure;

/// A writer; its owner opens it.
pub(crate) struct Writer {
    pub(crate) writer: Box<dyn ChunkWriter>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
    /// The state of its spool, if it has one.
    pub(crate) spool: Option<SpoolWatch>,
}

/// Creates the sending end of a medium, which is not opened yet.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn writer(text: &str) -> Result<Writer, Failure> {
    let (uri, endpoint) = parse(text)?;
    Ok(Writer {
        writer: media().writer(uri).map_err(wrong(&endpoint))?,
        endpoint,
        spool: None,
    })
}

/// Creates the sending end of a medium, with a spool before it if the flags ask for one. Nothing is
/// touched before it is opened.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn spooled_writer(text: &str, args: &SpoolArgs) -> Result<Writer, Failure> {
    let mut writer = writer(text)?;
    let Some(folder) = &args.spool else {
        return Ok(writer);
    };
    let mut config = SpoolConfig::new(folder);
    config.retry.seed = u64::from(std::process::id());
    if let Some(spool_after) = args.spool_after {
        config.spool_after = spool_after;
    }
    if let Some(bytes) = args.spool_bytes {
        config.max_bytes = NonZeroU64::try_from(bytes).unwrap_or(NonZeroU64::MAX);
    }
    config.sync = match args.spool_sync {
        None | Some(SpoolSyncChoice::Fsync) => SyncPolicy::Chunk,
        Some(SpoolSyncChoice::None) => SyncPolicy::None,
    };
    let spool = Spool::new(writer.writer, config);
    writer.spool = Some(spool.watch());
    writer.writer = Box::new(spool);
    Ok(writer)
}
