//! Walks through the segments of a folder, or through one file; the kinds of paths.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use crate::{FileLock, if_found};

use super::plain::PlainFile;
use super::scanner::{Piece, PieceContent, SegmentScanner, Tail};
use crate::segments::client::{LOCK_FILE, list_segments, parse_segment_name, segment_name};
use crate::segments::config::Start;
use crate::segments::consumers::Position;
use crate::segments::headers::SEGMENT_MAGIC;

/// The kinds of paths that a reader reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathKind {
    Folder,
    /// A file of chunks without segments around them.
    Plain,
    Segment,
}

impl PathKind {
    /// Returns the kind of a path. A follower may start before its folder exists.
    pub(super) fn of(path: &Path, follow: bool) -> io::Result<Self> {
        let metadata = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && follow => {
                return Ok(Self::Folder);
            }
            metadata => metadata?,
        };
        if metadata.is_dir() {
            return Ok(Self::Folder);
        }
        let mut magic = Vec::with_capacity(SEGMENT_MAGIC.len());
        let limit = SEGMENT_MAGIC.len() as u64;
        File::open(path)?.take(limit).read_to_end(&mut magic)?;
        // A segment with a damaged magic is still recognized by its name.
        let name = path.file_name().and_then(|name| name.to_str());
        let is_named = name.and_then(parse_segment_name).is_some();
        Ok(match is_named || magic == SEGMENT_MAGIC {
            true => Self::Segment,
            false => Self::Plain,
        })
    }
}

/// A place in a folder or in one file.
#[derive(Debug)]
pub(super) struct Cursor {
    path: PathBuf,
    kind: PathKind,
    /// Whether a writer may still append, so that an incomplete frame at the end is no damage.
    follow: bool,
    limit_bytes: usize,
    /// Whether chunks are passed without being read.
    skips: bool,
    position: Position,
    open: Option<OpenFile>,
    next_chunk: u64,
}

#[derive(Debug)]
enum OpenFile {
    Plain(PlainFile),
    Segment(SegmentScanner),
}

impl Cursor {
    /// Creates a cursor at the oldest chunk.
    pub(super) fn new(path: &Path, kind: PathKind, follow: bool, limit_bytes: usize) -> Self {
        let segment = match kind {
            PathKind::Segment => path.file_name().and_then(|name| name.to_str()),
            PathKind::Folder | PathKind::Plain => None,
        };
        Self {
            path: path.to_owned(),
            kind,
            follow,
            limit_bytes,
            skips: false,
            position: Position {
                segment: segment.and_then(parse_segment_name).unwrap_or(0),
                offset: 0,
            },
            open: None,
            next_chunk: 0,
        }
    }

    /// Returns the position after the last piece.
    pub(super) const fn position(&self) -> Position {
        self.position
    }

    /// Returns the number after the last chunk that was returned or skipped.
    pub(super) const fn next_chunk(&self) -> u64 {
        self.next_chunk
    }

    /// Returns the name of the current file.
    pub(super) fn lane(&self) -> String {
        match self.kind {
            PathKind::Folder => segment_name(self.position.segment),
            PathKind::Plain | PathKind::Segment => {
                let name = self.path.file_name().unwrap_or(self.path.as_os_str());
                name.to_string_lossy().into_owned()
            }
        }
    }

    /// Goes to the start that the settings name. A plain file is always read from its first byte.
    pub(super) fn start(&mut self, from: Start) -> io::Result<()> {
        match from {
            _ if self.kind == PathKind::Plain => {}
            Start::Oldest => {}
            Start::Position(position) => self.go_to(position, 0),
            Start::End => {
                if self.kind == PathKind::Folder {
                    if let Some(newest) = self.list()?.last() {
                        self.position.segment = *newest;
                    }
                }
                self.skips = true;
                while self.advance_live()?.is_some() {}
                self.skips = false;
                if let Some(OpenFile::Segment(scanner)) = &mut self.open {
                    scanner.set_skips(false);
                }
            }
        }
        Ok(())
    }

