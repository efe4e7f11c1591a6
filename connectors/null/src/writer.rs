//! A writer that counts and discards.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use baler_common::number::to_u64;
use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Notify, NotifyCell,
    Order, Outcome, Rejected, RetryClass, TransportError,
};

use crate::{NullConfig, SCHEME};

/// Counts chunks and discards them. Never blocks.
#[derive(Debug)]
pub struct NullWriter {
    capability: Capability,
    counts: Arc<NullCounts>,
    open: bool,
    /// Tickets whose confirmation the owner has not fetched.
    confirmed: Vec<u64>,
    notify: NotifyCell,
}

/// The counts of discarded chunks. Shared with the writer; readable from any thread.
#[derive(Debug, Default)]
pub struct NullCounts {
    chunks: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

impl NullCounts {
    /// Returns the number of chunks.
    pub fn chunks(&self) -> u64 {
        self.chunks.load(Ordering::Relaxed)
    }

    /// Returns the number of records, as the chunks state it.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl NullWriter {
    /// Creates a writer. Like every writer it starts closed.
    pub fn new(_config: NullConfig) -> Self {
        let mut capability = Capability::new(SCHEME, Order::PerLane, Durability::None);
        capability.readable = false;
        Self {
            capability,
            counts: Arc::default(),
            open: false,
            confirmed: Vec::new(),
            notify: NotifyCell::default(),
        }
    }

    /// Returns the counts, which the writer goes on updating.
    pub fn counts(&self) -> Arc<NullCounts> {
        Arc::clone(&self.counts)
    }
}

impl ChunkWriter for NullWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        if !self.open {
            return Err(Rejected::broken(chunk, closed()));
        }
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        if self.confirmed.len() >= self.capability.window_chunks.get() {
            // The owner does not fetch its confirmations, and they must not pile up.
            return Err(Rejected::full(chunk));
        }
        let add = |counter: &AtomicU64, value| counter.fetch_add(value, Ordering::Relaxed);
        add(&self.counts.chunks, 1);
        add(&self.counts.records, u64::from(chunk.meta.records));
        add(&self.counts.bytes, to_u64(chunk.bytes.len()));
        self.confirmed.push(chunk.ticket);
        self.notify.notify();
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        out.extend(self.confirmed.drain(..).map(|ticket| DeliveryReport {
            ticket,
            outcome: Outcome::Confirmed,
        }));
        if self.open { Ok(()) } else { Err(closed()) }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.notify.set(notify);
    }

    fn reopen(&mut self, _by: Instant) -> Result<(), TransportError> {
        self.open = true;
        self.confirmed.clear();
        Ok(())
    }

    fn close(mut self: Box<Self>, _by: Instant) -> CloseReport {
        let mut report = CloseReport::default();
        // An error only means that the writer was never opened.
        self.delivery_reports(&mut report.delivery_reports).ok();
        report
    }
}

fn closed() -> TransportError {
    TransportError::new("write to", SCHEME, RetryClass::Retry, "it was not opened")
}
