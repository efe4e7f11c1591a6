//! Writing one message a record with rdkafka alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baler_rig::plain_row::Rows;
use rdkafka::client::ClientContext;
use rdkafka::config::{ClientConfig, FromClientConfigAndContext as _};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{
    BaseProducer, BaseRecord, Producer as _, ProducerContext, ThreadedProducer,
};

use super::super::case::Way;
use super::super::task::Writing;
use super::{Calls, Confirmed, Writes};
use crate::failure::Failure;

/// Counts delivery reports.
#[derive(Debug, Default)]
struct Reports {
    delivered: AtomicU64,
    failed: AtomicU64,
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
    }
}

/// A producer whose delivery reports the sending thread serves, or one with a thread for them.
enum Client {
    Polled(BaseProducer<Reports>),
    Threaded(ThreadedProducer<Reports>),
}

/// After so many messages the sending thread serves delivery reports.
const POLL_EVERY: u64 = 1_000;

/// How long to wait when the client's queue is full, and for the last reports.
const PAUSE: Duration = Duration::from_millis(1);

/// How long a repetition may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The client with the promises that Baler gives: every message confirmed by all replicas, written
/// once and in order; its batching is librdkafka's own, after 5 ms at most.
pub(super) struct Writer<'a> {
    client: Client,
    topic: &'a str,
    awaiting: bool,
    calls: &'a Calls,
    sent: u64,
    bytes: u64,
}

fn config(task: &Writing) -> ClientConfig {
    let mut config = ClientConfig::new();
    config
        .set("bootstrap.servers", &task.address)
        .set("acks", "all")
        .set("enable.idempotence", "true")
        // Nobody who awaits each message wants it to wait for others.
        .set(
            "linger.ms",
            if task.way == Way::Awaiting { "0" } else { "5" },
        )
        // 1 GiB, the default, is slower (and 100,000 messages are the bound here).
        .set("queue.buffering.max.kbytes", "65536");
    config
}

impl<'a> Writer<'a> {
    pub(super) fn polled(task: &'a Writing, calls: &'a Calls) -> Result<Self, Failure> {
        let client = BaseProducer::from_config_and_context(&config(task), Reports::default());
        let client = client.map_err(Failure::cannot("make a producer"))?;
        Ok(Self::new(Client::Polled(client), task, calls))
    }

    pub(super) fn threaded(task: &'a Writing, calls: &'a Calls) -> Result<Self, Failure> {
        let client = ThreadedProducer::from_config_and_context(&config(task), Reports::default());
        let client = client.map_err(Failure::cannot("make a producer"))?;
        Ok(Self::new(Client::Threaded(client), task, calls))
    }

    fn new(client: Client, task: &'a Writing, calls: &'a Calls) -> Self {
        Self {
            client,
            topic: &task.name,
            awaiting: task.way == Way::Awaiting,
            calls,
            sent: 0,
            bytes: 0,
        }
    }

    fn reports(&self) -> &Reports {
        match &self.client {
            Client::Polled(client) => client.context(),
            Client::Threaded(client) => client.context(),
        }
    }

    /// Serves delivery reports, or lets the client's thread do it, for so long.
    fn serve(&self, time: Duration) {
        match &self.client {
            Client::Polled(client) => client.poll(time),
            Client::Threaded(_) if time.is_zero() => {}
            Client::Threaded(_) => std::thread::park_timeout(time),
        }
    }

    /// Hands a row to the client's queue; waits while that is full.
    fn send(&self, row: &[u8]) -> Result<(), Failure> {
        let mut message: BaseRecord<'_, (), [u8], ()> = BaseRecord::to(self.topic).payload(row);
        loop {
            let result = match &self.client {
                Client::Polled(client) => client.send(message),
                Client::Threaded(client) => client.send(message),
            };
            let Err((error, refused)) = result else {
                return Ok(());
            };
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                return Err(Failure::cannot("produce")(error));
            }
            message = refused;
            self.serve(PAUSE);
        }
    }

    /// Waits until everything sent is confirmed.
    fn settle(&self) -> Result<(), Failure> {
        let by = Instant::now() + PATIENCE;
        let reports = self.reports();
        while reports.delivered.load(Ordering::Relaxed) < self.sent {
            let failed = reports.failed.load(Ordering::Relaxed);
            if failed > 0 || Instant::now() > by {
                return Err(Failure::new(format!(
                    "{failed} messages failed, others have no report"
                )));
            }
            self.serve(PAUSE);
        }
        Ok(())
    }
}

impl Writes for Writer<'_> {
    fn write(&mut self, records: u64) -> Result<(), Failure> {
        let rows = Rows::new(self.calls.workload());
        let mut row = Vec::new();
        for call in self.calls.take(records) {
            rows.write(call, &mut row);
            self.send(&row)?;
            self.sent += 1;
            self.bytes += u64::try_from(row.len()).unwrap_or(u64::MAX);
            if self.awaiting {
                self.settle()?;
            } else if self.sent.is_multiple_of(POLL_EVERY) {
                self.serve(Duration::ZERO);
            }
        }
        self.settle()
    }

    fn confirmed(&self) -> Confirmed {
        let delivered = self.reports().delivered.load(Ordering::Relaxed);
        Confirmed {
            records: delivered,
            messages: delivered,
            payload_bytes: self.bytes,
        }
    }
}
