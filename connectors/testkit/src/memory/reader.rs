//! The reader of the medium in memory.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use baler_common::transport::{
    ChunkReader, Delivery, Order, Origin, ReaderCapability, ReaderCloseReport, Received, Settled,
    Token, TransportError, Verdict,
};

use super::{MEDIUM, MediumState, State};

/// Reads a [`MemoryMedium`](super::MemoryMedium), competing with its other readers.
#[derive(Debug)]
pub struct MemoryReader {
    shared: Arc<MediumState>,
    capability: ReaderCapability,
    id: u64,
    demand: usize,
}

impl MemoryReader {
    pub(super) fn new(shared: Arc<MediumState>) -> Self {
        let mut capability = ReaderCapability::new(MEDIUM, Order::PerLane);
        capability.max_chunk_bytes = shared.limits.max_chunk_bytes;
        capability.ends = true;
        let id = shared.lock().next_id();
        Self {
            shared,
            capability,
            id,
            demand: usize::MAX,
        }
    }

    /// Returns the event that is there now.
    fn look(&self, state: &mut State) -> Option<Received> {
        let held = state
            .handed_out
            .values()
            .filter(|(holder, _)| *holder == self.id)
            .count();
        if held < self.demand
            && let Some((arrival, stored)) = state.queue.pop_first()
        {
            let token = state.next_token;
            state.next_token += 1;
            let delivery = Delivery {
                token: Token(token),
                bytes: stored.bytes.clone(),
                meta: Some(stored.meta),
                origin: Origin {
                    endpoint: MEDIUM.into(),
                    lane: stored.meta.identity.lane.to_string().into(),
                    position: arrival,
                },
                redelivered: stored.attempts > 0,
                attempts: stored.attempts,
            };
            state.handed_out.insert(token, (self.id, stored));
            return Some(Received::Chunk(delivery));
        }
        let empty = state.queue.is_empty()
            && state.handed_out.is_empty()
            && state
                .writers
                .values()
                .all(|writer| writer.waiting.is_empty());
        (state.ended && empty).then_some(Received::End)
    }
}

impl ChunkReader for MemoryReader {
    fn capability(&self) -> &ReaderCapability {
        &self.capability
    }

    fn set_demand(&mut self, chunks: usize) {
        self.demand = chunks;
    }

    fn receive(&mut self, by: Instant) -> Result<Received, TransportError> {
        let mut state = self.shared.lock();
        loop {
            if let Some(received) = self.look(&mut state) {
                return Ok(received);
            }
            let now = Instant::now();
            if now >= by {
                return Ok(Received::Idle);
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, by - now)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    fn settle(&mut self, token: Token, verdict: Verdict) -> Result<Settled, TransportError> {
        let settled = self.shared.update(|state| {
            let (_, mut stored) = state.handed_out.remove(&token.0)?;
            if verdict == Verdict::Retry {
                stored.attempts += 1;
                state.queue.insert(stored.arrival, stored);
            }
            Some(())
        });
        Ok(settled.map_or(Settled::Stale, |()| Settled::Done))
    }

    fn close(self: Box<Self>, _by: Instant) -> ReaderCloseReport {
        let unsettled = self.shared.update(|state| state.give_back(self.id));
        ReaderCloseReport {
            unsettled,
            unreported: 0,
            error: None,
        }
    }
}

impl Drop for MemoryReader {
    fn drop(&mut self) {
        self.shared.update(|state| state.give_back(self.id));
    }
}
