//! Walks through the segments of a folder, or through one segment.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::config::Start;
use crate::consumer::Position;
use crate::folder::{has_writer, list_segments, parse_segment_name, segment_name};
use crate::scan::{SegmentScanner, Step, Tail};
use crate::segment::{FrameHeader, SegmentError};

/// What the cursor came to.
#[derive(Debug)]
pub(crate) enum Found {
    /// A chunk, at this position.
    Chunk {
        at: Position,
        header: FrameHeader,
        chunk: Bytes,
    },
    /// Bytes that are none.
    Damaged {
        at: Position,
        bytes: Bytes,
        /// How many bytes are skipped; more than `bytes` if a chunk is above the limit.
        skipped: u64,
        error: SegmentError,
    },
    /// Nothing more for now.
    Nothing,
}

/// A place in a folder or in one segment.
#[derive(Debug)]
pub(crate) struct Cursor {
    folder: PathBuf,
    /// The one segment to read, if it is not the folder; the file may have any name.
    only: Option<PathBuf>,
    /// Whether somebody may still be writing: an unfinished frame at the end is then no damage.
    follow: bool,
    limit_bytes: usize,
    skip_below: u64,
    position: Position,
    open: Option<SegmentScanner>,
    next_chunk: u64,
}

impl Cursor {
    /// A cursor at the folder's oldest segment.
    pub(crate) fn folder(folder: &Path, follow: bool, limit_bytes: usize) -> Self {
        Self {
            folder: folder.to_owned(),
            only: None,
            follow,
            limit_bytes,
            skip_below: 0,
            position: Position::default(),
            open: None,
            next_chunk: 0,
        }
    }

    /// A cursor at the start of one segment.
    pub(crate) fn segment(path: &Path, follow: bool, limit_bytes: usize) -> Self {
        let folder = path.parent().unwrap_or_else(|| Path::new(""));
        let mut cursor = Self::folder(folder, follow, limit_bytes);
        let name = path.file_name().and_then(|name| name.to_str());
        cursor.position.segment = name.and_then(parse_segment_name).unwrap_or(0);
        cursor.only = Some(path.to_owned());
        cursor
    }

    /// Where it is: everything before was found.
    pub(crate) const fn position(&self) -> Position {
        self.position
    }

    /// The number after the last chunk that was found or skipped.
    pub(crate) const fn next_chunk(&self) -> u64 {
        self.next_chunk
    }

    /// The lane's name of a position: the segment's file.
    pub(crate) fn lane(&self, position: Position) -> String {
        let only = self.only.as_deref().and_then(Path::file_name);
        only.map_or_else(
            || segment_name(position.segment),
            |name| name.to_string_lossy().into_owned(),
        )
    }

    /// Goes to the start that was asked for.
    pub(crate) fn start(&mut self, from: Start) -> io::Result<()> {
        match from {
            Start::Oldest => Ok(()),
            Start::Position(position) => {
                self.go_to(position, 0);
                Ok(())
            }
            Start::Chunk(number) => self.start_at_chunk(number),
            // No chunk has this number.
            Start::End => {
                self.start_at_chunk(u64::MAX)?;
                while !matches!(self.advance_live()?, Found::Nothing) {}
                self.skip_below = 0;
                if let Some(open) = &mut self.open {
                    open.skip_below(0);
                }
                Ok(())
            }
        }
    }

    /// Goes to a position that was reached before.
    pub(crate) fn go_to(&mut self, position: Position, next_chunk: u64) {
        self.position = position;
        self.next_chunk = next_chunk;
        self.open = None;
    }

    fn start_at_chunk(&mut self, number: u64) -> io::Result<()> {
        self.skip_below = number;
        if self.only.is_none() {
            let segments = self.list()?;
            let before = segments.iter().rev().find(|segment| **segment <= number);
            self.position.segment = before.copied().unwrap_or(0);
        }
        Ok(())
    }

