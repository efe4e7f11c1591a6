//! Written behind: chunks on their way to the disk.

use std::num::{NonZeroU64, NonZeroUsize};
use std::sync::Arc;
use std::time::Instant;

use baler_common::transport::{
    Chunk, ChunkWriter as _, RejectReason, Rejected, RetryClass, TransportError,
};
use baler_connector_file::{FileWriter, FileWriterConfig, Keep};

use super::{OPEN_TIMEOUT, Store};
use crate::CHUNKS_FOLDER;
use crate::config::SpoolConfig;
use crate::watch::add;

/// A chunk that is being written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flight {
    /// Of which life of the owner's tickets.
    pub(crate) generation: u64,
    pub(crate) ticket: u64,
    records: u32,
    bytes: usize,
}

impl Store {
    /// Opens the writer if it is not; says whether chunks can be offered.
    pub(crate) fn ensure_writable(&mut self, now: Instant) -> bool {
        if self.failed_until.is_some_and(|until| until > now) {
            return false;
        }
        if self.writer.is_some() && self.failed_until.is_none() {
            return true;
        }
        if self.lock.is_none() {
            // Another process that has it meanwhile is an error of the disk at this point.
            if let Err(error) = self.prepare(now) {
                self.fail(now, error);
            }
            if self.lock.is_none() || self.failed_until.is_some_and(|until| until > now) {
                return false;
            }
        }
        let writer = self.writer.get_or_insert_with(|| {
            let mut writer = FileWriter::new(writer_config(&self.config));
            writer.set_notify(Arc::clone(&self.bell));
            writer
        });
        match writer.reopen(now + OPEN_TIMEOUT) {
            Ok(()) => {
                self.failed_until = None;
                let damaged = self
                    .damaged_before
                    .saturating_add(writer.stats().damaged_pieces);
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

    /// Offers a chunk to the writer; says whether it was taken.
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

    /// What became durable since the last call, in order.
    pub(crate) fn written(&mut self, now: Instant) -> Vec<Flight> {
        let Some(writer) = &mut self.writer else {
            return Vec::new();
        };
        if self.flight.is_empty() {
            return Vec::new();
        }
        let mut confirmations = Vec::new();
        let result = writer.confirmations(&mut confirmations);
        let count = confirmations.len().min(self.flight.len());
        let written: Vec<_> = self.flight.drain(..count).collect();
        if !written.is_empty() {
            self.failures = 0;
            self.watch.update(|status| {
                status.disk_error = None;
                for flight in &written {
                    add(&mut status.stats.spooled_chunks, 1);
                    add(&mut status.stats.spooled_records, u64::from(flight.records));
                    add(&mut status.stats.waiting_chunks, 1);
                    add(&mut status.stats.waiting_bytes, flight.bytes as u64);
                    add(&mut status.waiting_records, u64::from(flight.records));
                }
            });
            self.readable = self.readable.saturating_add(written.len() as u64);
        }
        if let Err(error) = result {
            self.fail(now, error);
        }
        written
    }

    /// Whether chunks are being written.
    pub(crate) fn is_writing(&self) -> bool {
        !self.flight.is_empty()
    }
}

fn writer_config(config: &SpoolConfig) -> FileWriterConfig {
    let mut writer = FileWriterConfig::new(config.folder.join(CHUNKS_FOLDER));
    // Room comes back by the segment, so the bound is several of them.
    let share = NonZeroU64::new(config.max_bytes.get() / 8).unwrap_or(NonZeroU64::MIN);
    writer.segment_bytes = config.segment_bytes.min(share);
    writer.max_total_bytes = Some(config.max_bytes);
    writer.sync = config.sync;
    writer.keep = Keep::Consumed;
    // The medium's limit holds; the file connector's own is that of a frame's length.
    writer.max_chunk_bytes = NonZeroUsize::MAX;
    writer
}
