//! Prepares a folder for a writer: moves aside the torn end that a crash left.
//!
//! No damage keeps a writer from starting: bytes that are no chunks are counted and moved to
//! `damaged/`, and the next segment begins. (Vector had a crash loop until the file was deleted by
//! hand: vectordotdev/vector#17644, #19155.)

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Mutex;

use crate::sync_folder;

use super::stats::{WriterStats, lock_stats};
use crate::segments::client::{SegmentEntry, damaged_path, list_segments, segment_name};
use crate::segments::consumers::watermarks;
use crate::segments::headers::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::segments::reader::scanner::{PieceContent, SegmentScanner, Tail};

/// A folder that is ready for a writer.
#[derive(Debug)]
pub(super) struct RecoveredFolder {
    /// The segments that are there now, oldest first.
    pub(super) segments: Vec<SegmentEntry>,
    /// The number of the next chunk.
    pub(super) next_chunk: u64,
    /// The header of the newest segment, if it is sound and no chunk follows: the writer continues
    /// this segment.
    pub(super) empty: Option<SegmentHeader>,
}

/// Makes the folder ready for a writer.
pub(super) fn recover(folder: &Path, stats: &Mutex<WriterStats>) -> io::Result<RecoveredFolder> {
    let mut segments = list_segments(folder)?;
    // A consumer's position is forced to disk at once, but chunks perhaps not. So after a crash of
    // the machine the consumer may be ahead. Numbers that it has settled are not used again, or it
    // would skip new chunks as old ones.
    let settled = watermarks(folder)?;
    let settled = settled.iter().fold(0, |most, it| it.next_chunk.max(most));
    let Some(newest) = segments.last_mut() else {
        return Ok(RecoveredFolder {
            segments,
            next_chunk: settled,
            empty: None,
        });
    };
    let first = newest.first_chunk;
    let path = folder.join(segment_name(first));
    let Ok(found) = examine(&path) else {
        // The file cannot be read. It stays for readers to report. It cannot contain more frames
        // than frame headers fit.
        lock_stats(stats).unreadable_segments += 1;
        let frames = newest.bytes / FRAME_HEADER_BYTES as u64 + 1;
        return Ok(RecoveredFolder {
            next_chunk: settled.max(first.saturating_add(frames)),
            segments,
            empty: None,
        });
    };
    let next_chunk = settled.max(found.next_chunk.max(first));
    let mut empty = None;
    if found.sound_bytes < found.bytes {
        let moved = match found.sound_bytes {
            0 => set_aside(folder, first),
            _ => move_tail(folder, first, found.sound_bytes),
        };
        if moved.is_ok() {
            lock_stats(stats).damaged_pieces += 1;
            lock_stats(stats).damaged_bytes += found.bytes - found.sound_bytes;
            newest.bytes = found.sound_bytes;
        } else {
            // Without room to move them, the bytes stay in place: readers report them as damage.
            // But a segment without a chunk must go, because its name is needed.
            lock_stats(stats).unmoved_pieces += 1;
            if found.frames == 0 && found.sound_bytes > 0 {
                set_aside(folder, first)?;
                newest.bytes = 0;
            }
        }
    }
    if newest.bytes == 0 {
        if found.bytes == 0 {
            // The file was created and nothing was written: there is nothing to keep.
            fs::remove_file(&path)?;
        }
        segments.pop();
    } else if found.frames == 0 && next_chunk == first {
        empty = found.header;
    } else if found.frames == 0 {
        // A consumer has settled chunks of this segment that are lost. Its position must not point
        // into new chunks.
        fs::remove_file(&path)?;
        sync_folder(folder)?;
        segments.pop();
    }
    Ok(RecoveredFolder {
        segments,
        next_chunk,
        empty,
    })
}

struct SegmentFindings {
    header: Option<SegmentHeader>,
    frames: u64,
    next_chunk: u64,
    bytes: u64,
    /// The length of the file up to the end of the last sound frame, or of the header.
    sound_bytes: u64,
}

fn examine(path: &Path) -> io::Result<SegmentFindings> {
    // Check every chunk, however large: readers have other limits than this folder.
    let mut scanner = SegmentScanner::open(path, u32::MAX as usize)?;
    let header = scanner.header()?;
    let mut found = SegmentFindings {
        header,
        frames: 0,
        next_chunk: 0,
        bytes: scanner.length()?,
        sound_bytes: header.map_or(0, |_| SEGMENT_HEADER_BYTES as u64),
    };
    let mut offset = 0;
    while let Some(piece) = scanner.step(offset, Tail::Final)? {
        offset = piece.end;
        if !matches!(piece.content, PieceContent::Damaged { .. }) {
            found.frames += 1;
            found.sound_bytes = offset;
        }
    }
    found.next_chunk = scanner.next_number();
    Ok(found)
}

/// Moves a whole segment to `damaged/`.
fn set_aside(folder: &Path, first_chunk: u64) -> io::Result<()> {
    let name = segment_name(first_chunk);
    let target = damaged_path(folder, &format!("{name}-0.bin"))?;
    fs::rename(folder.join(&name), &target)?;
    target.parent().map_or(Ok(()), sync_folder)?;
    sync_folder(folder)
}

/// Moves the bytes from this offset on to `damaged/`. Truncates the segment only when the copy is
/// on stable storage (vectordotdev/vector#25570: unlink before fsync).
fn move_tail(folder: &Path, first_chunk: u64, offset: u64) -> io::Result<()> {
    let name = segment_name(first_chunk);
    let mut segment = OpenOptions::new()
        .read(true)
        .write(true)
        .open(folder.join(&name))?;
    let target = damaged_path(folder, &format!("{name}-{offset}.bin"))?;
    let mut copy = File::create_new(&target)?;
    segment.seek(SeekFrom::Start(offset))?;
    let copied = io::copy(&mut (&segment).take(u64::MAX), &mut copy).and_then(|_| copy.sync_all());
    if let Err(error) = copied {
        fs::remove_file(&target)?;
        return Err(error);
    }
    target.parent().map_or(Ok(()), sync_folder)?;
    segment.set_len(offset)?;
    segment.sync_all()
}
