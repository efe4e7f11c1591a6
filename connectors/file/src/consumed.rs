//! What a folder's consumers have behind them and before them: what may go, and what waits.

use std::fs;
use std::io;
use std::path::Path;

use crate::consumer::{self, ConsumerName, Position};
use crate::folder::{
    SegmentEntry, list_segments, segment_name, sync_folder, while_no_writer_has_it,
};
use crate::scan::{SegmentScanner, Step, Tail};
use crate::segment::{FrameHeader, SEGMENT_HEADER_BYTES};

/// Segments that were removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removed {
    /// How many.
    pub segments: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// Chunks that a consumer has not settled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backlog {
    /// How many.
    pub chunks: u64,
    /// Records in them, as far as their frames tell.
    pub records: u64,
    /// Their bytes, without the frames.
    pub bytes: u64,
}

/// Removes the segments that every registered consumer has settled to their end and that no
/// writer is in. Without a registered consumer nothing is removed.
///
/// A consumer is registered as soon as a reader was opened with its name, and until its files are
/// removed from `consumers/`. The newest segment goes only while no writer has the folder open.
///
/// # Errors
///
/// The folder cannot be read, or a segment cannot be removed.
pub fn remove_consumed(folder: &Path) -> io::Result<Removed> {
    let Some(settled) = consumer::slowest(folder)? else {
        return Ok(Removed::default());
    };
    let mut removed = remove_settled(folder, settled, false)?;
    while_no_writer_has_it(folder, || {
        let last = remove_settled(folder, settled, true)?;
        removed.segments = removed.segments.saturating_add(last.segments);
        removed.bytes = removed.bytes.saturating_add(last.bytes);
        Ok(())
    })?;
    if removed.segments > 0 {
        sync_folder(folder)?;
    }
    Ok(removed)
}

/// Removes segments before this position; the newest one only if it is asked for.
fn remove_settled(folder: &Path, settled: Position, newest_too: bool) -> io::Result<Removed> {
    let segments = list_segments(folder)?;
    let newest = segments.last().map(|newest| newest.first_chunk);
    let mut removed = Removed::default();
    for segment in segments {
        let is_newest = newest == Some(segment.first_chunk);
        if is_settled(&segment, settled) && (newest_too || !is_newest) {
            match fs::remove_file(folder.join(segment_name(segment.first_chunk))) {
                Ok(()) => {
                    removed.segments = removed.segments.saturating_add(1);
                    removed.bytes = removed.bytes.saturating_add(segment.bytes);
                }
                // Somebody else removed it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(removed)
}

fn is_settled(segment: &SegmentEntry, settled: Position) -> bool {
    let holds_chunks = segment.bytes > SEGMENT_HEADER_BYTES as u64;
    segment.first_chunk < settled.segment
        || (segment.first_chunk == settled.segment
            && holds_chunks
            && segment.bytes <= settled.offset)
}

/// Counts what a consumer has not settled, from the headers of the frames.
///
/// # Errors
///
/// The folder or a segment cannot be read. A folder that does not exist has no backlog.
pub fn backlog(folder: &Path, name: &ConsumerName) -> io::Result<Backlog> {
    let from = consumer::position(folder, name);
    let segments = match list_segments(folder) {
        Ok(segments) => segments,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut backlog = Backlog::default();
    for segment in segments {
        if segment.first_chunk < from.segment {
            continue;
        }
        let mut offset = match segment.first_chunk == from.segment {
            true => from.offset,
            false => 0,
        };
        let path = folder.join(segment_name(segment.first_chunk));
        let mut scanner = SegmentScanner::open(&path, 0)?;
        // Headers tell all that is asked here.
        scanner.skip_below(u64::MAX);
        loop {
            offset = match scanner.step(offset, Tail::Final)? {
                Step::Skipped { end, header }
                | Step::TooLarge { end, header, .. }
                | Step::Frame { end, header, .. } => {
                    backlog.add(&header);
                    end
                }
                Step::Damaged { end, .. } => end,
                Step::Unfinished | Step::End => break,
            };
        }
    }
    Ok(backlog)
}

impl Backlog {
    fn add(&mut self, header: &FrameHeader) {
        let records = header.meta.map_or(0, |meta| u64::from(meta.records));
        self.chunks = self.chunks.saturating_add(1);
        self.records = self.records.saturating_add(records);
        self.bytes = self.bytes.saturating_add(u64::from(header.length));
    }
}
