//! Writes frames to the newest segment: rotation, limits, and a clean end after every failure.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};

use crate::{FileLock, if_found, sync_folder};
use baler_common::transport::{Chunk, Epoch, RetryClass, TransportError};

use super::recovery::recover;
use super::stats::{WriterStats, lock_stats};
use crate::segments::client::{LOCK_FILE, SegmentEntry, list_segments, make_folder, segment_name};
use crate::segments::config::{FileWriterConfig, FullPolicy, SyncPolicy};
use crate::segments::error::{endpoint, io_error};
use crate::segments::headers::{
    FRAME_HEADER_BYTES, FrameHeader, SEGMENT_HEADER_BYTES, SegmentHeader,
};

/// The size at which collected frames are written.
const BUFFER_BYTES: usize = 256 << 10;

/// The writing end of a folder. One thread owns it; all its calls may block on the disk.
#[derive(Debug)]
pub struct Appender {
    config: FileWriterConfig,
    stats: Arc<Mutex<WriterStats>>,
    /// The segments, oldest first. The last one is `current`, if a segment is open.
    segments: VecDeque<SegmentEntry>,
    current: Option<OpenSegment>,
    next_chunk: u64,
    /// Frames that are not written yet.
    buffer: Vec<u8>,
    /// The end of each frame in `buffer`.
    frame_ends: Vec<usize>,
    /// The number of chunks whose frames are complete in the file, since the last
    /// [`Appender::take_written`].
    written: usize,
    _lock: FileLock,
}

#[derive(Debug)]
struct OpenSegment {
    file: File,
    path: PathBuf,
    tag: u32,
    /// The length of the file up to which it consists of whole frames.
    sound_bytes: u64,
    begun: Instant,
    unsynced: bool,
}

impl Appender {
    /// Makes and locks the folder, and moves aside the torn end that a crash left. Checks that
    /// there is room for a chunk that was refused before.
    pub(super) fn open(
        config: &FileWriterConfig,
        stats: Arc<Mutex<WriterStats>>,
    ) -> Result<Self, TransportError> {
        let folder = &config.folder;
        let fail = |error| io_error("open", folder, error);
        make_folder(folder).map_err(fail)?;
        let lock_file = folder.join(LOCK_FILE);
        let lock =
            FileLock::acquire(&lock_file).map_err(|error| io_error("lock", folder, error))?;
        let recovered = recover(folder, &stats).map_err(fail)?;
        let mut appender = Self {
            config: config.clone(),
            stats,
            segments: recovered.segments.into(),
            current: None,
            next_chunk: recovered.next_chunk,
            buffer: Vec::new(),
            frame_ends: Vec::new(),
            written: 0,
            _lock: lock,
        };
        if let Some((header, newest)) = recovered.empty.zip(appender.segments.back()) {
            let path = folder.join(segment_name(newest.first_chunk));
            let file = OpenOptions::new().append(true).open(&path).map_err(fail)?;
            appender.current = Some(OpenSegment::new(file, path, header.tag));
        }
        let wanted_bytes = lock_stats(&appender.stats).wanted_bytes;
        if config.full == FullPolicy::Refuse && appender.is_full(wanted_bytes) {
            return Err(appender.full_error());
        }
        appender.count_written();
        Ok(appender)
    }

    /// Publishes the number of the next chunk.
    pub(super) fn count_written(&self) {
        lock_stats(&self.stats).next_chunk = self.next_chunk;
    }

    /// Returns the number of chunks that were written since the last call.
    pub(super) fn take_written(&mut self) -> usize {
        std::mem::take(&mut self.written)
    }

