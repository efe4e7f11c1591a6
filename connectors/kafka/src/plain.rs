//! One message for each record, with the client library alone. Measurements compare chunks with it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, TryRecvError, channel};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use baler_common::transport::{Failure, TransportError};
use rdkafka::client::ClientContext;
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _, ProducerContext};

use crate::client;
use crate::config::KafkaConfig;

/// The most messages and KiB in the client's queue: its own default for the number, and enough memory
/// for them. Its own default of 1 GiB is slower.
const QUEUE: [(&str, &str); 2] = [
    ("queue.buffering.max.messages", "100000"),
    ("queue.buffering.max.kbytes", "65536"),
];

/// How long to serve delivery reports while the queue is full or the sender waits for the last ones.
const PAUSE: Duration = Duration::from_millis(1);

/// How long one call of poll lasts in the thread that serves delivery reports. It serves every report
/// at once. It spins for the last fraction of a millisecond, so a longer call is cheaper.
const POLL: Duration = Duration::from_millis(100);

/// How long the sender waits for one message.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends messages without Baler's chunks, threads, keys and headers, for measurements.
///
/// It makes the promises of [`KafkaWriter`](crate::KafkaWriter): `acks=all`, idempotent, unless the
/// URI says otherwise. librdkafka makes the batches, with its own `linger.ms`, and the thread that
/// sends also serves delivery reports. That is the best that the client does.
///
/// A producer that awaits each message is the naive one. It has no linger, and another thread serves
/// the delivery report and wakes the sender.
///
/// It belongs to one thread, and its calls block.
pub struct PlainProducer {
    client: Arc<BaseProducer<Reports>>,
    topic: Box<str>,
    endpoint: Box<str>,
    /// Its drop ends the thread that serves reports. `None` if the sender serves them.
    serving: Option<Sender<()>>,
    sent: u64,
}

impl fmt::Debug for PlainProducer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlainProducer")
            .field("endpoint", &self.endpoint)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

/// Counts delivery reports.
#[derive(Debug)]
struct Reports {
    delivered: AtomicU64,
    failed: AtomicU64,
    /// The sender, if it waits for each report.
    awaiting: Option<Thread>,
}

impl ClientContext for Reports {}

impl ProducerContext for Reports {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let count = match result {
            Ok(_) => &self.delivered,
            Err(_) => &self.failed,
        };
        count.fetch_add(1, Ordering::Relaxed);
        if let Some(thread) = &self.awaiting {
            thread.unpark();
        }
    }
}

/// Serves reports on a thread of its own until the other end of the channel is dropped.
fn serve(client: &Arc<BaseProducer<Reports>>) -> Result<Sender<()>, Failure> {
    let (serving, ended) = channel::<()>();
    let client = Arc::clone(client);
    let started = thread::Builder::new()
        .name("baler-kafka-plain".into())
        .spawn(move || {
            while ended.try_recv() != Err(TryRecvError::Disconnected) {
                client.poll(POLL);
            }
        });
    match started {
        Ok(_) => Ok(serving),
        Err(error) => Err(Failure::last("open", error.to_string())),
    }
}

impl PlainProducer {
    /// A producer to the configured topic, which connects by itself. With `awaiting` it awaits each
    /// message.
    ///
    /// # Errors
    ///
    /// librdkafka refuses the settings.
    pub fn new(config: &KafkaConfig, awaiting: bool) -> Result<Self, TransportError> {
        let opened = config.producer(false).and_then(|mut settings| {
            for (name, value) in QUEUE {
                settings.set(name, value);
            }
            if awaiting {
                settings.set("linger.ms", "0");
            }
            let reports = Reports {
                delivered: AtomicU64::new(0),
                failed: AtomicU64::new(0),
                awaiting: awaiting.then(thread::current),
            };
            let client = Arc::new(client::producer(&settings, reports)?);
            let serving = awaiting.then(|| serve(&client)).transpose()?;
            Ok((client, serving))
        });
        let (client, serving) = opened.map_err(|failure| failure.at(&config.endpoint))?;
        Ok(Self {
            client,
            serving,
            topic: config.topic.clone(),
            endpoint: config.endpoint.clone(),
            sent: 0,
        })
    }

    /// Sends each payload as a message, in order. It waits while the client's queue is full.
    ///
    /// # Errors
    ///
    /// The client refuses a message, or one was not delivered.
    pub fn publish(&mut self, payloads: &[Vec<u8>]) -> Result<(), TransportError> {
        for payload in payloads {
            self.send(payload)
                .map_err(|failure| failure.at(&self.endpoint))?;
            if self.serving.is_some() {
                self.settle(Instant::now() + CONFIRM_TIMEOUT)?;
            }
        }
        if self.serving.is_none() {
            self.client.poll(Duration::ZERO);
        }
        self.check()
    }

    fn send(&mut self, payload: &[u8]) -> Result<(), Failure> {
        let mut message: BaseRecord<'_, (), [u8], ()> =
            BaseRecord::to(&self.topic).payload(payload);
        while let Err((error, refused)) = self.client.send(message) {
            if error.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                return Err(Failure::retry("write to", error.to_string()));
            }
            message = refused;
            self.pause();
        }
        self.sent += 1;
        Ok(())
    }

    /// Waits shortly for delivery reports.
    fn pause(&self) {
        match &self.serving {
            Some(_) => thread::park_timeout(PAUSE),
            None => self.client.poll(PAUSE),
        }
    }

    fn check(&self) -> Result<(), TransportError> {
        match self.client.context().failed.load(Ordering::Relaxed) {
            0 => Ok(()),
            failed => {
                let message = format!("{failed} messages were not delivered");
                Err(Failure::retry("write to", message).at(&self.endpoint))
            }
        }
    }

    /// How many messages are delivered, by the reports so far.
    pub fn confirmed(&self) -> u64 {
        self.client.context().delivered.load(Ordering::Relaxed)
    }

    /// Waits until all messages are delivered, until `by` at most.
    ///
    /// # Errors
    ///
    /// They are not.
    pub fn settle(&mut self, by: Instant) -> Result<(), TransportError> {
        while self.confirmed() < self.sent {
            self.check()?;
            if Instant::now() >= by {
                let failure = Failure::retry("write to", "not everything was delivered in time");
                return Err(failure.at(&self.endpoint));
            }
            self.pause();
        }
        self.check()
    }
}
