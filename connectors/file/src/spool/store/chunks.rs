//! Writes chunks to the disk, and reads them back.

use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baler_common::transport::{
    Chunk, ChunkReader as _, ChunkWriter as _, Damaged, Delivery, Received, RejectReason, Rejected,
    RetryClass, Token, TransportError, Verdict,
};

use super::{CONSUMER, Flight, OPEN_TIMEOUT, Store};
use crate::spool::CHUNKS_FOLDER;
use crate::spool::config::SpoolConfig;
use crate::spool::state::take;
use crate::{FileReader, FileReaderConfig, FileWriter, FileWriterConfig, Keep};

impl Store {
    /// Opens the writer if it is not open. Returns whether chunks can be offered.
    pub(crate) fn ensure_writable(&mut self, now: Instant) -> bool {
        if self.lock.is_none() || self.failed_until.is_some_and(|until| until > now) {
            return false;
        }
        if self.writer.is_some() && self.failed_until.is_none() {
            return true;
        }
        let writer = self.writer.get_or_insert_with(|| {
            let mut writer = FileWriter::new(writer_config(&self.config));
            writer.set_notify(Arc::clone(&self.notify));
            writer
        });
        match writer.reopen(now + OPEN_TIMEOUT) {
            Ok(()) => {
                self.failed_until = None;
                let damaged = self.damaged_before + writer.counts().damaged_pieces;
                self.watch.update(|status| {
                    status.damaged_pieces = status.damaged_pieces.max(damaged);
                });
                true
            }
            Err(error) => {
                self.fail(now, error);
                false
            }
        }
    }

    /// Offers a chunk to the writer. Returns whether the writer accepted it.
    pub(crate) fn offer(&mut self, chunk: Chunk, generation: u64, now: Instant) -> bool {
        let flight = Flight {
            generation,
            ticket: chunk.ticket,
            records: chunk.meta.records,
            bytes: chunk.bytes.len(),
        };
        let Some(writer) = &mut self.writer else {
            return false;
        };
        let reason = match writer.offer(chunk) {
            Ok(()) => {
                self.flight.push_back(flight);
                return true;
            }
            Err(Rejected { reason, .. }) => reason,
        };
        match reason {
            RejectReason::Full => {}
            RejectReason::Broken(error) => self.fail(now, *error),
            RejectReason::TooLarge { max_chunk_bytes } => {
                let message = format!(
                    "a chunk of {} bytes is above the {max_chunk_bytes} that fit into the spool",
                    flight.bytes
                );
                let error =
                    TransportError::new("write to", self.endpoint(), RetryClass::Retry, message);
                self.fail(now, error);
            }
        }
        false
    }

    /// Returns the chunks that became durable since the last call, in order.
    pub(crate) fn written(&mut self, now: Instant) -> Vec<Flight> {
        if !self.flight.is_empty() {
            if let Err(error) = self.take_confirmed() {
                self.fail(now, error);
            }
        }
        std::mem::take(&mut self.durable)
    }

    /// Takes the confirmations of the writer.
    ///
    /// # Errors
    ///
    /// The writer broke. It confirms none of the chunks that are left in flight.
    pub(super) fn take_confirmed(&mut self) -> Result<(), TransportError> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        let mut delivery_reports = Vec::new();
        let result = writer.delivery_reports(&mut delivery_reports);
        let next_chunk = writer.counts().next_chunk;
        self.count_durable(delivery_reports.len(), next_chunk);
        result
    }

    /// Counts the oldest chunks in flight as spooled. `next_chunk` is the number after the last one.
    pub(super) fn count_durable(&mut self, confirmed: usize, next_chunk: u64) {
        let confirmed = confirmed.min(self.flight.len());
        if confirmed == 0 {
            return;
        }
        let durable: Vec<_> = self.flight.drain(..confirmed).collect();
        self.backoff.reset();
        self.watch.update(|status| {
            status.disk_error = None;
            for flight in &durable {
                status.add_spooled(flight.records.into(), flight.bytes);
            }
        });
        self.readable += durable.len() as u64;
        self.durable.extend(durable);
        self.promise_before(next_chunk, 0);
    }

    /// Whether chunks are being written.
    pub(crate) fn is_writing(&self) -> bool {
        !self.flight.is_empty()
    }
}

