//! A medium in memory: the reference implementation of the contract, with switches for faults.

mod reader;
mod writer;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use baler_common::non_zero;
use baler_common::transport::{
    Capability, Chunk, ChunkMeta, DeliveryReport, Durability, Failure, Notify as _, NotifyCell,
    Order, Outcome, RetryClass, TransportError, Window,
};
use bytes::Bytes;

pub use reader::MemoryReader;
pub use writer::MemoryWriter;

/// The medium's name and endpoint.
const MEDIUM: &str = "memory";

/// A bounded queue of chunks in memory, shared by its clones.
///
/// A chunk is confirmed when the queue has room for it. Many writers and many readers may share it.
/// Readers compete for chunks. An unsettled chunk comes again, to any reader: after a retry, or
/// after its reader was closed or dropped. For tests, documentation and examples. It blocks only a
/// reader that waits.
#[derive(Debug, Clone)]
pub struct MemoryMedium {
    shared: Arc<MediumState>,
}

/// The limits of a [`MemoryMedium`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The largest chunk, in bytes.
    pub max_chunk_bytes: NonZeroUsize,
    /// The most unconfirmed chunks of a writer.
    pub window_chunks: NonZeroUsize,
    /// The most unconfirmed bytes of a writer.
    pub window_bytes: NonZeroUsize,
    /// The most chunks in the queue, including chunks that are being processed.
    pub capacity_chunks: NonZeroUsize,
}

impl Default for MemoryLimits {
    /// Returns the limits of [`Capability::new`], and 1,024 chunks in the queue.
    fn default() -> Self {
        let ample = Capability::new(MEDIUM, Order::PerLane, Durability::Received);
        Self {
            max_chunk_bytes: ample.max_chunk_bytes,
            window_chunks: ample.window_chunks,
            window_bytes: ample.window_bytes,
            capacity_chunks: non_zero!(1_024),
        }
    }
}

#[derive(Debug)]
struct MediumState {
    limits: MemoryLimits,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Chunks that can be received, by arrival.
    queue: BTreeMap<u64, Stored>,
    /// Chunks that are being processed, by token, with the reader that has them.
    handed_out: HashMap<u64, (u64, Stored)>,
    writers: BTreeMap<u64, WriterState>,
    next_arrival: u64,
    next_token: u64,
    next_id: u64,
    unreachable: bool,
    confirmations_held: bool,
    refusals: VecDeque<RetryClass>,
    ended: bool,
}

/// A chunk in the medium.
#[derive(Debug)]
struct Stored {
    arrival: u64,
    bytes: Bytes,
    meta: ChunkMeta,
    /// The number of times that it was delivered and given back.
    attempts: u32,
}

#[derive(Debug, Default)]
struct WriterState {
    open: bool,
    /// Accepted chunks that are not in the queue yet.
    waiting: VecDeque<Chunk>,
    /// Reports of chunks in the queue that are held back.
    held: Vec<DeliveryReport>,
    delivery_reports: Vec<DeliveryReport>,
    /// Accepted chunks that were not yet reported as confirmed.
    unconfirmed: Window,
    notify: Arc<NotifyCell>,
}

impl Default for MemoryMedium {
    fn default() -> Self {
        Self::new(MemoryLimits::default())
    }
}

impl MemoryMedium {
    /// Creates an empty medium.
    pub fn new(limits: MemoryLimits) -> Self {
        Self {
            shared: Arc::new(MediumState {
                limits,
                state: Mutex::default(),
                changed: Condvar::new(),
            }),
        }
    }

    /// Returns a writer to the medium. Like every writer it starts closed.
    pub fn writer(&self) -> MemoryWriter {
        MemoryWriter::new(Arc::clone(&self.shared))
    }

    /// Returns a reader of the medium.
    pub fn reader(&self) -> MemoryReader {
        MemoryReader::new(Arc::clone(&self.shared))
    }

    /// Returns the number of chunks in the medium: waiting, or handed out and not settled.
    pub fn len(&self) -> usize {
        let state = self.shared.lock();
        state.queue.len() + state.handed_out.len()
    }

