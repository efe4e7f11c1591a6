//! Writes frames to the newest segment: rotation, limits, and a clean end after every failure.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use baler_common::transport::{Chunk, RetryClass, TransportError};

use crate::config::{FileWriterConfig, FullPolicy, Keep, SyncPolicy};
use crate::consumed::remove_consumed;
use crate::error::{endpoint, io_error};
use crate::folder::{
    SegmentEntry, list_segments, lock_for_writing, make_folder, segment_name, sync_folder,
};
use crate::recovery::recover;
use crate::segment::{FRAME_HEADER_BYTES, FrameHeader, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::stats::WriterCounters;

/// Small chunks are gathered up to this many bytes before they are written.
const STAGING_BYTES: usize = 256 << 10;

/// The writing end of a folder. One thread owns it; all its calls may block on the disk.
#[derive(Debug)]
pub(crate) struct Appender {
    config: FileWriterConfig,
    counters: Arc<WriterCounters>,
    /// The segments, oldest first; the last one is `current`, if that is open.
    segments: VecDeque<SegmentEntry>,
    current: Option<Segment>,
    next_chunk: u64,
    staging: Staging,
    /// Chunks whose frames are whole in the file and not yet told to the owner.
    written: usize,
    /// What the folder has to have room for before it is worth opening it again.
    wanted_bytes: u64,
    _lock: File,
}

#[derive(Debug)]
struct Segment {
    file: File,
    path: PathBuf,
    tag: u32,
    /// Up to here the file consists of whole frames.
    sound_bytes: u64,
    begun: Instant,
    unsynced: bool,
}

#[derive(Debug, Default)]
struct Staging {
    bytes: Vec<u8>,
    /// Where each frame ends in `bytes`.
    ends: Vec<usize>,
}

impl Appender {
    /// Makes and locks the folder, moves aside what a crash left torn, and checks that there is
    /// room for `wanted_bytes`.
    pub(crate) fn open(
        config: &FileWriterConfig,
        counters: Arc<WriterCounters>,
        wanted_bytes: u64,
    ) -> Result<Self, TransportError> {
        let folder = &config.folder;
        let fail = |error| io_error("open", folder, error);
        make_folder(folder).map_err(fail)?;
        let lock = lock_for_writing(folder)?;
        let recovered = recover(folder, &counters).map_err(fail)?;
        let mut appender = Self {
            config: config.clone(),
            counters,
            segments: recovered.segments.into(),
            current: None,
            next_chunk: recovered.next_chunk,
            staging: Staging::default(),
            written: 0,
            wanted_bytes,
            _lock: lock,
        };
        if let Some((header, newest)) = recovered.empty.zip(appender.segments.back()) {
            let path = folder.join(segment_name(newest.first_chunk));
            let file = OpenOptions::new().append(true).open(&path).map_err(fail)?;
            appender.current = Some(Segment {
                file,
                path,
                tag: header.tag,
                sound_bytes: SEGMENT_HEADER_BYTES as u64,
                begun: Instant::now(),
                unsynced: true,
            });
        }
        appender.remove_consumed()?;
        appender.refuse_if_full(wanted_bytes)?;
        Ok(appender)
    }

    /// How many chunks were written since the last call, the oldest first.
    pub(crate) fn take_written(&mut self) -> usize {
        std::mem::take(&mut self.written)
    }

    /// What the folder has to have room for before it is worth opening it again.
    pub(crate) const fn wanted_bytes(&self) -> u64 {
        self.wanted_bytes
    }

    /// Writes these chunks. After an error the file ends with a whole frame, and
    /// [`take_written`](Self::take_written) says how many chunks were written before it.
    pub(crate) fn append(&mut self, chunks: &[Chunk]) -> Result<(), TransportError> {
        for chunk in chunks {
            let frame_bytes = (chunk.bytes.len() as u64).saturating_add(FRAME_HEADER_BYTES as u64);
            self.make_room(frame_bytes)?;
            self.stage(chunk)?;
            if self.staging.bytes.len() >= STAGING_BYTES {
                self.flush()?;
            }
        }
        self.flush()
    }

    /// Forces what was written to stable storage.
    pub(crate) fn sync(&mut self) -> Result<(), TransportError> {
        let Some(segment) = self.current.as_mut().filter(|segment| segment.unsynced) else {
            return Ok(());
        };
        self.counters.syncs.add(1);
        // Length and data are all that a reader needs; the times of the file are not.
        if let Err(error) = segment.file.sync_data() {
            // The kernel may have dropped the pages: a second call would succeed and lie.
            let error = io_error("sync", &segment.path, error);
            self.current = None;
            return Err(error);
        }
        segment.unsynced = false;
        Ok(())
    }

    fn stage(&mut self, chunk: &Chunk) -> Result<(), TransportError> {
        let number = self.next_chunk;
        let segment = match &mut self.current {
            Some(segment) => segment,
            None => self.begin_segment()?,
        };
        let header =
            FrameHeader::new(segment.tag, number, chunk.meta, &chunk.bytes).map_err(|error| {
                TransportError::caused_by(
                    "write to",
                    endpoint(&segment.path),
                    RetryClass::Final,
                    error,
                )
            })?;
        self.staging.bytes.extend_from_slice(&header.encode());
        self.staging.bytes.extend_from_slice(&chunk.bytes);
        self.staging.ends.push(self.staging.bytes.len());
        self.next_chunk = self.next_chunk.saturating_add(1);
        Ok(())
    }

    /// Writes what is staged. If that fails, the part of a frame that came through is cut off.
    fn flush(&mut self) -> Result<(), TransportError> {
        let staged = self.staging.ends.len();
        let Some(segment) = self.current.as_mut().filter(|_| staged > 0) else {
            return Ok(());
        };
        segment.unsynced = true;
        let outcome = segment.file.write_all(&self.staging.bytes);
        if outcome.is_ok() && !segment.path.exists() {
            // Somebody removed the file: what is written to it is gone, and must not be confirmed.
            self.staging = Staging::default();
            let error = io_error("write to", &segment.path, io::ErrorKind::NotFound.into());
            self.current = None;
            return Err(error);
        }
        let (frames, bytes) = match &outcome {
            Ok(()) => (staged, self.staging.bytes.len()),
            Err(_) => {
                let length = segment.file.metadata().map_or(0, |metadata| metadata.len());
                let arrived = length.saturating_sub(segment.sound_bytes);
                let whole = |end: &&usize| **end as u64 <= arrived;
                let frames = self.staging.ends.iter().take_while(whole).count();
                let last = frames
                    .checked_sub(1)
                    .and_then(|last| self.staging.ends.get(last));
                (frames, last.copied().unwrap_or(0))
            }
        };
        segment.sound_bytes = segment.sound_bytes.saturating_add(bytes as u64);
        if let Some(entry) = self.segments.back_mut() {
            entry.bytes = segment.sound_bytes;
        }
        self.written = self.written.saturating_add(frames);
        self.counters.chunks.add(frames as u64);
        self.counters.bytes.add(bytes as u64);
        self.next_chunk = self.next_chunk.saturating_sub((staged - frames) as u64);
        self.staging.bytes.clear();
        self.staging.bytes.shrink_to(4 * STAGING_BYTES);
        self.staging.ends.clear();
        let Err(error) = outcome else {
            return Ok(());
        };
        let error = io_error("write to", &segment.path, error);
        if segment.file.set_len(segment.sound_bytes).is_err() {
            // Then nothing may follow the torn frame: readers take it for damage as soon as there
            // is a newer segment, and recovery moves it aside.
            self.current = None;
        }
        Err(error)
    }

    /// Finishes the segment when it is due, and sees to the limits.
    fn make_room(&mut self, frame_bytes: u64) -> Result<(), TransportError> {
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

    fn refuse_if_full(&self, bytes: u64) -> Result<(), TransportError> {
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
    fn remove_consumed(&mut self) -> Result<(), TransportError> {
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

    fn finish_segment(&mut self) -> Result<(), TransportError> {
        self.flush()?;
        if self.config.sync != SyncPolicy::None {
            // The next segment must not be on disk when this one is not.
            self.sync()?;
        }
        self.current = None;
        Ok(())
    }

    fn begin_segment(&mut self) -> Result<&mut Segment, TransportError> {
        let first_chunk = self.next_chunk;
        let path = self.config.folder.join(segment_name(first_chunk));
        let fail = |error| io_error("create", &path, error);
        let since_epoch = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let header = SegmentHeader {
            first_chunk,
            created_unix_ns: u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX),
            tag: random_tag(),
        };
        let mut file = OpenOptions::new()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(fail)?;
        let begun = file
            .write_all(&header.encode())
            .and_then(|()| match self.config.sync {
                SyncPolicy::None => Ok(()),
                SyncPolicy::Chunk | SyncPolicy::Interval(_) => sync_folder(&self.config.folder),
            });
        if let Err(error) = begun {
            // There is no chunk in it. If it cannot be removed either, recovery will do it.
            drop(fs::remove_file(&path));
            return Err(fail(error));
        }
        self.counters.segments.add(1);
        self.segments.push_back(SegmentEntry {
            first_chunk,
            bytes: SEGMENT_HEADER_BYTES as u64,
        });
        Ok(self.current.insert(Segment {
            file,
            path,
            tag: header.tag,
            sound_bytes: SEGMENT_HEADER_BYTES as u64,
            begun: Instant::now(),
            unsynced: true,
        }))
    }

    fn sync_folder(&self) -> Result<(), TransportError> {
        match self.config.sync {
            SyncPolicy::None => Ok(()),
            SyncPolicy::Chunk | SyncPolicy::Interval(_) => sync_folder(&self.config.folder)
                .map_err(|error| io_error("sync", &self.config.folder, error)),
        }
    }
}

/// A number that no other segment is likely to have. The standard library seeds its hash maps from
/// the operating system's randomness.
fn random_tag() -> u32 {
    let [a, b, c, d, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}
