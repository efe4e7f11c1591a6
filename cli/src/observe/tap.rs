//! Taps: clients that look at the chunks that pass through a running process.
//!
//! watched reader, [`TappedWriter`] -> [`TapHub`] (bounded ring) -> each tap
//!
//! Without taps, a chunk costs one relaxed load. A slow tap skips chunks and gets their number. It
//! never delays the process.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use baler_common::transport::{
    Capability, Chunk, ChunkWriter, CloseReport, DeliveryReport, Notify, Probes, Rejected,
    TransportError, WriterStats,
};
use bytes::{BufMut as _, Bytes, BytesMut};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// The maximum number of chunks that wait for the slowest tap. Beyond it, the tap skips chunks.
const RING_CHUNKS: usize = 256;

/// The maximum number of bytes of chunks that wait for taps. Beyond it, no tap sees further chunks
/// until the taps have caught up.
const RING_BYTES: usize = 32 << 20;

/// The first byte of a frame that holds a chunk.
pub(crate) const CHUNK_FRAME: u8 = b'C';

/// The first byte of a frame with the number of skipped chunks.
pub(crate) const SKIPPED_FRAME: u8 = b'S';

/// The length of a frame's head: kind, and length or count as a big-endian `u64`.
pub(crate) const FRAME_HEAD: usize = 9;

/// The hub that shows passing chunks to taps.
#[derive(Debug)]
pub(super) struct TapHub {
    taps: AtomicUsize,
    held_bytes: AtomicUsize,
    skipped: AtomicU64,
    ring: broadcast::Sender<Arc<Passing>>,
}

/// A chunk that passes; its bytes count as held until the last tap has seen it.
#[derive(Debug)]
struct Passing {
    bytes: Bytes,
    hub: Arc<TapHub>,
}

impl Drop for Passing {
    fn drop(&mut self) {
        let held = &self.hub.held_bytes;
        held.fetch_sub(self.bytes.len(), Ordering::Relaxed);
    }
}

impl Default for TapHub {
    fn default() -> Self {
        let (ring, _) = broadcast::channel(RING_CHUNKS);
        Self {
            taps: AtomicUsize::new(0),
            held_bytes: AtomicUsize::new(0),
            skipped: AtomicU64::new(0),
            ring,
        }
    }
}

impl TapHub {
    /// Returns the number of taps.
    pub(super) fn taps(&self) -> usize {
        self.taps.load(Ordering::Relaxed)
    }

    /// Returns the number of chunks that no tap saw because too many bytes waited.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::Relaxed)
    }

    /// Adds a tap, unless there are `max` taps already.
    pub(super) fn tap(self: &Arc<Self>, max: usize) -> Option<Tap> {
        let more = |taps: usize| (taps < max).then_some(taps + 1);
        let (taps, relaxed) = (&self.taps, Ordering::Relaxed);
        taps.fetch_update(relaxed, relaxed, more).ok()?;
        Some(Tap {
            ring: self.ring.subscribe(),
            skipped_before: self.skipped(),
            hub: Arc::clone(self),
        })
    }

    /// Shows a chunk to all taps.
    pub(super) fn pass(self: &Arc<Self>, bytes: &Bytes) {
        if self.taps() == 0 {
            return;
        }
        let size = bytes.len();
        let held = self.held_bytes.fetch_add(size, Ordering::Relaxed);
        let passing = Passing {
            bytes: bytes.clone(),
            hub: Arc::clone(self),
        };
        if held > 0 && held + size > RING_BYTES {
            self.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        // An error means that the last tap has left meanwhile.
        self.ring.send(Arc::new(passing)).ok();
    }
}

/// One tap.
#[derive(Debug)]
pub(super) struct Tap {
    ring: broadcast::Receiver<Arc<Passing>>,
    hub: Arc<TapHub>,
    skipped_before: u64,
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.hub.taps.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Tap {
    /// Waits for the next frames: the number of skipped chunks, if any, then a chunk. Returns
    /// `None` when no further chunk will come.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        let mut frame = BytesMut::new();
        loop {
            match self.ring.recv().await {
                Ok(passing) => {
                    self.report_skipped(&mut frame, 0);
                    frame.put_u8(CHUNK_FRAME);
                    frame.put_u64(passing.bytes.len() as u64);
                    frame.extend_from_slice(&passing.bytes);
                    return Some(frame.freeze());
                }
                Err(RecvError::Lagged(chunks)) => self.report_skipped(&mut frame, chunks),
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Adds a frame with the number of skipped chunks, if there were any.
    fn report_skipped(&mut self, frame: &mut BytesMut, by_this_one: u64) {
        let by_all = self.hub.skipped();
        let skipped = by_all - self.skipped_before + by_this_one;
        self.skipped_before = by_all;
        if skipped > 0 {
            frame.put_u8(SKIPPED_FRAME);
            frame.put_u64(skipped);
        }
    }
}

/// A writer whose chunks taps see. They see a chunk once, even if it is offered several times.
pub(super) struct TappedWriter {
    pub(super) writer: Box<dyn ChunkWriter>,
    pub(super) taps: Arc<TapHub>,
    /// The first ticket that was not shown yet.
    pub(super) next_ticket: u64,
}

impl ChunkWriter for TappedWriter {
    fn capability(&self) -> &Capability {
        self.writer.capability()
    }

    fn offer(&mut self, chunk: Chunk) -> Result<(), Rejected> {
        let (ticket, bytes) = (chunk.ticket, chunk.bytes.clone());
        self.writer.offer(chunk)?;
        if ticket >= self.next_ticket {
            self.next_ticket = ticket + 1;
            self.taps.pass(&bytes);
        }
        Ok(())
    }

    fn delivery_reports(&mut self, out: &mut Vec<DeliveryReport>) -> Result<(), TransportError> {
        self.writer.delivery_reports(out)
    }

    fn set_notify(&mut self, notify: Arc<dyn Notify>) {
        self.writer.set_notify(notify);
    }

    fn set_probes(&mut self, probes: Arc<dyn Probes>) {
        self.writer.set_probes(probes);
    }

    fn set_awaited(&mut self, awaited: bool) {
        self.writer.set_awaited(awaited);
    }

    fn reopen(&mut self, by: Instant) -> Result<(), TransportError> {
        self.writer.reopen(by)
    }

    fn stats(&self) -> WriterStats {
        self.writer.stats()
    }

    fn close(self: Box<Self>, by: Instant) -> CloseReport {
        self.writer.close(by)
    }
}

#[cfg(test)]
mod tests;
