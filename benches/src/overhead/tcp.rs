//! The probe of an operation with a consumer in another process: the last phase of `MooBench`
//! (Strubel and Wulf, "Refactoring Kieker's Monitoring Component", table 2), and live analysis.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use baler_analysis::traces::{TraceSettings, TraceStage};
use baler_analysis::{Source, Stop};
use baler_common::transport::{ChunkReader as _, Received, Verdict};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};
use baler_monitoring::{Controller, Overflow, probe};
use baler_rig::monitored;
use baler_rig::overhead::{Makes, Outer, Running, Variant, start};
use baler_rig::process::{CHILD, Child, from_parent, send_to_parent};
use serde::{Deserialize, Serialize};

use crate::Failure;

pub(super) const VARIANTS: &[Variant] = &[
    Variant::new(
        "operation-tcp",
        "as operation, over TCP to another process, which discards the chunks",
        |case| OverTcp::start(Consumer::Discards, case.depth),
    ),
    Variant::new(
        "operation-tcp-analysed",
        "as operation-tcp, but the other process decodes the records and assembles their traces",
        |case| OverTcp::start(Consumer::Analyses, case.depth),
    ),
];

const LOCALHOST: &str = "127.0.0.1";

/// The time limit of the consumer's answers.
const PATIENCE: Duration = Duration::from_secs(60);

/// Beyond this number of records the consumer closes complete traces, so that it assembles all the
/// time and not only at the end.
const WAITING_RECORDS: usize = 65_536;

/// The work of a consumer.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) enum Consumer {
    Analyses,
    Discards,
}

/// The account of a consumer.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Consumed {
    records: u64,
    /// Valid traces; `None` if there was no analysis.
    traces: Option<u64>,
}

monitored! { #[probe] fn operation {} }

/// An application that sends to a consumer.
struct OverTcp {
    application: Box<dyn Running>,
    consumer: Child,
    depth: u64,
}

impl OverTcp {
    fn start(consumer: Consumer, depth: u32) -> Result<Box<dyn Running>, Failure> {
        let consumer = Child::with_order(&[CHILD], &consumer)?;
        let port: u16 = consumer.answer(PATIENCE, &mut || true)?;
        let writer = TcpWriter::new(TcpConfig::new(LOCALHOST, port));
        let builder = Controller::builder(Box::new(writer)).overflow(Overflow::Block);
        Ok(Box::new(Self {
            application: start(builder, operation, Makes::One)?,
            consumer,
            depth: u64::from(depth),
        }))
    }
}

impl Running for OverTcp {
    fn outer(&self) -> Outer {
        self.application.outer()
    }

    fn settle(&self) {
        self.application.settle();
    }

    fn finish(mut self: Box<Self>, calls: u64) -> Result<u64, Failure> {
        let lost = self.application.finish(calls)?;
        // Everything is acknowledged, which means processed.
        self.consumer.send(&())?;
        let consumed: Consumed = self.consumer.answer(PATIENCE, &mut || true)?;
        self.consumer.end(PATIENCE)?;
        let expected = Consumed {
            records: calls - lost,
            // The queue blocks, so no trace lacks a record.
            traces: consumed.traces.map(|_| calls / self.depth),
        };
        if consumed != expected {
            let reason = format!("the consumer has {consumed:?} instead of {expected:?}");
            return Err(Failure::new(reason));
        }
        Ok(lost)
    }
}

/// Receives until the parent has sent everything, and prints the account to it.
///
/// # Errors
///
/// The medium failed.
pub(super) fn consume(consumer: Consumer) -> Result<(), Failure> {
    let reader = TcpReader::bind(TcpConfig::new(LOCALHOST, 0));
    let reader = reader.map_err(Failure::cannot("listen"))?;
    send_to_parent(&reader.local_addr().port())?;
    let end = from_parent();
    send_to_parent(&match consumer {
        Consumer::Analyses => analyse(reader, &end),
        Consumer::Discards => discard(reader, &end),
    }?)
}

/// Whether the parent has sent everything, or has ended.
fn has_ended(end: &Receiver<()>) -> bool {
    !matches!(end.try_recv(), Err(TryRecvError::Empty))
}

fn analyse(reader: TcpReader, end: &Receiver<()>) -> Result<Consumed, Failure> {
    let failed = Failure::cannot("analyse");
    let mut settings = TraceSettings::default();
    settings.max_waiting = WAITING_RECORDS;
    let mut stage = TraceStage::new(settings);
    let mut source = Source::new(Box::new(reader));
    let run = source.run(&mut stage, Stop::default(), |_| !has_ended(end));
    run.map_err(&failed)?;
    let report = source.close(Instant::now() + PATIENCE).map_err(&failed)?;
    Ok(Consumed {
        records: report.records,
        traces: Some(stage.read(|analysis| analysis.profile().counts().valid)),
    })
}

fn discard(mut reader: TcpReader, end: &Receiver<()>) -> Result<Consumed, Failure> {
    const LOOK: Duration = Duration::from_millis(50);
    let failed = Failure::cannot("receive");
    let mut consumed = Consumed::default();
    while !has_ended(end) {
        let received = reader.receive(Instant::now() + LOOK);
        if let Received::Chunk(delivery) = received.map_err(&failed)? {
            let meta = delivery.meta;
            let meta = meta.ok_or_else(|| Failure::new("TCP carried no number of records"))?;
            consumed.records += u64::from(meta.records);
            let settled = reader.settle(delivery.token, Verdict::Ack);
            settled.map_err(&failed)?;
        }
    }
    Box::new(reader).close(Instant::now() + PATIENCE);
    Ok(consumed)
}
