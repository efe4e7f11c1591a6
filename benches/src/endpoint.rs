//! URIs to the ends of connectors.

use baler_common::transport::uri::Uri;
use baler_common::transport::{ChunkReader, ChunkWriter};
use baler_connector_amqp::{AmqpConfig, AmqpReader, AmqpWriter};
use baler_connector_file::{FileReader, FileReaderConfig, FileWriter, FileWriterConfig};
use baler_connector_kafka::{KafkaConfig, KafkaReader, KafkaWriter};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};

use crate::failure::Failure;

fn wrong<E: std::fmt::Display>(error: E) -> Failure {
    Failure::cannot("use the URI")(error)
}

fn unknown(uri: &str) -> Failure {
    Failure::new(format!("{uri}: no medium of this program"))
}

/// A writer to the medium.
///
/// # Errors
///
/// The URI is wrong.
pub(crate) fn writer(uri: &str) -> Result<Box<dyn ChunkWriter>, Failure> {
    let parsed = Uri::parse(uri).map_err(wrong)?;
    Ok(match parsed.scheme() {
        "amqp" => Box::new(AmqpWriter::new(
            AmqpConfig::from_uri(parsed).map_err(wrong)?,
        )),
        "file" => Box::new(FileWriter::new(
            FileWriterConfig::from_uri(parsed).map_err(wrong)?,
        )),
        "kafka" => Box::new(KafkaWriter::new(
            KafkaConfig::from_uri(parsed).map_err(wrong)?,
        )),
        "tcp" => Box::new(TcpWriter::new(TcpConfig::from_uri(parsed).map_err(wrong)?)),
        _ => return Err(unknown(uri)),
    })
}

/// A reader of the medium, opened.
///
/// # Errors
///
/// The URI is wrong, or the medium cannot be opened.
pub(crate) fn reader(uri: &str) -> Result<Box<dyn ChunkReader>, Failure> {
    let parsed = Uri::parse(uri).map_err(wrong)?;
    let open = Failure::cannot("open the reader");
    Ok(match parsed.scheme() {
        "amqp" => {
            let config = AmqpConfig::from_uri(parsed).map_err(wrong)?;
            Box::new(AmqpReader::new(config).map_err(|error| open(error.to_string()))?)
        }
        "file" => {
            let config = FileReaderConfig::from_uri(parsed).map_err(wrong)?;
            Box::new(FileReader::open(config).map_err(|error| open(error.to_string()))?)
        }
        "kafka" => {
            let config = KafkaConfig::from_uri(parsed).map_err(wrong)?;
            Box::new(KafkaReader::open(config).map_err(|error| open(error.to_string()))?)
        }
        "tcp" => {
            let config = TcpConfig::from_uri(parsed).map_err(wrong)?;
            Box::new(TcpReader::bind(config).map_err(|error| open(error.to_string()))?)
        }
        _ => return Err(unknown(uri)),
    })
}
