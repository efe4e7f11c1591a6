//! The writing end.

mod appender;
mod recovery;
mod stats;

use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::thread_writer::{Answers, BlockingMedium, BlockingOutput, Opening, ThreadWriter};
use baler_common::number::to_usize;
use baler_common::transport::{Capability, Chunk, Durability, Order, Outcome, TransportError};

use self::appender::Appender;
pub use self::stats::WriterStats;
use crate::segments::config::{FileWriterConfig, SyncPolicy};
use crate::segments::error::endpoint;
use crate::segments::headers::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES};

/// Writes chunks to a folder of segments.
///
/// It starts closed. [`reopen`](baler_common::transport::ChunkWriter::reopen) makes and locks the
/// folder, moves aside the torn end that a crash left, and starts the thread that writes. All
/// chunks that wait are written and forced to stable storage together.
pub type FileWriter = ThreadWriter<FileWriterConfig>;

impl BlockingMedium for FileWriterConfig {
    type Output = Appender;
    type Counts = WriterStats;
    const THREAD: &'static str = "baler-file";

    fn capability(&self) -> Capability {
        let durability = match self.sync {
            SyncPolicy::Chunk => Durability::Disk,
            SyncPolicy::None => Durability::Process,
        };
        let mut capability = Capability::new(crate::segments::SCHEME, Order::PerLane, durability);
        // A chunk must fit the length field of a frame, and the whole folder.
        let overhead = (FRAME_HEADER_BYTES + SEGMENT_HEADER_BYTES) as u64;
        let folder_bytes = self.max_total_bytes.map_or(u64::MAX, |most| most.get());
        let largest = folder_bytes.saturating_sub(overhead).min(u32::MAX.into());
        let largest = NonZeroUsize::new(to_usize(largest)).unwrap_or(NonZeroUsize::MIN);
        capability.max_chunk_bytes = largest.min(self.max_chunk_bytes);
        capability.window_chunks = self.window_chunks;
        capability.window_bytes = self.window_bytes;
        capability
    }

    fn endpoint(&self) -> String {
        endpoint(&self.folder).into()
    }

    /// Opens the folder. If the disk hangs, this can take longer than `opening` allows.
    fn open(&self, opening: Opening<'_, WriterStats>) -> Result<Appender, TransportError> {
        Appender::open(self, Arc::clone(opening.counts))
    }
}

impl BlockingOutput for Appender {
    fn write(&mut self, chunks: &[Chunk], answers: Answers<'_>) -> Result<(), TransportError> {
        let written = self.append(chunks);
        let synced = self.sync();
        // Chunks that were written before a failure are confirmed if they can be made durable.
        if synced.is_ok() {
            self.count_written();
            let confirmed = std::iter::repeat_with(|| Outcome::Confirmed);
            answers.add(confirmed.take(self.take_written()));
        }
        written.and(synced)
    }
}
