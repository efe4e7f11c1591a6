//! Readers that only look.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::num::NonZeroU32;
use std::time::Duration;

use baler_common::transport::uri::UriError;

use super::{AmqpConfig, ExchangeKind, QueueArguments, QueueType, Start};

/// What a reader looks at that declares nothing that stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookAt {
    /// An exchange, through a queue of the reader's own.
    Exchange,
    /// A queue without consumers: its chunks are taken and given back.
    Queue,
    /// A stream, beside its readers.
    Stream,
}

impl AmqpConfig {
    /// Makes readers that only look: nobody else gets a chunk less, and nothing is left behind.
    ///
    /// A stream is read beside its readers, from now on or from its start. Of an exchange each
    /// reader gets what is routed from now on by the routing key (by any, where the exchange is a
    /// topic exchange and there is none), through a queue of its own that is exclusive, bounded,
    /// and gone with the connection.
    ///
    /// # Errors
    ///
    /// It is a queue that consumers share, where whoever reads takes from the others; or an
    /// exchange, which keeps nothing, is to be read from its start.
    pub fn tap(mut self, from_start: bool) -> Result<Self, UriError> {
        if self.queue_type == QueueType::Stream && self.names.queue.is_some() {
            return Ok(self.looking_at_stream(if from_start {
                Start::First
            } else {
                Start::Next
            }));
        }
        let Some(exchange) = &self.names.exchange else {
            let why = "whoever reads a queue takes its chunks from the consumers; name the exchange \
                       that feeds it (exchange=name&routing_key=key), or look at a running command \
                       through its --metrics address";
            return Err(UriError::conflict("queue", "a tap", why));
        };
        if from_start {
            let why = "an exchange keeps nothing of what has passed";
            let exchange = format!("exchange={exchange}");
            return Err(UriError::conflict(exchange, "from the start", why));
        }
        self.look_at = Some(LookAt::Exchange);
        // A random name that no other queue has.
        let number = RandomState::new().build_hasher().finish();
        self.names.queue = Some(format!("baler-tap-{number:016x}").into());
        self.names.dead_letter_queue = None;
        self.names.dead_letter_exchange = None;
        self.names.dead_letter_routing_key = None;
        if self.names.exchange_kind == ExchangeKind::Topic && self.names.routing_key.is_empty() {
            self.names.routing_key = "#".into();
        }
        self.queue_type = QueueType::Classic;
        self.arguments = QueueArguments::default();
        // How far a look is behind concerns nobody.
        self.lag_interval = Duration::ZERO;
        Ok(self)
    }

    /// Makes readers that look at what is there, from the oldest chunk on, and declare nothing.
    ///
    /// A stream is read beside its readers. The chunks of a queue are taken and given back, with the
    /// traces that leaves: each is marked as redelivered, and a quorum queue counts a delivery. So a
    /// queue that has consumers is refused when the reader connects. Do not settle what comes of a
    /// queue: [`Verdict::Ack`](baler_common::transport::Verdict::Ack) removes it.
    ///
    /// # Errors
    ///
    /// It is an exchange, which keeps nothing.
    pub fn inspect(mut self) -> Result<Self, UriError> {
        if self.names.queue.is_none() {
            let why = "an exchange keeps nothing of what has passed; name the queue, or tap what \
                       comes from now on";
            return Err(UriError::conflict("exchange", "inspect", why));
        }
        if self.queue_type == QueueType::Stream {
            return Ok(self.looking_at_stream(Start::First));
        }
        self.look_at = Some(LookAt::Queue);
        // A larger chunk would be rejected, and be gone.
        self.max_chunk_bytes = NonZeroU32::MAX;
        Ok(self)
    }

    fn looking_at_stream(mut self, start: Start) -> Self {
        self.look_at = Some(LookAt::Stream);
        self.position_file = None;
        self.start = start;
        self
    }
}

#[cfg(test)]
mod tests {
    use baler_common::transport::uri::Uri;

    use super::*;

    fn tap(text: &str, from_start: bool) -> Result<AmqpConfig, UriError> {
        AmqpConfig::from_uri(Uri::parse(text).unwrap())?.tap(from_start)
    }

    fn inspect(text: &str) -> Result<AmqpConfig, UriError> {
        AmqpConfig::from_uri(Uri::parse(text).unwrap())?.inspect()
    }

    #[test]
    fn queue_that_consumers_share_cannot_be_looked_at() {
        let error = tap("amqp://host?queue=work", false)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("takes its chunks from the consumers"),
            "{error}"
        );
        assert!(error.contains("exchange=name"), "{error}");
    }

    #[test]
    fn exchange_is_looked_at_through_a_queue_of_its_own() {
        let config = tap(
            "amqp://host?exchange=e&queue=work&dead_letter_queue=dead",
            false,
        );
        let config = config.unwrap();
        let queue = config.names.queue.unwrap();
        assert!(queue.starts_with("baler-tap-"), "{queue}");
        assert_eq!(config.names.dead_letter_queue, None);
        let topic = tap("amqp://host?exchange=e&exchange_type=topic", false).unwrap();
        assert_eq!(&*topic.names.routing_key, "#");
        let error = tap("amqp://host?exchange=e", true).unwrap_err().to_string();
        assert!(error.contains("keeps nothing"), "{error}");
    }

    #[test]
    fn stream_is_looked_at_from_now_on_or_from_its_start() {
        let uri = "amqp://host?queue=log&queue_type=stream&position_file=/p";
        let config = tap(uri, false).unwrap();
        assert_eq!((config.start, config.position_file), (Start::Next, None));
        assert_eq!(tap(uri, true).unwrap().start, Start::First);
        let whole = inspect(uri).unwrap();
        assert_eq!((whole.start, whole.position_file), (Start::First, None));
    }

    #[test]
    fn queue_is_inspected_without_a_limit_that_would_reject_and_an_exchange_is_not() {
        let config = inspect("amqp://host?queue=work&exchange=e&max_chunk=1KiB").unwrap();
        assert_eq!(config.look_at, Some(LookAt::Queue));
        assert_eq!(config.max_chunk_bytes, NonZeroU32::MAX);
        let error = inspect("amqp://host?exchange=e").unwrap_err().to_string();
        assert!(error.contains("keeps nothing"), "{error}");
    }
}
