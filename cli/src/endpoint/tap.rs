//! A medium to look at only.

use baler_common::transport::ChunkReader;
#[cfg(feature = "amqp")]
use baler_connector_amqp::{AmqpConfig, AmqpReader};
use baler_connector_file::{FileReader, FileReaderConfig, Start as FileStart};
#[cfg(feature = "kafka")]
use baler_connector_kafka::{KafkaConfig, KafkaReader};

use super::{OpenReader, bad_uri, parse, unknown_scheme};
use crate::exit::Failure;

/// Opens a medium for looking only: nothing is committed, nobody else gets less or is held up.
///
/// # Errors
///
/// The URI is wrong, the medium cannot be opened, or whoever reads from it takes from others.
pub(crate) fn open_tap(text: &str, from_start: bool) -> Result<OpenReader, Failure> {
    let (uri, endpoint) = parse(text)?;
    let wrong = |error| bad_uri(&endpoint, &error);
    let reader: Box<dyn ChunkReader> = match uri.scheme() {
        "file" => {
            let mut config = FileReaderConfig::from_uri(uri).map_err(wrong)?;
            // Reading alone leaves no trace; a named consumer's position would move.
            config.consumer = None;
            config.follow = true;
            config.from = if from_start {
                FileStart::Oldest
            } else {
                FileStart::End
            };
            Box::new(FileReader::open(config)?)
        }
        #[cfg(feature = "kafka")]
        "kafka" => {
            let config = KafkaConfig::from_uri(uri).map_err(|error| bad_uri(&endpoint, &error))?;
            Box::new(KafkaReader::open(config.tap(from_start))?)
        }
        #[cfg(feature = "amqp")]
        "amqp" | "amqps" => {
            let config = AmqpConfig::from_uri(uri).and_then(|config| config.tap(from_start));
            Box::new(AmqpReader::new(config.map_err(wrong)?)?)
        }
        "tcp" => {
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
    })
}
