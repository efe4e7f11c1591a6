//! One reader of a medium.

use std::net::SocketAddr;

use baler_common::transport::ChunkReader;
#[cfg(feature = "amqp")]
use baler_connector_amqp::AmqpReader;
use baler_connector_file::FileReader;
#[cfg(feature = "kafka")]
use baler_connector_kafka::{KafkaConfig, KafkaReader};
use baler_connector_null::NullReader;
use baler_connector_tcp::TcpReader;

use super::medium::{Medium, Readership};
use super::parse;
use crate::exit::Failure;
use crate::output;

/// A reader, opened.
pub(crate) struct OpenReader {
    pub(crate) reader: Box<dyn ChunkReader>,
    /// The address on which it waits for senders, if it does.
    pub(crate) listens_on: Option<SocketAddr>,
    /// The URI without its secrets.
    pub(crate) endpoint: String,
    pub(crate) readership: Readership,
    /// Whether settling a chunk changes nothing at the medium.
    pub(crate) only_looks: bool,
}

/// Opens the receiving end of a medium. `follow` makes a source that would end wait for more.
///
/// # Errors
///
/// The URI is wrong, or the medium cannot be opened.
pub(crate) fn open_reader(text: &str, follow: bool) -> Result<OpenReader, Failure> {
    let (uri, endpoint) = parse(text)?;
    let medium = Medium::new(uri, &endpoint, false)?;
    open(medium, endpoint, follow)
}

/// Opens a medium.
///
/// # Errors
///
/// It cannot be opened.
pub(super) fn open(medium: Medium, endpoint: String, follow: bool) -> Result<OpenReader, Failure> {
    let mut listens_on = None;
    let readership = medium.readership();
    let reader: Box<dyn ChunkReader> = match medium {
        #[cfg(feature = "amqp")]
        Medium::Amqp(config) => Box::new(AmqpReader::new(*config)?),
        Medium::File(mut config) => {
            config.follow |= follow;
            Box::new(FileReader::open(config)?)
        }
        #[cfg(feature = "kafka")]
        Medium::Kafka(config) => {
            listens_on = embedded_address(&config);
            Box::new(KafkaReader::open(*config)?)
        }
        Medium::Null(config) => Box::new(NullReader::new(config)),
        Medium::Tcp(config) => {
            let is_open_to_all = config.is_open_to_all();
            let reader = TcpReader::bind(config)?;
            let address = reader.local_addr();
            if is_open_to_all && !address.ip().is_loopback() {
                output::say(format_args!(
                    "warning: whoever reaches {address} can send records, and read those on their \
                     way; listen on 127.0.0.1, demand a token (token_file=FILE or BALER_TOKEN), or \
                     use tcp+tls:"
                ));
            }
            listens_on = Some(address);
            Box::new(reader)
        }
    };
    Ok(OpenReader {
        reader,
        listens_on,
        endpoint,
        readership,
        only_looks: false,
    })
}

/// Where the cluster inside this process listens, if there is one.
#[cfg(feature = "kafka")]
pub(super) fn embedded_address(config: &KafkaConfig) -> Option<SocketAddr> {
    let cluster = config.embedded_cluster()?;
    cluster.bootstrap_servers().parse().ok()
}