    /// Goes to a position that was reached before.
    pub(super) fn go_to(&mut self, position: Position, next_chunk: u64) {
        self.position = position;
        self.next_chunk = next_chunk;
        self.open = None;
    }

    /// Returns the next chunk or damage, which lies in the segment of [`Cursor::position`]. Returns
    /// nothing if there is none now.
    pub(super) fn advance(&mut self) -> io::Result<Option<Piece>> {
        let piece = self.advance_live()?;
        let folder = match self.kind {
            PathKind::Folder => Some(&*self.path),
            PathKind::Plain | PathKind::Segment => self.path.parent(),
        };
        let has_writer = |folder: &Path| FileLock::is_held(&folder.join(LOCK_FILE));
        if piece.is_some() || self.follow || folder.is_some_and(has_writer) {
            return Ok(piece);
        }
        // There is no writer, so an incomplete frame stays incomplete.
        self.step(Tail::Final)
    }

    fn advance_live(&mut self) -> io::Result<Option<Piece>> {
        loop {
            if let Some(piece) = self.step(Tail::Live)? {
                return Ok(Some(piece));
            }
            // A segment is final as soon as there is a newer one. But it may have grown before
            // that.
            let Some(next) = self.next_segment()? else {
                return Ok(None);
            };
            if let Some(piece) = self.step(Tail::Final)? {
                return Ok(Some(piece));
            }
            self.position = Position {
                segment: next,
                offset: 0,
            };
            self.open = None;
        }
    }

    /// Returns the next piece of the current file, or nothing at its end.
    fn step(&mut self, tail: Tail) -> io::Result<Option<Piece>> {
        loop {
            if self.open.is_none() {
                self.open = self.open_file()?;
            }
            let offset = self.position.offset;
            let (piece, next_chunk) = match &mut self.open {
                None => return Ok(None),
                Some(OpenFile::Plain(file)) => (file.step(offset)?, 0),
                Some(OpenFile::Segment(scanner)) => {
                    (scanner.step(offset, tail)?, scanner.next_number())
                }
            };
            let Some(piece) = piece else {
                return Ok(None);
            };
            self.position.offset = piece.end;
            self.next_chunk = self.next_chunk.max(next_chunk);
            if !matches!(piece.content, PieceContent::Skipped(_)) {
                return Ok(Some(piece));
            }
        }
    }

    /// Opens the current file. Returns nothing if it does not exist in the folder now.
    fn open_file(&self) -> io::Result<Option<OpenFile>> {
        let path = match self.kind {
            PathKind::Folder => &self.path.join(segment_name(self.position.segment)),
            PathKind::Plain => {
                let file = PlainFile::open(&self.path, self.limit_bytes)?;
                return Ok(Some(OpenFile::Plain(file)));
            }
            PathKind::Segment => &self.path,
        };
        let opened = SegmentScanner::open(path, self.limit_bytes);
        let scanner = match self.kind {
            PathKind::Folder => if_found(opened)?,
            PathKind::Plain | PathKind::Segment => Some(opened?),
        };
        Ok(scanner.map(|mut scanner| {
            scanner.set_skips(self.skips);
            OpenFile::Segment(scanner)
        }))
    }

    /// Returns the segment to read after this one.
    fn next_segment(&self) -> io::Result<Option<u64>> {
        if self.kind != PathKind::Folder {
            return Ok(None);
        }
        let here = self.position.segment;
        let segments = self.list()?;
        let newer = segments.iter().find(|segment| **segment > here);
        // The folder was emptied during the reading: its chunks are numbered from the start again.
        let begun_again = match &self.open {
            Some(_) if !segments.contains(&here) => true,
            Some(OpenFile::Segment(open)) => open.is_replaced(&self.path.join(segment_name(here))),
            Some(OpenFile::Plain(_)) | None => false,
        };
        let restarted = segments.first().filter(|_| begun_again);
        Ok(newer.or(restarted).copied())
    }

    fn list(&self) -> io::Result<Vec<u64>> {
        match list_segments(&self.path) {
            Ok(segments) => Ok(segments.iter().map(|segment| segment.first_chunk).collect()),
            // A follower may start before the writer.
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.follow => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}
