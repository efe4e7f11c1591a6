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
