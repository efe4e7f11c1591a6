//! Writing one message a record with lapin alone, as the connector's publisher for measurements does.

use std::time::{Duration, Instant};

use baler_common::transport::uri::Uri;
use baler_connector_amqp::{AmqpConfig, PlainPublisher};
use baler_rig::plain_row::Rows;

use super::super::case::Way;
use super::super::task::Writing;
use super::{Calls, Confirmed, Writes, uri};
use crate::failure::Failure;

/// How many messages may be unconfirmed.
const WINDOW: u32 = 1_024;

/// How many messages are handed over at once.
const AT_A_TIME: usize = 256;

/// How long connecting, and a repetition, may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection with one channel in confirm mode, driven by one thread; persistent, mandatory
/// messages, as Baler's.
pub(super) struct Writer<'a> {
    publisher: PlainPublisher,
    /// Used again and again.
    rows: Vec<Vec<u8>>,
    calls: &'a Calls,
    bytes: u64,
}

impl<'a> Writer<'a> {
    pub(super) fn open(task: &Writing, calls: &'a Calls) -> Result<Self, Failure> {
        let uri = Uri::parse(&format!("{}&window_chunks={WINDOW}", uri(task)));
        let config = uri.and_then(AmqpConfig::from_uri);
        let config = config.map_err(Failure::cannot("use the URI"))?;
        let awaiting = task.way == Way::Awaiting;
        let publisher = PlainPublisher::connect(&config, awaiting, Instant::now() + PATIENCE);
        Ok(Self {
            publisher: publisher.map_err(Failure::cannot("connect to RabbitMQ"))?,
            rows: vec![Vec::new(); AT_A_TIME],
            calls,
            bytes: 0,
        })
    }
}

impl Writes for Writer<'_> {
    fn write(&mut self, records: u64) -> Result<(), Failure> {
        let rows = Rows::new(self.calls.workload());
        let mut calls = self.calls.take(records);
        loop {
            let mut count = 0;
            for (row, call) in self.rows.iter_mut().zip(&mut calls) {
                rows.write(call, row);
                self.bytes += u64::try_from(row.len()).unwrap_or(u64::MAX);
                count += 1;
            }
            if count == 0 {
                break;
            }
            let published = self
                .publisher
                .publish(self.rows.get(..count).unwrap_or_default());
            published.map_err(Failure::cannot("publish"))?;
        }
        let settled = self.publisher.settle(Instant::now() + PATIENCE);
        settled.map_err(Failure::cannot("publish"))
    }

    fn confirmed(&self) -> Confirmed {
        Confirmed {
            records: self.publisher.confirmed(),
            messages: self.publisher.confirmed(),
            payload_bytes: self.bytes,
        }
    }
}
