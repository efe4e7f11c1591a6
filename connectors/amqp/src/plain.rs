//! One message for each record, with the client library alone. Measurements compare chunks with it.

use std::fmt;
use std::time::Instant;

use baler_common::number::to_usize;
use baler_common::transport::{Failure, TransportError};
use lapin::{BasicProperties, Confirmation as Answer};
use tokio::runtime::{Builder, Runtime};

use crate::client::{self, Connected};
use crate::config::AmqpConfig;
use crate::error;
use crate::headers::PERSISTENT;
use crate::writer::publish::InFlight;

/// Publishes messages without Baler's chunks, threads and headers, for measurements.
///
/// It makes the promises of [`AmqpWriter`](crate::AmqpWriter): persistent, mandatory messages, each
/// confirmed by the broker. The window of the URI limits the unconfirmed messages. Publishes are
/// pipelined, which is the best that the client library does, unless it awaits each message.
///
/// It does not connect again: the owner measures one connection. It belongs to one thread, and its
/// calls block.
pub struct PlainPublisher {
    runtime: Runtime,
    /// Closed with this value.
    _connected: Connected,
    endpoint: Box<str>,
    window: usize,
    in_flight: InFlight,
    confirmed: u64,
}

impl fmt::Debug for PlainPublisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainPublisher")
            .field("endpoint", &self.endpoint)
            .field("confirmed", &self.confirmed)
            .finish_non_exhaustive()
    }
}

impl PlainPublisher {
    /// Connects and declares. With `awaiting` it awaits each message.
    ///
    /// # Errors
    ///
    /// The broker cannot be reached before `by`, or refuses.
    pub fn connect(
        config: &AmqpConfig,
        awaiting: bool,
        by: Instant,
    ) -> Result<Self, TransportError> {
        let endpoint = config.to_string();
        let opened = Self::open(config, by).map_err(|failure| failure.at(&endpoint))?;
        let (runtime, connected) = opened;
        Ok(Self {
            runtime,
            endpoint: endpoint.into(),
            window: match awaiting {
                // The answer to each message comes before the next message.
                true => 0,
                false => to_usize(config.window.chunks.get()),
            },
            in_flight: InFlight::new(connected.channel.clone(), config),
            _connected: connected,
            confirmed: 0,
        })
    }

    fn open(config: &AmqpConfig, by: Instant) -> Result<(Runtime, Connected), Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::retry("set up", error.to_string()))?;
        let connected = runtime.block_on(client::connect_to_publish(config, "baler plain", by))?;
        Ok((runtime, connected))
    }

    /// Publishes each payload as a message, in order. It waits while the window is full.
    ///
    /// # Errors
    ///
    /// The connection is lost, or a message was refused.
    pub fn publish(&mut self, payloads: &[Vec<u8>]) -> Result<(), TransportError> {
        let published = self.publish_all(payloads);
        published.map_err(|failure| failure.at(&self.endpoint))
    }

    fn publish_all(&mut self, payloads: &[Vec<u8>]) -> Result<(), Failure> {
        for payload in payloads {
            let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
            self.in_flight.publish(0, payload.clone(), properties);
            while self.in_flight.len() > self.window {
                let answer = self.runtime.block_on(self.in_flight.next_answer());
                self.count(answer)?;
            }
        }
        while let Some(answer) = self.in_flight.answer() {
            self.count(answer)?;
        }
        Ok(())
    }

    fn count(&mut self, answer: lapin::Result<Answer>) -> Result<(), Failure> {
        match answer.map_err(|error| error::of_use("publish to", &error))? {
            Answer::Ack(None) => {
                self.confirmed += 1;
                Ok(())
            }
            other => {
                let message = format!("a message was not taken: {other:?}");
                Err(Failure::last("publish to", message))
            }
        }
    }

    /// How many messages the broker has confirmed, by the answers so far.
    pub fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Waits until all messages are confirmed, until `by` at most.
    ///
    /// # Errors
    ///
    /// They are not, or one was refused.
    pub fn settle(&mut self, by: Instant) -> Result<(), TransportError> {
        while self.in_flight.len() > 0 {
            let answering =
                async { tokio::time::timeout_at(by.into(), self.in_flight.next_answer()).await };
            let settled = match self.runtime.block_on(answering) {
                Ok(answer) => self.count(answer),
                Err(_) => {
                    let message = "not everything was confirmed in time";
                    Err(Failure::retry("publish to", message))
                }
            };
            settled.map_err(|failure| failure.at(&self.endpoint))?;
        }
        Ok(())
    }
}
