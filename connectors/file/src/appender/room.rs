//! The limits of the folder: what is removed, and when nothing more is taken.

use std::{fs, io};

use baler_common::transport::{RetryClass, TransportError};

use super::Appender;
use crate::config::{FullPolicy, Keep};
use crate::consumed::remove_consumed;
use crate::error::{endpoint, io_error};
use crate::folder::{SegmentEntry, list_segments, segment_name};
use crate::segment::SEGMENT_HEADER_BYTES;

impl Appender {
    /// Finishes the segment when it is due, and sees to the limits.
    pub(super) fn make_room(&mut self, frame_bytes: u64) -> Result<(), TransportError> {
        let staged = self.staging.bytes.len() as u64;
        let due = self.current.as_ref().is_some_and(|segment| {
            let bytes = segment.sound_bytes.saturating_add(staged);
            let holds_chunks = bytes > SEGMENT_HEADER_BYTES as u64;
            let too_large = bytes.saturating_add(frame_bytes) > self.config.segment_bytes.get();
            holds_chunks && (too_large || segment.begun.elapsed() >= self.config.segment_age)
        });
        if due {
            self.finish_segment()?;
            self.remove_consumed()?;
        }
        let bytes = frame_bytes.saturating_add(SEGMENT_HEADER_BYTES as u64);
        if !self.is_full(bytes.saturating_add(self.staging.bytes.len() as u64)) {
            return Ok(());
        }
        // Somebody may have removed segments, or settled them.
        self.flush()?;
        self.remove_consumed()?;
        self.list_again()?;
        match self.config.full {
            FullPolicy::Refuse => {
                self.wanted_bytes = bytes;
                self.refuse_if_full(bytes)
            }
            FullPolicy::DropOldest => {
                while self.is_full(bytes) && self.segments.len() > 1 {
                    self.drop_oldest()?;
                }
                match self.is_full(bytes) && !self.segments.is_empty() {
                    // Only the current segment is left, and it is too large by itself.
                    true => {
                        self.finish_segment()?;
                        self.drop_oldest()
                    }
                    false => Ok(()),
                }
            }
        }
    }

    pub(super) fn refuse_if_full(&self, bytes: u64) -> Result<(), TransportError> {
        if self.config.full == FullPolicy::DropOldest || !self.is_full(bytes) {
            return Ok(());
        }
        let used: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let message = format!(
            "the folder is full: {} segments with {used} bytes; remove segments or raise \
             max_total_bytes or max_segments",
            self.segments.len()
        );
        let endpoint = endpoint(&self.config.folder);
        Err(TransportError::new(
            "write to",
            endpoint,
            RetryClass::Retry,
            message,
        ))
    }

    fn is_full(&self, more_bytes: u64) -> bool {
        let used: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        let total = used.saturating_add(more_bytes);
        let segments = self.segments.len() + usize::from(self.current.is_none());
        self.config
            .max_total_bytes
            .is_some_and(|most| total > most.get())
            || self
                .config
                .max_segments
                .is_some_and(|most| segments > most.get())
    }

    /// Removes what all consumers have settled, if that is asked for.
    pub(super) fn remove_consumed(&mut self) -> Result<(), TransportError> {
        if self.config.keep == Keep::All {
            return Ok(());
        }
        let folder = &self.config.folder;
        let removed =
            remove_consumed(folder).map_err(|error| io_error("remove from", folder, error))?;
        if removed.segments > 0 {
            self.counters.consumed_segments.add(removed.segments);
            self.counters.consumed_bytes.add(removed.bytes);
            self.list_again()?;
        }
        Ok(())
    }

    fn list_again(&mut self) -> Result<(), TransportError> {
        let listed = list_segments(&self.config.folder)
            .map_err(|error| io_error("list", &self.config.folder, error))?;
        let newest = self.segments.back().copied();
        let is_there = |known: &SegmentEntry| {
            let same = |entry: &SegmentEntry| entry.first_chunk == known.first_chunk;
            listed.iter().any(same)
        };
        self.segments.retain(is_there);
        if newest.is_some_and(|newest| !is_there(&newest)) {
            // The file that we write to has no name any more.
            self.current = None;
        }
        Ok(())
    }

    fn drop_oldest(&mut self) -> Result<(), TransportError> {
        let Some(oldest) = self.segments.pop_front() else {
            return Ok(());
        };
        let path = self.config.folder.join(segment_name(oldest.first_chunk));
        match fs::remove_file(&path) {
            // A reader that keeps nothing was quicker.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed.map_err(|error| io_error("remove", &path, error))?,
        }
        let next = self
            .segments
            .front()
            .map_or(self.next_chunk, |next| next.first_chunk);
        self.counters.dropped_segments.add(1);
        self.counters.dropped_bytes.add(oldest.bytes);
        self.counters
            .dropped_chunks
            .add(next.saturating_sub(oldest.first_chunk));
        self.sync_folder()
    }
}