fn writer_config(config: &SpoolConfig) -> FileWriterConfig {
    let mut writer = FileWriterConfig::new(config.folder.join(CHUNKS_FOLDER));
    // Room comes back one segment at a time, so the limit is several segments.
    let share = NonZeroU64::new(config.max_bytes.get() / 8).unwrap_or(NonZeroU64::MIN);
    writer.segment_bytes = config.segment_bytes.min(share);
    writer.max_total_bytes = Some(config.max_bytes);
    writer.sync = config.sync;
    // The medium's limit applies. The file connector's own limit is the length field of a frame.
    writer.max_chunk_bytes = NonZeroUsize::MAX;
    writer
}

/// The front of the spool.
pub(crate) enum Front {
    Chunk(Delivery),
    Damaged(Damaged),
    /// There is certainly no chunk.
    Empty,
    /// The front cannot be read now.
    Unknown,
}

impl Store {
    /// Whether the next chunk cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Whether a chunk is known to be on disk that was not handed out.
    pub(crate) fn has_front(&self) -> bool {
        self.readable > 0 || self.again > 0
    }

    /// Returns the oldest chunk that was not handed out.
    pub(crate) fn front(&mut self, now: Instant) -> Front {
        // Chunks that are being written may be readable, but are counted only when they are
        // durable. Chunks that a failed write left behind were never counted. They appear when no
        // other chunk is left.
        if !self.has_front() && !self.flight.is_empty() {
            return Front::Unknown;
        }
        if !self.is_in_use() && !self.has_front() {
            return Front::Empty;
        }
        self.ensure_readable(now);
        let Some(reader) = &mut self.reader else {
            return Front::Unknown;
        };
        match reader.receive(now) {
            Ok(Received::Chunk(delivery)) => {
                self.unreadable = false;
                if delivery.redelivered {
                    self.again -= 1;
                } else if self.readable > 0 {
                    self.readable -= 1;
                } else {
                    let records = delivery.meta.map_or(0, |meta| u64::from(meta.records));
                    let bytes = delivery.bytes.len();
                    self.watch
                        .update(|status| status.add_spooled(records, bytes));
                }
                Front::Chunk(delivery)
            }
            Ok(Received::Damaged(damaged)) => {
                self.watch.update(|status| status.damaged_pieces += 1);
                Front::Damaged(damaged)
            }
            Ok(_) => {
                if !self.flight.is_empty() {
                    return Front::Unknown;
                }
                // These chunks were counted and are missing: the disk has lost them.
                let lost = std::mem::take(&mut self.readable);
                self.again = 0;
                self.watch.update(|status| {
                    status.lost_chunks += lost;
                    take(&mut status.stats.waiting_chunks, lost);
                });
                Front::Empty
            }
            Err(error) => {
                self.unreadable = true;
                self.fail(now, error);
                Front::Unknown
            }
        }
    }

    fn ensure_readable(&mut self, now: Instant) {
        if self.reader.is_some() || self.failed_until.is_some_and(|until| until > now) {
            return;
        }
        let mut config = FileReaderConfig::new(self.chunks_folder());
        config.follow = true;
        config.consumer = CONSUMER.parse().ok();
        // The reader must not commit by itself: a settlement must not fail because the disk is
        // full.
        config.commit_interval = Duration::MAX;
        config.keep = Keep::Consumed;
        config.max_chunk_bytes = NonZeroUsize::MAX;
        match FileReader::open(config) {
            Ok(reader) => self.reader = Some(Box::new(reader)),
            Err(error) => {
                self.unreadable = true;
                self.fail(now, error);
            }
        }
    }

    /// Settles a chunk that was handed out.
    pub(crate) fn settle(&mut self, token: Token, verdict: Verdict) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        if verdict == Verdict::Retry {
            self.again += 1;
        }
        // Settling writes nothing, so it cannot fail.
        let settled = reader.settle(token, verdict);
        drop(settled);
    }

    /// Writes the position, and removes the segments before it.
    pub(crate) fn commit(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let Err(error) = reader.commit_now() else {
            return self.promise(0);
        };
        // The disk is full. Remove the segments that were sent on all the same: a position in a
        // removed segment means the next segment.
        let settled = reader.watermark().segment;
        self.remove_segments(|segment| segment < settled);
        self.promise(settled);
        self.note(error);
    }
}
