//! A writer that keeps what another one takes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, Confirmation, Notify, Rejected, TransportError,
};
use bytes::Bytes;

/// Keeps the bytes of each chunk that the writer within has taken.
pub(super) struct Keeping<W> {
    pub(super) writer: Box<W>,
    pub(super) kept: Kept,
}

/// The chunks, in order.
pub(super) type Kept = Arc<Mutex<Vec<Bytes>>>;

impl<W: ChunkWriter> ChunkWriter for Keeping<W> {
    fn capability(&self) -> &Capability {
        self.writer.capability()
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let bytes = chunk.bytes.clone();
        self.writer.offer(chunk)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push(bytes);
        Ok(())
    }

    fn confirmations(&mut self, out: &mut Vec<Confirmation>) -> Result<(), TransportError> {
        self.writer.confirmations(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.writer.set_notify(notify);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.writer.reopen(by)
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        self.writer.close(by)
    }
}
