//! What a URI says of a medium's receiving end, before anything is opened.

use baler_analysis::SourceReport;
use baler_common::transport::uri::Uri;
#[cfg(feature = "amqp")]
use baler_connector_amqp::AmqpConfig;
use baler_connector_file::FileReaderConfig;
#[cfg(feature = "kafka")]
use baler_connector_kafka::KafkaConfig;
use baler_connector_null::NullConfig;
use baler_connector_tcp::TcpConfig;

use super::{JSON_LINES, KIEKER_LOG, bad_uri, tcp, unknown_scheme};
use crate::exit::Failure;

/// A medium to receive from, by its connector's settings.
#[derive(Debug)]
pub(super) enum Medium {
    #[cfg(feature = "amqp")]
    Amqp(Box<AmqpConfig>),
    File(FileReaderConfig),
    #[cfg(feature = "kafka")]
    Kafka(Box<KafkaConfig>),
    Null(NullConfig),
    Tcp(TcpConfig),
}

/// Which processes read the chunks of a medium.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readership {
    /// This one alone.
    OneProcess,
    /// Perhaps others: members of a group, or competing consumers of a queue.
    #[cfg(any(feature = "amqp", feature = "kafka"))]
    Shared,
}

impl Readership {
    /// How many chunks are missing: no producer gave them up, no other process can have them, and
    /// they do not come again.
    pub(crate) fn missing(self, report: &SourceReport) -> u64 {
        let is_exact = self == Self::OneProcess;
        let gaps = report.gaps.iter().filter(|gap| is_exact && !gap.explained);
        let missing = gaps.fold(0, |sum: u64, gap| sum.saturating_add(gap.chunks));
        missing.saturating_sub(report.given_back)
    }
}

impl Medium {
    pub(super) fn readership(&self) -> Readership {
        match self {
            #[cfg(feature = "amqp")]
            Self::Amqp(_) => Readership::Shared,
            #[cfg(feature = "kafka")]
            Self::Kafka(_) => Readership::Shared,
            Self::File(_) | Self::Null(_) | Self::Tcp(_) => Readership::OneProcess,
        }
    }

    /// Reads the settings; `logs` says whether a log could stand here as well.
    ///
    /// # Errors
    ///
    /// The scheme is none of a medium, or a setting is wrong.
    pub(super) fn new(uri: Uri, endpoint: &str, logs: bool) -> Result<Self, Failure> {
        let wrong = |error| bad_uri(endpoint, &error);
        Ok(match uri.scheme() {
            #[cfg(feature = "amqp")]
            "amqp" | "amqps" => Self::Amqp(Box::new(AmqpConfig::from_uri(uri).map_err(wrong)?)),
            "file" => Self::File(FileReaderConfig::from_uri(uri).map_err(wrong)?),
            #[cfg(feature = "kafka")]
            "kafka" | "kafka+mock" => {
                let config = KafkaConfig::from_uri(uri);
                Self::Kafka(Box::new(config.map_err(|error| bad_uri(endpoint, &error))?))
            }
            "null" => Self::Null(NullConfig::from_uri(uri).map_err(wrong)?),
            "tcp" | "tcp+tls" => Self::Tcp(tcp(uri, endpoint)?),
            // Asked for where only media can be: it is known, but not there.
            KIEKER_LOG => {
                return Err(Failure::configuration(format!(
                    "{endpoint}: a log has no chunks; send it to a medium with send --from \
                     {KIEKER_LOG}:DIR"
                )));
            }
            JSON_LINES => {
                return Err(Failure::configuration(format!(
                    "{endpoint}: lines are no chunks; send them to a medium with send --from \
                     {JSON_LINES}:FILE"
                )));
            }
            scheme => return Err(unknown_scheme(scheme, logs)),
        })
    }
}
