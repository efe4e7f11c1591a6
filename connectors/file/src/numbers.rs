//! The numbers of a folder's chunks, and their places.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::client::{SegmentEntry, list_segments, segment_name};
use crate::consumers::Position;
use crate::headers::FrameHeader;
use crate::reader::scanner::{PieceContent, SegmentScanner, Tail};

/// Returns the number of the oldest chunk in a folder, and the number after its newest whole chunk.
/// A number in between may be left out. Reads the headers of the newest segment.
///
/// # Errors
///
/// The folder or its newest segment cannot be read.
pub fn chunk_numbers(folder: &Path) -> io::Result<Range<u64>> {
    let segments = list_segments(folder)?;
    let (Some(oldest), Some(newest)) = (segments.first(), segments.last()) else {
        return Ok(0..0);
    };
    let mut end = newest.first_chunk;
    for_each_frame(folder, newest, 0, Tail::Live, |header, _| {
        end = header.number + 1;
        true
    })?;
    Ok(oldest.first_chunk..end)
}

/// Returns the place where a reader finds the chunk with this number, or the next one after it.
pub(crate) fn place_of(folder: &Path, number: u64) -> io::Result<Position> {
    let segments = list_segments(folder)?;
    let with_number = segments.iter().rfind(|it| it.first_chunk <= number);
    let Some(segment) = with_number.or_else(|| segments.first()) else {
        return Ok(Position::default());
    };
    // Damage between the chunk and the one before it may be the chunk itself: it is read, too.
    let mut offset = 0;
    for_each_frame(folder, segment, 0, Tail::Live, |header, end| {
        let is_before = header.number < number;
        if is_before {
            offset = end;
        }
        is_before
    })?;
    Ok(Position {
        segment: segment.first_chunk,
        offset,
    })
}

/// Calls `next` with the header and the end of each frame from this offset on, until it returns
/// false. Chunks are passed without being read.
pub(crate) fn for_each_frame(
    folder: &Path,
    segment: &SegmentEntry,
    mut offset: u64,
    tail: Tail,
    mut next: impl FnMut(&FrameHeader, u64) -> bool,
) -> io::Result<()> {
    let path = folder.join(segment_name(segment.first_chunk));
    let mut scanner = SegmentScanner::open(&path, 0)?;
    scanner.set_skips(true);
    while let Some(piece) = scanner.step(offset, tail)? {
        offset = piece.end;
        if let PieceContent::Skipped(header) = piece.content
            && !next(&header, piece.end)
        {
            break;
        }
    }
    Ok(())
}
