//! Writes frames to the newest segment: rotation, limits, and a clean end after every failure.

mod room;
mod rotation;

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use baler_common::transport::{Chunk, RetryClass, TransportError};

use crate::config::FileWriterConfig;
use crate::error::{endpoint, io_error};
use crate::folder::{SegmentEntry, lock_for_writing, make_folder, segment_name};
use crate::recovery::recover;
use crate::segment::{FRAME_HEADER_BYTES, FrameHeader, SEGMENT_HEADER_BYTES};
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
}
