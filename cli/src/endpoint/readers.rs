//! Several readers of a medium.

use std::net::SocketAddr;
use std::num::NonZeroUsize;

use baler_analysis::workers::fan_out;
use baler_common::transport::ChunkReader;
#[cfg(feature = "amqp")]
use baler_connector_amqp::AmqpReader;
#[cfg(feature = "kafka")]
use baler_connector_kafka::KafkaReader;

use super::medium::{Medium, Readership};
use super::parse;
use super::reader::{OpenReader, open};
use crate::exit::Failure;

/// The setting that makes a reader a static member of its group.
#[cfg(feature = "kafka")]
const STATIC_MEMBER: &str = "group.instance.id";

/// Several readers of one endpoint, opened.
pub(crate) struct OpenReaders {
    pub(crate) readers: Vec<Box<dyn ChunkReader>>,
    /// The address on which they wait for senders, if they do.
    pub(crate) listens_on: Option<SocketAddr>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
    pub(crate) readership: Readership,
}

/// Opens several readers of a medium: as many members of a group, or consumers of a queue, where
/// there can be more than one; else one reader whose lanes are handed to several.
///
/// # Errors
///
/// As [`open_reader`](super::open_reader).
pub(crate) fn open_readers(
    text: &str,
    follow: bool,
    count: NonZeroUsize,
) -> Result<OpenReaders, Failure> {
    let (uri, endpoint) = parse(text)?;
    match Medium::new(uri, &endpoint, false)? {
        #[cfg(feature = "amqp")]
        Medium::Amqp(config) => {
            let one = || Ok(Box::new(AmqpReader::new((*config).clone())?) as Box<dyn ChunkReader>);
            each(count, endpoint, Readership::Shared, None, one)
        }
        #[cfg(feature = "kafka")]
        Medium::Kafka(config) => {
            if count.get() > 1 && text.contains(STATIC_MEMBER) {
                return Err(Failure::configuration(format!(
                    "{STATIC_MEMBER} names one member of the group, --workers {count} makes \
                     {count}: leave one of them out"
                )));
            }
            let listens_on = super::reader::embedded_address(&config);
            let one =
                || Ok(Box::new(KafkaReader::open((*config).clone())?) as Box<dyn ChunkReader>);
            each(count, endpoint, Readership::Shared, listens_on, one)
        }
        medium => shared(open(medium, endpoint, follow)?, count),
    }
}

/// A reader of its own for each worker.
#[cfg(any(feature = "amqp", feature = "kafka"))]
fn each(
    count: NonZeroUsize,
    endpoint: String,
    readership: Readership,
    listens_on: Option<SocketAddr>,
    one: impl Fn() -> Result<Box<dyn ChunkReader>, Failure>,
) -> Result<OpenReaders, Failure> {
    Ok(OpenReaders {
        readers: (0..count.get()).map(|_| one()).collect::<Result<_, _>>()?,
        listens_on,
        endpoint,
        readership,
    })
}

/// One reader whose lanes are handed to the workers.
fn shared(open: OpenReader, count: NonZeroUsize) -> Result<OpenReaders, Failure> {
    let readers = match count.get() {
        1 => vec![open.reader],
        _ => fan_out(open.reader, count).map_err(Failure::thread)?,
    };
    Ok(OpenReaders {
        readers,
        listens_on: open.listens_on,
        endpoint: open.endpoint,
        readership: open.readership,
    })
}
