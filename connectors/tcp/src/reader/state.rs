//! The state of a reader: unsettled chunks, and the memory that they may take. The owner of a
//! reader and the thread that serves its connections share it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baler_common::number::to_usize;
use baler_common::transport::{
    ChunkMeta, Damaged, Delivery, Failure, Origin, Received, Settled, Token, Verdict,
};
use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::claims::Claims;
use super::progress::Connection;
use crate::config::TcpConfig;

/// The most damage reports that wait for the owner; more are only counted.
const MAX_DAMAGED: usize = 16;

/// The divisor of the additional memory for chunks that have arrived in part.
const ARRIVING_SHARE: usize = 4;

/// The unit of the memory budget, in bytes. A chunk takes one unit more than its bytes, for its
/// administration.
const STEP_BYTES: usize = 256;

/// The largest budget, in steps. Small multiples of it fit into 32 bits.
const MAX_STEPS: u32 = u32::MAX >> 3;

/// The state that the owner of a reader and the thread that serves its connections share.
#[derive(Debug)]
pub(super) struct ReaderState {
    pub(super) claims: Claims,
    /// The memory that is left, in steps.
    budget: Arc<Semaphore>,
    budget_steps: u32,
    /// The memory that is left for chunks that have arrived in part, in steps.
    arriving: Arc<Semaphore>,
    /// The permit of the one chunk that may go on when that memory is used up.
    beyond: Arc<Semaphore>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stats: ReaderStats,
    /// Chunks that were received and not handed out.
    ready: VecDeque<Pending>,
    /// Chunks that the owner gave back, by arrival; they come before the chunks in `ready`.
    again: BTreeMap<u64, Pending>,
    handed_out: HashMap<u64, Pending>,
    demand: usize,
    next_arrival: u64,
    next_token: u64,
    damaged: VecDeque<Damaged>,
    failure: Option<Failure>,
    owner_waits: bool,
}

/// Counts since the reader was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderStats {
    /// Senders that said hello.
    pub connections: u64,
    /// Connections that ended without a farewell: cut, silent, refused, or closed for a broken
    /// protocol.
    pub connections_lost: u64,
    /// Connections without the demanded token or certificate, or with chunks of the producer of
    /// another connection. The owner gets a damage report for each of them, which names the peer.
    pub connections_refused: u64,
    /// Connections that were closed at once because there were too many.
    pub connections_turned_away: u64,
    /// Chunks that were received, repetitions included.
    pub chunks: u64,
    /// Bytes of these chunks.
    pub bytes: u64,
    /// Connections that broke the protocol or were refused.
    pub damaged: u64,
    /// Damaged connections that were only counted, because too many came at a time.
    pub damaged_untold: u64,
}

/// A chunk that is not settled.
#[derive(Debug)]
pub(super) struct Pending {
    arrival: u64,
    connection: Arc<Connection>,
    sequence: u64,
    bytes: Bytes,
    meta: ChunkMeta,
    redelivered: bool,
    /// The chunk's part of the memory.
    _memory: ChunkMemory,
}

