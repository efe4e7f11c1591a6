//! Readers that only look.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Duration;

use baler_common::transport::uri::UriError;

use super::{AmqpConfig, ExchangeKind, QueueArguments, QueueType, Start};

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
        self.tap = true;
        self.position_file = None;
        if self.queue_type == QueueType::Stream && self.names.queue.is_some() {
            self.start = if from_start {
                Start::First
            } else {
                Start::Next
            };
            return Ok(self);
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
}

#[cfg(test)]
mod tests {
    use baler_common::transport::uri::Uri;

    use super::*;

    fn tap(text: &str, from_start: bool) -> Result<AmqpConfig, UriError> {
        AmqpConfig::from_uri(Uri::parse(text).unwrap())?.tap(from_start)
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
    }
}