    /// Whether the medium has no chunk.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Lets readers end once everything is settled.
    pub fn end(&self) {
        self.shared.update(|state| state.ended = true);
    }

    /// Breaks the connection of every writer. Chunks that wait for room are lost; chunks whose
    /// confirmation is held stay.
    pub fn break_connections(&self) {
        self.shared
            .update(|state| state.writers.values_mut().for_each(WriterState::disconnect));
    }

    /// Sets whether the medium is unreachable: writers are then broken and cannot be reopened.
    pub fn set_unreachable(&self, unreachable: bool) {
        self.shared.update(|state| {
            state.unreachable = unreachable;
            if unreachable {
                state.writers.values_mut().for_each(WriterState::disconnect);
            }
        });
    }

    /// Sets whether confirmations are held: chunks then arrive and can be read, but are not
    /// confirmed.
    pub fn hold_confirmations(&self, hold: bool) {
        self.shared.update(|state| {
            state.confirmations_held = hold;
            if !hold {
                for writer in state.writers.values_mut() {
                    writer.delivery_reports.append(&mut writer.held);
                }
            }
        });
    }

    /// Refuses the next chunk that arrives, with this class; several calls refuse several chunks.
    pub fn refuse_next(&self, class: RetryClass) {
        self.shared.update(|state| state.refusals.push_back(class));
    }
}

impl MediumState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, moves chunks that now have room, and notifies waiting writers and
    /// readers.
    fn update<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.lock();
        let result = change(&mut state);
        state.admit(self.limits.capacity_chunks.get());
        // Notify them after the lock is released.
        let writers = state.writers.values();
        let to_notify: Vec<_> = writers.map(|it| Arc::clone(&it.notify)).collect();
        drop(state);
        self.changed.notify_all();
        for notify in to_notify {
            notify.notify();
        }
        result
    }
}

impl State {
    /// Moves chunks of the writers into the queue, in turn, while it has room.
    fn admit(&mut self, capacity_chunks: usize) {
        let mut moved = true;
        while moved {
            moved = false;
            for writer in self.writers.values_mut() {
                if self.queue.len() + self.handed_out.len() >= capacity_chunks {
                    return;
                }
                let Some(chunk) = writer.waiting.pop_front() else {
                    continue;
                };
                moved = true;
                let outcome = match self.refusals.pop_front() {
                    Some(class) => Outcome::Refused(refused(class)),
                    None => {
                        let arrival = self.next_arrival;
                        self.next_arrival += 1;
                        let stored = Stored {
                            arrival,
                            bytes: chunk.bytes,
                            meta: chunk.meta,
                            attempts: 0,
                        };
                        self.queue.insert(arrival, stored);
                        Outcome::Confirmed
                    }
                };
                let confirmation = DeliveryReport {
                    ticket: chunk.ticket,
                    outcome,
                };
                if self.confirmations_held {
                    writer.held.push(confirmation);
                } else {
                    writer.delivery_reports.push(confirmation);
                }
            }
        }
    }

    /// Puts the chunks of a reader back. Returns their number.
    fn give_back(&mut self, reader: u64) -> usize {
        let tokens: Vec<u64> = self
            .handed_out
            .iter()
            .filter(|(_, (holder, _))| *holder == reader)
            .map(|(token, _)| *token)
            .collect();
        for token in &tokens {
            if let Some((_, mut stored)) = self.handed_out.remove(token) {
                stored.attempts += 1;
                self.queue.insert(stored.arrival, stored);
            }
        }
        tokens.len()
    }

    fn next_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }
}

impl WriterState {
    fn disconnect(&mut self) {
        self.open = false;
        self.waiting.clear();
        self.held.clear();
    }
}

fn broken() -> TransportError {
    Failure::retry("write to", "the connection is not open").at(MEDIUM)
}

fn refused(class: RetryClass) -> TransportError {
    TransportError::new("write to", MEDIUM, class, "the chunk was refused on demand")
}
