//! Opens a source: its medium and its quarantine.

use std::io;
use std::num::NonZeroU32;

use baler_analysis::Source;
use baler_analysis::quarantine::MediumQuarantine;
use baler_common::transport::uri::{Uri, UriError};
use baler_common::transport::{OpenReader, TransportError};

use super::Opened;
use crate::config::ConsumerConfig;
use crate::error::Error;

/// The most chunks, and the most bytes, of a quarantine folder; as with the program `baler`. The
/// first chunk that does not fit stays at the medium, and the consumer ends.
#[cfg(feature = "file")]
const MAX_CHUNKS: u64 = 10_000;
#[cfg(feature = "file")]
const MAX_BYTES: u64 = 1 << 30;

/// Opens the medium of a consumer.
pub(super) fn source(config: &ConsumerConfig) -> Result<Opened, Error> {
    let endpoint = || config.uri.to_string().into();
    let setting = |source: UriError| Error::Setting {
        endpoint: endpoint(),
        source,
    };
    let unavailable = |source: TransportError| Error::Open {
        endpoint: endpoint(),
        source,
    };
    let receiver = config.media.receiver(config.uri.clone(), config.follow);
    let open = receiver.map_err(setting)?.open().map_err(unavailable)?;
    let OpenReader {
        reader,
        listens_on,
        warning,
    } = open;
    let source = Source::new(reader)
        .with_demand(config.demand)
        .with_idle_timeout(config.idle_timeout)
        .with_decoder(config.decoder.clone());
    Ok(Opened {
        source: with_quarantine(source, config)?,
        listens_on,
        warning,
    })
}

/// Returns the source with the quarantine of these settings. Without a quarantine there is no limit
/// of attempts either, because the chunk would be lost.
fn with_quarantine(source: Source, config: &ConsumerConfig) -> Result<Source, Error> {
    let Some(place) = config.quarantine.as_deref() else {
        return Ok(source);
    };
    let source = source.with_max_attempts(NonZeroU32::new(config.max_attempts));
    if !config.media.is_named_by(place) {
        return in_folder(source, place).map_err(|source| Error::Quarantine {
            place: place.into(),
            source,
        });
    }
    let uri = Uri::parse(place)?;
    let endpoint = uri.to_string().into();
    let writer = config.media.writer(uri);
    let writer = writer.map_err(|source| Error::Setting { endpoint, source })?;
    Ok(source.with_quarantine(MediumQuarantine::new(writer)))
}

/// Keeps chunks in a folder, and counts there the chunks that crash the process.
#[cfg(feature = "file")]
fn in_folder(source: Source, folder: &str) -> io::Result<Source> {
    use baler_analysis::quarantine::{Attempts, QuarantineFolder};

    let attempts = Attempts::open(folder.as_ref())?;
    let quarantine = QuarantineFolder::new(folder)
        .limited_to(MAX_BYTES)
        .with_most_chunks(MAX_CHUNKS);
    Ok(source.with_quarantine(quarantine).with_attempts(&attempts))
}

#[cfg(not(feature = "file"))]
fn in_folder(_: Source, _: &str) -> io::Result<Source> {
    Err(io::Error::other(
        "a folder needs the feature file of the crate baler; or name a medium by its URI",
    ))
}
