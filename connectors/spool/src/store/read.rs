//! Read in front: chunks on their way from the disk.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use baler_common::transport::{ChunkReader as _, Damaged, Delivery, Received, Token, Verdict};
use baler_connector_file::{FileReader, FileReaderConfig, Keep};

use super::{CONSUMER, Store};
use crate::watch::{add, take};

/// What the front of the spool has.
pub(crate) enum Front {
    Chunk(Delivery),
    Damaged(Damaged),
    /// Nothing, for sure.
    Empty,
    /// What is there cannot be told now.
    Unknown,
}

impl Store {
    /// Whether what is there cannot be read.
    pub(crate) fn is_unreadable(&self) -> bool {
        self.unreadable
    }

    /// Whether a chunk is known to be there that was not handed out.
    pub(crate) fn has_front(&self) -> bool {
        self.readable > 0 || self.again > 0
    }

    /// The oldest chunk that was not handed out.
    pub(crate) fn front(&mut self, now: Instant) -> Front {
        // What is being written may be there already, but is counted when it is durable. What a
        // failed write left behind was never counted: it shows when nothing else is left.
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
                    take(&mut self.again, 1);
                } else if self.readable > 0 {
                    take(&mut self.readable, 1);
                } else {
                    let records = delivery.meta.map_or(0, |meta| u64::from(meta.records));
                    self.watch.update(|status| {
                        add(&mut status.stats.spooled_chunks, 1);
                        add(&mut status.stats.spooled_records, records);
                        add(&mut status.stats.waiting_chunks, 1);
                        add(&mut status.stats.waiting_bytes, delivery.bytes.len() as u64);
                        add(&mut status.waiting_records, records);
                    });
                }
                Front::Chunk(delivery)
            }
            Ok(Received::Damaged(damaged)) => {
                self.watch
                    .update(|status| add(&mut status.damaged_pieces, 1));
                Front::Damaged(damaged)
            }
            Ok(_) => {
                if !self.flight.is_empty() {
                    return Front::Unknown;
                }
                // Counted, and not there: the disk has lost it.
                let lost = std::mem::take(&mut self.readable);
                self.again = 0;
                self.watch.update(|status| {
                    add(&mut status.lost_chunks, lost);
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
        // Not by itself: a settlement must not fail because the disk is full.
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

    /// Says what became of a chunk that was handed out.
    pub(crate) fn settle(&mut self, token: Token, verdict: Verdict) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        if verdict == Verdict::Retry {
            add(&mut self.again, 1);
        }
        // It writes nothing, so nothing can go wrong.
        let settled = reader.settle(token, verdict);
        drop(settled);
    }

    /// Writes the position, and removes the segments before it.
    pub(crate) fn commit(&mut self) {
        let Some(reader) = &mut self.reader else {
            return;
        };
        let Err(error) = reader.commit_now() else {
            return;
        };
        // A full disk: what was sent on goes all the same. A position in a segment that is gone
        // means the one after it.
        let settled = reader.watermark().segment;
        self.remove_segments(|segment| segment < settled);
        self.note(error);
    }
}
