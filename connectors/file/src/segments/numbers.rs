//! The numbers of a folder's chunks, and their places.

use std::io;
use std::ops::Range;
use std::path::Path;

use crate::segments::client::list_segments;
use crate::segments::consumers::Position;
use crate::segments::reader::scanner::{Tail, for_each_frame};

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
