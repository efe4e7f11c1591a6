//! The writer of the medium in memory.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Durability, Failure, Notify,
    Order, Rejected, TransportError, Window,
};

use super::{MEDIUM, MediumState, WriterState, broken};

/// Writes into a [`MemoryMedium`](super::MemoryMedium).
#[derive(Debug)]
pub struct MemoryWriter {
    shared: Arc<MediumState>,
    capability: Capability,
    id: u64,
}

impl MemoryWriter {
    pub(super) fn new(shared: Arc<MediumState>) -> Self {
        let mut capability = Capability::new(MEDIUM, Order::PerLane, Durability::Received);
        capability.max_chunk_bytes = shared.limits.max_chunk_bytes;
        capability.window_chunks = shared.limits.window_chunks;
        capability.window_bytes = shared.limits.window_bytes;
        let id = {
            let mut state = shared.lock();
            let id = state.next_id();
            state.writers.insert(id, WriterState::default());
            id
        };
        Self {
            shared,
            capability,
            id,
        }
    }
}

impl ChunkWriter for MemoryWriter {
    fn capability(&self) -> &Capability {
        &self.capability
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let mut state = self.shared.lock();
        let writer = state.writers.get_mut(&self.id).filter(|it| it.open);
        let Some(writer) = writer else {
            return Err(Rejected::broken(chunk, broken()));
        };
        if chunk.bytes.len() > self.capability.max_chunk_bytes.get() {
            return Err(Rejected::too_large(chunk, &self.capability));
        }
        if !writer.unconfirmed.take(&chunk, &self.capability) {
            return Err(Rejected::full(chunk));
        }
        writer.waiting.push_back(chunk);
        drop(state);
        self.shared.update(|_| ());
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        let mut state = self.shared.lock();
        let writer = state.writers.get_mut(&self.id).ok_or_else(broken)?;
        for confirmation in writer.delivery_reports.drain(..) {
            writer.unconfirmed.remove(confirmation.ticket);
            out.push(confirmation);
        }
        if writer.open { Ok(()) } else { Err(broken()) }
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        if let Some(writer) = self.shared.lock().writers.get_mut(&self.id) {
            writer.notify.set(notify);
        }
    }

    fn reopen(&mut self, _by: Instant) -> Result<(), TransportError> {
        let mut state = self.shared.lock();
        let reachable = !state.unreachable;
        let writer = state.writers.get_mut(&self.id).ok_or_else(broken)?;
        writer.disconnect();
        writer.delivery_reports.clear();
        writer.unconfirmed.clear();
        writer.open = reachable;
        match reachable {
            true => Ok(()),
            false => Err(Failure::retry("connect to", "the medium is unreachable").at(MEDIUM)),
        }
    }

    fn close(mut self: Box<Self>, by: Instant) -> CloseReport {
        let mut report = CloseReport::default();
        loop {
            report.error = self.delivery_reports(&mut report.delivery_reports).err();
            let state = self.shared.lock();
            let writer = state.writers.get(&self.id);
            let unconfirmed = writer.map(|writer| &writer.unconfirmed);
            let done = report.error.is_some() || unconfirmed.is_none_or(|left| left.is_empty());
            let now = Instant::now();
            if done || now >= by {
                report.unconfirmed = unconfirmed.into_iter().flat_map(Window::tickets).collect();
                return report;
            }
            // A confirmation may have come between the two locks; wait only if none is there.
            if writer.is_some_and(|writer| writer.delivery_reports.is_empty()) {
                drop(
                    self.shared
                        .changed
                        .wait_timeout(state, by - now)
                        .unwrap_or_else(PoisonError::into_inner),
                );
            }
        }
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        self.shared.lock().writers.remove(&self.id);
    }
}