/// The part of the memory that a complete chunk takes, until it is settled.
#[derive(Debug)]
pub(super) struct ChunkMemory {
    connection: Arc<Connection>,
    steps: u32,
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for ChunkMemory {
    fn drop(&mut self) {
        // Release the permit first: the connection looks for room as soon as it is notified.
        self.permit.take();
        self.connection.release(self.steps);
    }
}

/// The memory of a chunk that has arrived in part.
#[derive(Debug, Default)]
pub(super) struct Arriving {
    /// The number of bytes that the memory is for.
    pub(super) bytes: usize,
    memory: Option<OwnedSemaphorePermit>,
    beyond: Option<OwnedSemaphorePermit>,
}

impl Pending {
    pub(super) fn new(
        connection: &Arc<Connection>,
        (sequence, meta, bytes): (u64, ChunkMeta, Bytes),
        memory: ChunkMemory,
    ) -> Self {
        Self {
            // Set when the chunk is ready.
            arrival: 0,
            connection: Arc::clone(connection),
            sequence,
            bytes,
            meta,
            redelivered: false,
            _memory: memory,
        }
    }
}

impl ReaderState {
    pub(super) fn new(config: &TcpConfig) -> Self {
        let steps = config.memory_bytes.get().div_ceil(STEP_BYTES);
        let budget_steps = u32::try_from(steps).unwrap_or(MAX_STEPS).min(MAX_STEPS);
        Self {
            claims: Claims::default(),
            budget: Arc::new(Semaphore::new(to_usize(budget_steps))),
            budget_steps,
            arriving: Arc::new(Semaphore::new(
                config.memory_bytes.get() / ARRIVING_SHARE / STEP_BYTES,
            )),
            beyond: Arc::new(Semaphore::new(1)),
            state: Mutex::new(State {
                demand: usize::MAX,
                ..State::default()
            }),
            changed: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the part of the memory that a chunk takes; all of it for a larger chunk.
    fn steps(&self, bytes: usize) -> u32 {
        let steps = bytes.div_ceil(STEP_BYTES) + 1;
        let all = self.budget_steps;
        u32::try_from(steps).unwrap_or(all).min(all)
    }

    /// Whether there is memory for a chunk at once.
    ///
    /// A sender may hold as much memory as it leaves free: one sender alone has half of the memory,
    /// and two have a third each. So there is room for the next sender, however many chunks the
    /// others have sent (dynamic thresholds; Choudhury and Hahne, 1998). One chunk of a sender is
    /// always accepted.
    pub(super) fn has_room(&self, connection: &Connection, bytes: usize) -> bool {
        let steps = self.steps(bytes);
        self.has_share(connection, steps) && self.free_steps() >= to_usize(steps)
    }

    /// Reserves memory for a chunk as soon as there is enough; first come, first served.
    pub(super) async fn reserve(&self, connection: &Arc<Connection>, bytes: usize) -> ChunkMemory {
        let steps = self.steps(bytes);
        while !self.has_share(connection, steps) {
            connection.released.notified().await;
        }
        let permit = Arc::clone(&self.budget).acquire_many_owned(steps).await;
        connection.charge(steps);
        ChunkMemory {
            connection: Arc::clone(connection),
            steps,
            // The budget is never closed.
            permit: permit.ok(),
        }
    }

    fn free_steps(&self) -> usize {
        self.budget.available_permits()
    }

    /// Whether a sender with these additional steps holds no more than it leaves free.
    fn has_share(&self, connection: &Connection, steps: u32) -> bool {
        let held = connection.held();
        // The steps count twice: the sender takes them from what it leaves free.
        held == 0 || to_usize(held + 2 * steps) <= self.free_steps()
    }

    /// Reserves memory for the next bytes of a chunk that has arrived in part.
    ///
    /// The chunks that arrive together share a part of the memory. When it is used up, one of them
    /// goes on, so that they cannot wait for each other for ever.
    pub(super) async fn reserve_part(&self, arriving: &mut Arriving, bytes: usize) {
        if arriving.beyond.is_none() {
            let steps = u32::try_from(bytes.div_ceil(STEP_BYTES)).unwrap_or(MAX_STEPS);
            tokio::select! {
                biased;
                Ok(more) = Arc::clone(&self.arriving).acquire_many_owned(steps) => {
                    match &mut arriving.memory {
                        Some(memory) => memory.merge(more),
                        none => *none = Some(more),
                    }
                }
                Ok(beyond) = Arc::clone(&self.beyond).acquire_owned() => {
                    arriving.beyond = Some(beyond);
                }
                else => {}
            }
        }
        arriving.bytes += bytes;
    }

    /// Passes the chunks to the owner and empties the vector.
    pub(super) fn push(&self, chunks: &mut Vec<Pending>) {
        if chunks.is_empty() {
            return;
        }
        self.update(|state| {
            for mut chunk in chunks.drain(..) {
                state.stats.chunks += 1;
                state.stats.bytes += chunk.bytes.len() as u64;
                chunk.arrival = state.next_arrival;
                state.next_arrival = state.next_arrival.wrapping_add(1);
                state.ready.push_back(chunk);
            }
        });
    }

    /// Reports bytes that are no chunk to the owner.
    pub(super) fn push_damaged(&self, damaged: Damaged) {
        self.update(|state| {
            state.stats.damaged += 1;
            if state.damaged.len() < MAX_DAMAGED {
                state.damaged.push_back(damaged);
            } else {
                state.stats.damaged_untold += 1;
            }
        });
    }

    /// Reports to the owner, once, a failure that belongs to no connection.
    pub(super) fn push_failure(&self, failure: Failure) {
        self.update(|state| state.failure = Some(failure));
    }

    /// Counts an event without waking the owner.
    pub(super) fn count(&self, change: impl FnOnce(&mut ReaderStats)) {
        change(&mut self.lock().stats);
    }

    pub(super) fn stats(&self) -> ReaderStats {
        self.lock().stats
    }

    fn update(&self, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        let waits = std::mem::take(&mut state.owner_waits);
        drop(state);
        if waits {
            self.changed.notify_one();
        }
    }

    pub(super) fn set_demand(&self, chunks: usize) {
        self.lock().demand = chunks;
    }

    pub(super) fn receive(&self, by: Instant) -> Result<Received, Failure> {
        let mut state = self.lock();
        loop {
            if let Some(received) = state.next() {
                return received;
            }
            let left = by.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Received::Idle);
            }
            state.owner_waits = true;
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            state.owner_waits = false;
        }
    }

    pub(super) fn settle(&self, token: Token, verdict: Verdict) -> Settled {
        let mut state = self.lock();
        let Some(mut pending) = state.handed_out.remove(&token.0) else {
            return Settled::Stale;
        };
        match verdict {
            Verdict::Ack | Verdict::Reject => {
                drop(state);
                pending.connection.settle(pending.sequence)
            }
            Verdict::Retry => {
                pending.redelivered = true;
                state.again.insert(pending.arrival, pending);
                Settled::Done
            }
        }
    }

    /// Returns the number of chunks that are handed out and not settled.
    /// Returns how many damage reports wait for the owner.
    pub(super) fn waiting_damage(&self) -> u64 {
        self.lock().damaged.len() as u64
    }

    pub(super) fn unsettled(&self) -> usize {
        self.lock().handed_out.len()
    }
}

impl State {
    /// Returns the next event for the owner, if there is one.
    fn next(&mut self) -> Option<Result<Received, Failure>> {
        if let Some(failure) = self.failure.take() {
            return Some(Err(failure));
        }
        if let Some(damaged) = self.damaged.pop_front() {
            return Some(Ok(Received::Damaged(damaged)));
        }
        if self.handed_out.len() >= self.demand {
            return None;
        }
        let again = self.again.pop_first().map(|(_, pending)| pending);
        let pending = again.or_else(|| self.ready.pop_front())?;
        let token = self.next_token;
        self.next_token = self.next_token.wrapping_add(1);
        let delivery = Delivery {
            token: Token(token),
            bytes: pending.bytes.clone(),
            meta: Some(pending.meta),
            origin: Origin::of_chunk(&pending.connection.endpoint, &pending.meta.identity),
            redelivered: pending.redelivered,
            attempts: 0,
        };
        self.handed_out.insert(token, pending);
        Some(Ok(Received::Chunk(delivery)))
    }
}
