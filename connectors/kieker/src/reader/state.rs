//! The state that the thread that serves the connections shares with the owner of the reader.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};

use baler_common::number::to_usize;
use baler_common::record::Catalog;
use baler_common::transport::{ChunkMeta, Damaged, Delivery, Failure, Origin, Token};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::adaptive::Bridge;
use crate::config::KiekerTcpConfig;
use crate::container::TimeUnit;

/// The most reports of damage or failure that wait for the owner; more are only counted.
const MAX_REPORTS: usize = 16;

/// The memory that strings and incomplete items of all connections may take, in bytes. A connection
/// that exceeds it is closed.
pub(super) const MAX_CONNECTION_MEMORY: usize = 512 << 20;

/// The unit of the memory for chunks, in bytes.
const STEP_BYTES: usize = 256;

/// Counts since the reader was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// Senders that sent something.
    pub connections: u64,
    /// Connections that were closed because of their bytes, or that ended within an item.
    pub damaged: u64,
    /// Damaged connections that were only counted, because too many came at a time.
    pub damaged_untold: u64,
    /// Connections that were closed at once because there were too many.
    pub connections_turned_away: u64,
    /// Chunks that were made.
    pub chunks: u64,
    /// Records in these chunks.
    pub records: u64,
    /// Bytes that were received.
    pub bytes: u64,
}

/// An event of a connection.
pub(super) enum Event {
    Chunk(Pending),
    /// Damage or a failure, and its place among the reports that may wait.
    Report {
        report: Result<Damaged, Failure>,
        _place: OwnedSemaphorePermit,
    },
}

/// A chunk that is not settled.
#[derive(Debug)]
pub(super) struct Pending {
    /// The order in which chunks are handed out.
    pub(super) arrival: u64,
    pub(super) redelivered: bool,
    bytes: Bytes,
    meta: ChunkMeta,
    endpoint: Arc<str>,
    /// The chunk's part of the memory.
    _memory: OwnedSemaphorePermit,
}

impl Pending {
    pub(super) fn delivery(&self, token: Token) -> Delivery {
        Delivery {
            token,
            bytes: self.bytes.clone(),
            meta: Some(self.meta),
            origin: Origin::of_chunk(&self.endpoint, &self.meta.identity),
            redelivered: self.redelivered,
            attempts: 0,
        }
    }
}

/// The state that the thread that serves the connections shares with the owner of the reader.
#[derive(Debug)]
pub(super) struct ReaderState {
    /// The types that senders may name.
    pub(super) catalog: Arc<Catalog>,
    /// Decides which probes of senders record.
    pub(super) bridge: Arc<Bridge>,
    pub(super) unique_trace_ids: bool,
    pub(super) time_unit: Option<TimeUnit>,
    events: Sender<Event>,
    /// The memory that is left for chunks, in steps.
    budget: Arc<Semaphore>,
    budget_steps: u32,
    reports: Arc<Semaphore>,
    connection_memory: AtomicUsize,
    stats: Mutex<ReaderStats>,
}

impl ReaderState {
    pub(super) fn new(
        config: &KiekerTcpConfig,
        catalog: Arc<Catalog>,
        bridge: Arc<Bridge>,
        events: Sender<Event>,
    ) -> Self {
        // The most permits that a semaphore has on every platform.
        let budget_steps = steps(config.memory_bytes.get(), u32::MAX >> 3);
        Self {
            catalog,
            bridge,
            unique_trace_ids: config.unique_trace_ids,
            time_unit: config.time_unit,
            events,
            budget: Arc::new(Semaphore::new(to_usize(budget_steps))),
            budget_steps,
            reports: Arc::new(Semaphore::new(MAX_REPORTS)),
            connection_memory: AtomicUsize::new(0),
            stats: Mutex::default(),
        }
    }

    /// Passes a chunk to the owner as soon as there is memory for it; first come, first served.
    pub(super) async fn push(&self, bytes: Vec<u8>, meta: ChunkMeta, endpoint: &Arc<str>) {
        // A chunk that is larger than all of the memory takes all of it.
        let steps = steps(bytes.len(), self.budget_steps);
        let permit = Arc::clone(&self.budget).acquire_many_owned(steps).await;
        // The semaphore is never closed.
        let Ok(memory) = permit else { return };
        let mut arrival = 0;
        self.count(|stats| {
            arrival = stats.chunks;
            stats.chunks += 1;
            stats.records += u64::from(meta.records);
        });
        let pending = Pending {
            arrival,
            redelivered: false,
            bytes: bytes.into(),
            meta,
            endpoint: Arc::clone(endpoint),
            _memory: memory,
        };
        self.send(Event::Chunk(pending));
    }

    /// Reports a connection that was closed because of its bytes, or that ended within an item.
    pub(super) fn push_damaged(&self, damaged: Damaged) {
        let permit = Arc::clone(&self.reports).try_acquire_owned();
        self.count(|stats| {
            stats.damaged += 1;
            stats.damaged_untold += u64::from(permit.is_err());
        });
        if let Ok(_place) = permit {
            let report = Ok(damaged);
            self.send(Event::Report { report, _place });
        }
    }

    /// Reports a failure that belongs to no connection.
    pub(super) fn push_failure(&self, failure: Failure) {
        if let Ok(_place) = Arc::clone(&self.reports).try_acquire_owned() {
            let report = Err(failure);
            self.send(Event::Report { report, _place });
        }
    }

    fn send(&self, event: Event) {
        // Without an owner the event is not needed.
        drop(self.events.send(event));
    }

    /// Charges the memory of a connection. Returns whether all connections together stay within the
    /// limit.
    pub(super) fn charge(&self, before: usize, now: usize) -> bool {
        let memory = &self.connection_memory;
        memory.fetch_add(now, Ordering::Relaxed);
        let all = memory.fetch_sub(before, Ordering::Relaxed);
        now <= before || all - before <= MAX_CONNECTION_MEMORY
    }

    pub(super) fn count(&self, change: impl FnOnce(&mut ReaderStats)) {
        change(&mut self.stats.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(super) fn stats(&self) -> ReaderStats {
        *self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the steps of memory that bytes take, but not more than `most`.
fn steps(bytes: usize, most: u32) -> u32 {
    u32::try_from(bytes.div_ceil(STEP_BYTES)).map_or(most, |steps| steps.min(most))
}
