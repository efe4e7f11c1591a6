//! What a writer does to a folder before it writes: the torn end that a crash left is moved aside.
//!
//! Nothing that is found here keeps a writer from starting: bytes that are no chunks go to
//! `damaged/`, are counted, and the next segment begins (Vector's users met the opposite, a crash
//! loop until somebody deleted the file: vectordotdev/vector#17644, #19155).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::consumer;
use crate::folder::{SegmentEntry, damaged_path, list_segments, segment_name, sync_folder};
use crate::scan::{SegmentScanner, Step, Tail};
use crate::segment::{FRAME_HEADER_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::stats::WriterCounters;

/// What recovery found.
#[derive(Debug)]
pub(crate) struct Recovered {
    /// The segments that are there now, oldest first.
    pub(crate) segments: Vec<SegmentEntry>,
    /// The number of the next chunk.
    pub(crate) next_chunk: u64,
    /// The newest segment, if it has a sound header and no chunk: the writer goes on with it.
    pub(crate) empty: Option<SegmentHeader>,
}

/// Makes the folder ready for a writer.
pub(crate) fn recover(folder: &Path, counters: &WriterCounters) -> io::Result<Recovered> {
    let mut segments = list_segments(folder)?;
    // A consumer's position is forced to disk at once, chunks perhaps not: after a crash of the
    // machine the consumer may be ahead. Numbers that it has settled are not given again, or it
    // would take new chunks for old ones.
    let settled = consumer::highest_settled(folder)?;
    let Some(newest) = segments.last_mut() else {
        return Ok(Recovered {
            segments,
            next_chunk: settled,
            empty: None,
        });
    };
    let first = newest.first_chunk;
    let path = folder.join(segment_name(first));
    let Ok(found) = examine(&path) else {
        // The file cannot be read. It stays for readers to report; no more frames can be in it
        // than headers fit.
        counters.unreadable_segments.add(1);
        let frames = (newest.bytes / FRAME_HEADER_BYTES as u64).saturating_add(1);
        return Ok(Recovered {
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
            counters.damaged_pieces.add(1);
            counters.damaged_bytes.add(found.bytes - found.sound_bytes);
            newest.bytes = found.sound_bytes;
        } else {
            // Without room to keep them the bytes stay where they are: readers hand them out as
            // damage. A segment without a chunk must go, though: its name is needed.
            counters.unmoved_pieces.add(1);
            if found.frames == 0 && found.sound_bytes > 0 {
                set_aside(folder, first)?;
                newest.bytes = 0;
            }
        }
    }
    if newest.bytes == 0 {
        if found.bytes == 0 {
            // Created, and nothing more: there is nothing to keep.
            fs::remove_file(&path)?;
        }
        segments.pop();
    } else if found.frames == 0 && next_chunk == first {
        empty = found.header;
    } else if found.frames == 0 {
        // A consumer has settled chunks that were in it and are gone: its position must not be
        // one in new chunks.
        fs::remove_file(&path)?;
        sync_folder(folder)?;
        segments.pop();
    }
    Ok(Recovered {
        segments,
        next_chunk,
        empty,
    })
}

struct Examined {
    header: Option<SegmentHeader>,
    frames: u64,
    next_chunk: u64,
    bytes: u64,
    /// How many bytes there are up to the end of the last sound frame, or of the header.
    sound_bytes: u64,
}

fn examine(path: &Path) -> io::Result<Examined> {
    // Every chunk is checked, however large: the limits of readers are not those of this folder.
    let mut scanner = SegmentScanner::open(path, u32::MAX as usize)?;
    let header = scanner.header()?;
    let mut found = Examined {
        header,
        frames: 0,
        next_chunk: 0,
        bytes: scanner.length()?,
        sound_bytes: header.map_or(0, |_| SEGMENT_HEADER_BYTES as u64),
    };
    let mut offset = 0;
    loop {
        offset = match scanner.step(offset, Tail::Final)? {
            Step::Frame { end, .. } | Step::TooLarge { end, .. } | Step::Skipped { end, .. } => {
                found.frames += 1;
                found.sound_bytes = end;
                end
            }
            Step::Damaged { end, .. } => end,
            Step::Unfinished | Step::End => break,
        };
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

/// Moves the bytes from this offset on to `damaged/`. They are cut off only when the copy is on
/// stable storage (vectordotdev/vector#25570: unlink before fsync).
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
