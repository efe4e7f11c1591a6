//! What stands behind the queue in place of an encoder and a medium.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use baler_common::container::{ChunkHeader, ChunkSerializer, EncodeError, NativeSerializer};
use baler_common::record::timing::{AggregatedDurationRecord, DurationRecord};
use baler_common::record::{Column, Record as _, RecordBatch};
use baler_common::transport::{
    Capability, Chunk, ChunkReader as _, ChunkWriter, CloseReport, Confirmation, ContainerKind,
    Durability, Notify, Order, Received, RejectReason, Rejected, TransportError, Verdict,
};
use baler_connector_tcp::{TcpConfig, TcpReader, TcpWriter};

use crate::failure::Failure;

/// Encodes nothing: a chunk is one byte.
#[derive(Debug, Clone, Copy)]
pub(super) struct Discarding;

impl ChunkSerializer for Discarding {
    fn container(&self) -> ContainerKind {
        ContainerKind::Native
    }

    fn serialize(
        &mut self,
        _batch: &RecordBatch,
        _header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        out.push(0);
        Ok(1)
    }
}

/// Encodes as ever, and adds up of how many calls durations and aggregations are.
pub(super) struct Adding {
    serializer: NativeSerializer,
    calls: Arc<AtomicU64>,
}

impl Adding {
    pub(super) fn new(calls: Arc<AtomicU64>) -> Self {
        Self {
            serializer: NativeSerializer::default(),
            calls,
        }
    }
}

impl ChunkSerializer for Adding {
    fn container(&self) -> ContainerKind {
        self.serializer.container()
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        let written = self.serializer.serialize(batch, header, out)?;
        for table in batch.tables() {
            let calls = if Arc::ptr_eq(table.schema(), DurationRecord::schema()) {
                u64::try_from(table.len()).unwrap_or(u64::MAX)
            } else if Arc::ptr_eq(table.schema(), AggregatedDurationRecord::schema()) {
                match table.column("count") {
                    Some(Column::Unsigned(counts)) => counts.iter().sum(),
                    _ => 0,
                }
            } else {
                // An operation's record beside a duration is of the same call.
                0
            };
            self.calls.fetch_add(calls, Ordering::AcqRel);
        }
        Ok(written)
    }
}

/// Takes no chunk at all.
#[derive(Debug)]
pub(super) struct Refusing {
    capability: Capability,
}

impl Default for Refusing {
    fn default() -> Self {
        let mut capability = Capability::new("refusing", Order::PerLane, Durability::None);
        capability.readable = false;
        Self { capability }
    }
}

impl ChunkWriter for Refusing {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let reason = RejectReason::Full;
        Err(Rejected { chunk, reason })
    }

    fn confirmations(&mut self, _out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        Ok(())
    }

    fn set_notify(&mut self, _notify: Arc<dyn Notify>) {}

    fn reopen(&mut self, _by: Instant) -> Result<(), TransportError> {
        Ok(())
    }

    fn close(self: Box<Self>, _by: Instant) -> CloseReport {
        CloseReport::default()
    }
}

/// How soon a receiver looks whether its sender has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// A TCP receiver in this process that settles what comes, and discards it.
#[derive(Debug)]
pub(super) struct Receiver {
    port: u16,
    sent: Arc<AtomicBool>,
    thread: JoinHandle<Result<(), TransportError>>,
}

impl Receiver {
    pub(super) fn start() -> Result<Self, Failure> {
        let reader = TcpReader::bind(TcpConfig::new("127.0.0.1", 0));
        let mut reader = Box::new(reader.map_err(Failure::cannot("listen"))?);
        let port = reader.local_addr().port();
        let sent = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&sent);
        let thread = thread::spawn(move || {
            while !stop.load(Ordering::Acquire) {
                if let Received::Chunk(chunk) = reader.receive(Instant::now() + LOOK_AGAIN)? {
                    reader.settle(chunk.token, Verdict::Ack)?;
                }
            }
            reader.close(Instant::now() + LOOK_AGAIN);
            Ok(())
        });
        Ok(Self { port, sent, thread })
    }

    /// A writer that connects to it.
    pub(super) fn writer(&self) -> Box<dyn ChunkWriter> {
        Box::new(TcpWriter::new(TcpConfig::new("127.0.0.1", self.port)))
    }

    /// Ends it, after its writer.
    pub(super) fn end(self) -> Result<(), Failure> {
        self.sent.store(true, Ordering::Release);
        let ended = self.thread.join();
        let ended = ended.map_err(|_| Failure::new("the receiver panicked"))?;
        ended.map_err(Failure::cannot("receive"))
    }
}
