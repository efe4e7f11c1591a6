//! One message a record, with the client library alone: what chunks are measured against.

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Instant;

use baler_common::transport::{Failure, TransportError};
use lapin::options::{BasicPublishOptions, ConfirmSelectOptions};
use lapin::types::ShortString;
use lapin::{BasicProperties, Channel, Confirmation};
use tokio::runtime::{Builder, Runtime};

use crate::config::AmqpConfig;
use crate::connect::{Connected, connect};
use crate::error;

/// Kept across a restart of the broker (AMQP 0.9.1, `delivery-mode`).
const PERSISTENT: u8 = 2;

/// Publishes messages without Baler's chunks, threads and headers, for measurements.
///
/// It makes the promises that [`AmqpWriter`](crate::AmqpWriter) makes: persistent, mandatory
/// messages, each confirmed by the broker, as many unconfirmed as the window of the URI has.
/// Publishes are pipelined, which is the best that the client library does; a window of one message
/// awaits each before the next.
///
/// It does not connect again: whoever measures wants to know. It belongs to one thread, and its calls
/// block.
pub struct PlainPublisher {
    runtime: Runtime,
    /// Ends with this value.
    connected: Connected,
    endpoint: Box<str>,
    exchange: ShortString,
    routing_key: ShortString,
    most: usize,
    window: VecDeque<Slot>,
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

type Publishing = Pin<Box<dyn Future<Output = lapin::Result<Confirmation>>>>;

/// A publish that was polled once, which put its frames in order behind those before.
enum Slot {
    Waiting(Publishing),
    Answered(Result<(), Failure>),
}

impl Slot {
    async fn start(mut publishing: Publishing) -> Self {
        match poll_fn(|cx| Poll::Ready(publishing.as_mut().poll(cx))).await {
            Poll::Pending => Self::Waiting(publishing),
            Poll::Ready(result) => Self::Answered(confirmed(result)),
        }
    }

    async fn answer(self) -> Result<(), Failure> {
        match self {
            Self::Waiting(publishing) => confirmed(publishing.await),
            Self::Answered(result) => result,
        }
    }

    /// Its answer, if it is there; it is asked no more then.
    async fn look(&mut self) -> Option<Result<(), Failure>> {
        match self {
            Self::Answered(result) => Some(result.clone()),
            Self::Waiting(publishing) => {
                match poll_fn(|cx| Poll::Ready(publishing.as_mut().poll(cx))).await {
                    Poll::Pending => None,
                    Poll::Ready(result) => Some(confirmed(result)),
                }
            }
        }
    }
}

fn confirmed(result: lapin::Result<Confirmation>) -> Result<(), Failure> {
    match result.map_err(|error| error::of_use("publish to", &error))? {
        Confirmation::Ack(None) => Ok(()),
        other => {
            let message = format!("a message was not taken: {other:?}");
            Err(Failure::last("publish to", message))
        }
    }
}

async fn publish_one(
    channel: Channel,
    exchange: ShortString,
    routing_key: ShortString,
    payload: Vec<u8>,
) -> lapin::Result<Confirmation> {
    let options = BasicPublishOptions {
        mandatory: true,
        immediate: false,
    };
    let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
    let publishing = channel.basic_publish(exchange, routing_key, options, &payload, properties);
    publishing.await?.await
}

impl PlainPublisher {
    /// Connects and declares what the settings say; `awaiting` makes it await each message.
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
        let (exchange, routing_key) = config.names.target();
        let most = match awaiting {
            true => 1,
            false => usize::try_from(config.window.chunks.get()).unwrap_or(usize::MAX),
        };
        Ok(Self {
            runtime,
            connected,
            exchange: exchange.into(),
            routing_key: routing_key.into(),
            endpoint: endpoint.into(),
            most,
            window: VecDeque::new(),
            confirmed: 0,
        })
    }

    fn open(config: &AmqpConfig, by: Instant) -> Result<(Runtime, Connected), Failure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Failure::retry("set up", error.to_string()))?;
        let connecting = async {
            let connected = connect(config, "baler plain", None, by).await?;
            let selecting = connected
                .channel
                .confirm_select(ConfirmSelectOptions::default());
            selecting
                .await
                .map_err(|error| error::of_setup("set up", &error))?;
            Ok(connected)
        };
        let connected = runtime.block_on(connecting)?;
        Ok((runtime, connected))
    }

    /// Publishes each of these as a message, in order; waits while the window is full.
    ///
    /// # Errors
    ///
    /// The connection is gone, or a message was refused.
    pub fn publish(&mut self, payloads: &[Vec<u8>]) -> Result<(), TransportError> {
        let Self {
            runtime,
            connected,
            exchange,
            routing_key,
            most,
            window,
            confirmed,
            ..
        } = self;
        let publishing = async {
            for payload in payloads {
                while window.len() >= *most
                    && let Some(oldest) = window.pop_front()
                {
                    oldest.answer().await?;
                    *confirmed += 1;
                }
                let channel = connected.channel.clone();
                let message = publish_one(
                    channel,
                    exchange.clone(),
                    routing_key.clone(),
                    payload.clone(),
                );
                window.push_back(Slot::start(Box::pin(message)).await);
                if *most == 1
                    && let Some(only) = window.pop_front()
                {
                    only.answer().await?;
                    *confirmed += 1;
                }
            }
            // Whatever is answered already.
            while let Some(oldest) = window.front_mut() {
                let Some(answer) = oldest.look().await else {
                    break;
                };
                window.pop_front();
                answer?;
                *confirmed += 1;
            }
            Ok(())
        };
        let published: Result<(), Failure> = runtime.block_on(publishing);
        published.map_err(|failure| failure.at(&self.endpoint))
    }

    /// How many messages the broker has confirmed, as far as was looked.
    pub fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Waits until everything is confirmed, `by` at most.
    ///
    /// # Errors
    ///
    /// It is not, or something was refused.
    pub fn settle(&mut self, by: Instant) -> Result<(), TransportError> {
        let (window, confirmed) = (&mut self.window, &mut self.confirmed);
        let settling = async {
            while let Some(oldest) = window.pop_front() {
                oldest.answer().await?;
                *confirmed += 1;
            }
            Ok(())
        };
        let settled = self
            .runtime
            .block_on(async { tokio::time::timeout_at(by.into(), settling).await });
        let late = || Failure::retry("publish to", "not everything was confirmed in time");
        let settled: Result<(), Failure> = settled.unwrap_or_else(|_| Err(late()));
        settled.map_err(|failure| failure.at(&self.endpoint))
    }
}