    /// Writes these chunks. After an error the file ends with a whole frame, and
    /// [`take_written`](Self::take_written) returns how many chunks were written before it.
    pub(super) fn append(&mut self, chunks: &[Chunk]) -> Result<(), TransportError> {
        for chunk in chunks {
            let frame_bytes = chunk.bytes.len() as u64 + FRAME_HEADER_BYTES as u64;
            self.make_room(frame_bytes)?;
            self.add_frame(chunk)?;
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        self.flush()
    }

    /// Forces the written frames to stable storage, if the settings ask for durability.
    pub(super) fn sync(&mut self) -> Result<(), TransportError> {
        let is_durable = self.config.sync == SyncPolicy::Chunk;
        let unsynced = |segment: &&mut OpenSegment| is_durable && segment.unsynced;
        let Some(segment) = self.current.as_mut().filter(unsynced) else {
            return Ok(());
        };
        lock_stats(&self.stats).syncs += 1;
        // A reader needs the length and the data, but not the times of the file.
        if let Err(error) = segment.file.sync_data() {
            // The kernel may have dropped the pages: a second call would report a false success.
            let error = io_error("sync", &segment.path, error);
            self.current = None;
            return Err(error);
        }
        segment.unsynced = false;
        Ok(())
    }

    fn add_frame(&mut self, chunk: &Chunk) -> Result<(), TransportError> {
        let number = self.next_chunk;
        let segment = match &mut self.current {
            Some(segment) => segment,
            None => self.begin_segment()?,
        };
        let header =
            FrameHeader::new(segment.tag, number, chunk.meta, &chunk.bytes).map_err(|error| {
                let endpoint = endpoint(&segment.path);
                TransportError::caused_by("write to", endpoint, RetryClass::Final, error)
            })?;
        self.buffer.extend_from_slice(&header.encode());
        self.buffer.extend_from_slice(&chunk.bytes);
        self.frame_ends.push(self.buffer.len());
        self.next_chunk += 1;
        Ok(())
    }

    /// Writes the buffer. After a failure, truncates the part of a frame that was written.
    fn flush(&mut self) -> Result<(), TransportError> {
        let ends = std::mem::take(&mut self.frame_ends);
        let Some(segment) = self.current.as_mut().filter(|_| !ends.is_empty()) else {
            return Ok(());
        };
        segment.unsynced = true;
        let outcome = segment.file.write_all(&self.buffer);
        let buffered = self.buffer.len();
        self.buffer.clear();
        self.buffer.shrink_to(4 * BUFFER_BYTES);
        if outcome.is_ok() && !segment.path.exists() {
            // Another process removed the file: its chunks are lost and must not be confirmed.
            let error = io_error("write to", &segment.path, io::ErrorKind::NotFound.into());
            self.current = None;
            return Err(error);
        }
        let length = match &outcome {
            Ok(()) => segment.sound_bytes + buffered as u64,
            Err(_) => segment.file.metadata().map_or(0, |metadata| metadata.len()),
        };
        let frames = ends.partition_point(|end| segment.sound_bytes + *end as u64 <= length);
        let last = ends.iter().take(frames).next_back();
        segment.sound_bytes += last.map_or(0, |end| *end as u64);
        if let Some(entry) = self.segments.back_mut() {
            entry.bytes = segment.sound_bytes;
        }
        self.written += frames;
        self.next_chunk -= (ends.len() - frames) as u64;
        let Err(error) = outcome else {
            return Ok(());
        };
        let error = io_error("write to", &segment.path, error);
        if segment.file.set_len(segment.sound_bytes).is_err() {
            // No frame may follow the torn frame. Readers report it as damage once there is a newer
            // segment, and recovery moves it aside.
            self.current = None;
        }
        Err(error)
    }

    fn begin_segment(&mut self) -> Result<&mut OpenSegment, TransportError> {
        let first_chunk = self.next_chunk;
        let path = self.config.folder.join(segment_name(first_chunk));
        let fail = |error| io_error("create", &path, error);
        let made = Epoch::at(SystemTime::now());
        let header = SegmentHeader {
            first_chunk,
            created_unix_ns: made.start_unix_ns,
            // No other segment is likely to have it.
            tag: made.random,
        };
        let mut options = OpenOptions::new();
        let options = options.append(true).create_new(true);
        let mut file = options.open(&path).map_err(fail)?;
        let begun = file.write_all(&header.encode());
        if let Err(error) = begun.and_then(|()| self.sync_entries()) {
            // It contains no chunk. If it cannot be removed either, recovery removes it.
            drop(fs::remove_file(&path));
            return Err(fail(error));
        }
        self.segments.push_back(SegmentEntry {
            first_chunk,
            bytes: SEGMENT_HEADER_BYTES as u64,
        });
        Ok(self
            .current
            .insert(OpenSegment::new(file, path, header.tag)))
    }

    fn finish_segment(&mut self) -> Result<(), TransportError> {
        self.flush()?;
        // The next segment must not be on disk before this one is.
        self.sync()?;
        self.current = None;
        Ok(())
    }

    /// Forces the entries of the folder to stable storage, if the settings ask for durability.
    fn sync_entries(&self) -> io::Result<()> {
        match self.config.sync {
            SyncPolicy::None => Ok(()),
            SyncPolicy::Chunk => sync_folder(&self.config.folder),
        }
    }

    /// Finishes the segment when it is due, and keeps the folder within its limits.
    fn make_room(&mut self, frame_bytes: u64) -> Result<(), TransportError> {
        let buffered = self.buffer.len() as u64;
        let due = self.current.as_ref().is_some_and(|segment| {
            let bytes = segment.sound_bytes + buffered;
            let holds_chunks = bytes > SEGMENT_HEADER_BYTES as u64;
            let too_large = bytes + frame_bytes > self.config.segment_bytes.get();
            holds_chunks && (too_large || segment.begun.elapsed() >= self.config.segment_age)
        });
        if due {
            self.finish_segment()?;
        }
        let bytes = frame_bytes + SEGMENT_HEADER_BYTES as u64;
        if !self.is_full(bytes + self.buffer.len() as u64) {
            return Ok(());
        }
        // A consumer may have removed settled segments.
        self.flush()?;
        self.list_again()?;
        if self.config.full == FullPolicy::Refuse && self.is_full(bytes) {
            lock_stats(&self.stats).wanted_bytes = bytes;
            return Err(self.full_error());
        }
        while self.is_full(bytes) && !self.segments.is_empty() {
            if self.segments.len() == 1 {
                // Only the current segment is left.
                self.finish_segment()?;
            }
            self.drop_oldest()?;
        }
        Ok(())
    }

    fn full_error(&self) -> TransportError {
        let message = format!(
            "the folder is full: {} segments with {} bytes; remove segments or raise \
             max_total_bytes",
            self.segments.len(),
            self.used_bytes()
        );
        let endpoint = endpoint(&self.config.folder);
        TransportError::new("write to", endpoint, RetryClass::Retry, message)
    }

    fn used_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.bytes).sum()
    }

    fn is_full(&self, more_bytes: u64) -> bool {
        let bytes = self.used_bytes() + more_bytes;
        let most = self.config.max_total_bytes;
        most.is_some_and(|most| bytes > most.get())
    }

    /// Forgets segments that are no longer in the folder.
    fn list_again(&mut self) -> Result<(), TransportError> {
        let listed = list_segments(&self.config.folder)
            .map_err(|error| io_error("list", &self.config.folder, error))?;
        let newest = self.segments.back().map(|newest| newest.first_chunk);
        let is_listed = |chunk: u64| listed.iter().any(|entry| entry.first_chunk == chunk);
        self.segments.retain(|known| is_listed(known.first_chunk));
        if newest != self.segments.back().map(|newest| newest.first_chunk) {
            // The open file was removed from the folder.
            self.current = None;
        }
        Ok(())
    }

    fn drop_oldest(&mut self) -> Result<(), TransportError> {
        let Some(oldest) = self.segments.pop_front() else {
            return Ok(());
        };
        let path = self.config.folder.join(segment_name(oldest.first_chunk));
        // A consumer may have removed it already.
        if_found(fs::remove_file(&path)).map_err(|error| io_error("remove", &path, error))?;
        let next = self.segments.front().map(|next| next.first_chunk);
        let end = next.unwrap_or(self.next_chunk);
        let mut stats = lock_stats(&self.stats);
        stats.dropped_segments += 1;
        stats.dropped_bytes += oldest.bytes;
        stats.dropped_chunks += end - oldest.first_chunk;
        drop(stats);
        self.sync_entries()
            .map_err(|error| io_error("sync", &self.config.folder, error))
    }
}

impl OpenSegment {
    /// Creates a segment that contains only its header.
    fn new(file: File, path: PathBuf, tag: u32) -> Self {
        Self {
            file,
            path,
            tag,
            sound_bytes: SEGMENT_HEADER_BYTES as u64,
            begun: Instant::now(),
            unsynced: true,
        }
    }
}
