//! A medium to look at only.

use baler_common::transport::ChunkReader;
#[cfg(feature = "amqp")]
use baler_connector_amqp::{AmqpConfig, AmqpReader};
use baler_connector_file::{FileReader, FileReaderConfig, Start as FileStart};
#[cfg(feature = "kafka")]
use baler_connector_kafka::{Browse, KafkaBrowser, KafkaConfig};

use super::{OpenReader, Readership, bad_uri, open_reader, parse, unknown_scheme};
use crate::exit::Failure;

/// Which chunks of a medium are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TapRange {
    /// Those that come from now on.
    FromNow,
    /// Those that the medium still has, and then those that come.
    FromOldest,
    /// Those that the medium has now. Where it can tell, it ends then.
    UntilNow,
}

/// Opens a medium for looking only: nothing is committed, nobody else gets less or is held up.
///
/// # Errors
///
/// The URI is wrong, the medium cannot be opened, or whoever reads from it takes from others.
pub(crate) fn open_tap(text: &str, range: TapRange) -> Result<OpenReader, Failure> {
    let (uri, endpoint) = parse(text)?;
    let wrong = |error| bad_uri(&endpoint, &error);
    // What comes of a queue must go back to it.
    let only_looks = range != TapRange::UntilNow || !uri.scheme().starts_with("amqp");
    let reader: Box<dyn ChunkReader> = match uri.scheme() {
        "file" => {
            let mut config = FileReaderConfig::from_uri(uri).map_err(wrong)?;
            // Reading alone leaves no trace; a named consumer's position would move.
            config.consumer = None;
            config.follow = range != TapRange::UntilNow;
            match range {
                TapRange::FromNow => config.from = FileStart::End,
                TapRange::FromOldest => config.from = FileStart::Oldest,
                TapRange::UntilNow => {}
            }
            Box::new(FileReader::open(config)?)
        }
        #[cfg(feature = "kafka")]
        "kafka" => {
            let config = KafkaConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
            let browse = match range {
                TapRange::FromNow => Browse::FromNow,
                TapRange::FromOldest => Browse::FromOldest,
                TapRange::UntilNow => Browse::UntilNow,
            };
            Box::new(KafkaBrowser::open(config, browse)?)
        }
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => {
            let config = AmqpConfig::from_uri(uri).and_then(|config| match range {
                TapRange::FromNow | TapRange::FromOldest => {
                    config.tap(range == TapRange::FromOldest)
                }
                TapRange::UntilNow => config.inspect(),
            });
            Box::new(AmqpReader::new(config.map_err(wrong)?)?)
        }
        // Its senders keep what is not acknowledged, and there is no other reader.
        "tcp" | "tcp+tls" | "null" | "kafka+mock" if range == TapRange::UntilNow => {
            return open_reader(text, false);
        }
        "tcp" | "tcp+tls" => {
            return Err(Failure::configuration(format!(
                "{endpoint}: what is on a connection cannot be looked at from outside; start the \
                 sender, relay or receiver with --metrics 9464 and use baler tap \
                 http://127.0.0.1:9464"
            )));
        }
        scheme @ ("null" | "kafka+mock") => {
            return Err(Failure::configuration(format!(
                "{endpoint}: nothing of another process passes at {scheme}:; tap a medium, or a \
                 running command by http://host:port"
            )));
        }
        scheme => return Err(unknown_scheme(scheme, false)),
    };
    Ok(OpenReader {
        reader,
        listens_on: None,
        endpoint,
        readership: Readership::OneProcess,
        only_looks,
    })
}