    /// The next chunk or damage.
    pub(crate) fn advance(&mut self) -> io::Result<Found> {
        let found = self.advance_live()?;
        if self.follow || !matches!(found, Found::Nothing) || has_writer(&self.folder) {
            return Ok(found);
        }
        // Nobody writes: what is unfinished now stays so.
        self.step(Tail::Final)
            .map(|found| found.unwrap_or(Found::Nothing))
    }

    fn advance_live(&mut self) -> io::Result<Found> {
        loop {
            if let Some(found) = self.step(Tail::Live)? {
                return Ok(found);
            }
            // The end of this segment as it was a moment ago. It is final as soon as there is a
            // newer one, so look for that first and at the end once more.
            let Some(next) = self.next_segment()? else {
                return Ok(Found::Nothing);
            };
            if let Some(found) = self.step(Tail::Final)? {
                return Ok(found);
            }
            self.position = Position {
                segment: next,
                offset: 0,
            };
            self.open = None;
        }
    }

    /// What stands at the position in the segment; nothing at its end.
    fn step(&mut self, tail: Tail) -> io::Result<Option<Found>> {
        loop {
            let at = self.position;
            let limit = self.limit_bytes;
            let Some(scanner) = self.scanner()? else {
                return Ok(None);
            };
            let step = scanner.step(at.offset, tail)?;
            let next_chunk = scanner.next_number();
            let (end, found) = match step {
                Step::Skipped { end, .. } => (end, None),
                Step::Frame {
                    at: offset,
                    end,
                    header,
                    chunk,
                } => {
                    let at = Position { offset, ..at };
                    (end, Some(Found::Chunk { at, header, chunk }))
                }
                Step::TooLarge {
                    at: offset,
                    end,
                    header,
                } => {
                    let found = Found::Damaged {
                        at: Position { offset, ..at },
                        bytes: scanner.piece(offset, end)?,
                        skipped: end.saturating_sub(offset),
                        error: SegmentError::Limit {
                            length: header.length,
                            limit,
                        },
                    };
                    (end, Some(found))
                }
                Step::Damaged {
                    at: offset,
                    end,
                    bytes,
                    error,
                } => {
                    let found = Found::Damaged {
                        at: Position { offset, ..at },
                        bytes,
                        skipped: end.saturating_sub(offset),
                        error,
                    };
                    (end, Some(found))
                }
                Step::Unfinished | Step::End => return Ok(None),
            };
            self.position.offset = end;
            self.next_chunk = self.next_chunk.max(next_chunk);
            if found.is_some() {
                return Ok(found);
            }
        }
    }

    /// The segment at the position, open; none if there is none (yet, or any more).
    fn scanner(&mut self) -> io::Result<Option<&mut SegmentScanner>> {
        if self.open.is_none() {
            let path = match &self.only {
                Some(path) => path.clone(),
                None => self.folder.join(segment_name(self.position.segment)),
            };
            match SegmentScanner::open(&path, self.limit_bytes) {
                Ok(mut scanner) => {
                    scanner.skip_below(self.skip_below);
                    self.open = Some(scanner);
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && self.only.is_none() => {}
                Err(error) => return Err(error),
            }
        }
        Ok(self.open.as_mut())
    }

    /// The segment to read after this one.
    fn next_segment(&self) -> io::Result<Option<u64>> {
        if self.only.is_some() {
            return Ok(None);
        }
        let here = self.position.segment;
        let segments = self.list()?;
        let newer = segments.iter().find(|segment| **segment > here);
        // The segment was removed or replaced while we read it: somebody emptied the folder, and
        // its chunks are numbered from the start again.
        let begun_again = match &self.open {
            Some(_) if !segments.contains(&here) => true,
            Some(open) => open.is_replaced(&self.folder.join(segment_name(here))),
            None => false,
        };
        let restarted = segments.first().filter(|_| begun_again);
        Ok(newer.or(restarted).copied())
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        match list_segments(&self.folder) {
            Ok(segments) => Ok(segments.iter().map(|segment| segment.first_chunk).collect()),
            // A follower may come before the writer.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.follow => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
