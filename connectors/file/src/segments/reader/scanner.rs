//! Reads a segment file frame by frame, and finds the next frame after damage.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use baler_common::number::to_usize;
use baler_common::transport::ChunkMeta;
use bytes::Bytes;

use crate::segments::client::{SegmentEntry, segment_name};
use crate::segments::headers::{
    FRAME_HEADER_BYTES, FRAME_MARKER, FrameHeader, SEGMENT_HEADER_BYTES, SegmentError,
    SegmentHeader,
};

/// The number of bytes that are read at once, unless more are needed.
const BLOCK_BYTES: usize = 256 << 10;

/// The meaning of an incomplete frame at the end of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The file is finished, so the frame is damaged.
    Final,
    /// A writer may still write the frame, so wait.
    Live,
}

/// A part of a file.
#[derive(Debug)]
pub(crate) struct Piece {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) content: PieceContent,
}

/// The content of a [`Piece`].
#[derive(Debug)]
pub(crate) enum PieceContent {
    Chunk {
        number: u64,
        meta: Option<ChunkMeta>,
        bytes: Bytes,
    },
    /// Bytes that are no chunk. A long run comes in several pieces. Of a chunk above the limit only
    /// the first bytes are read.
    Damaged { bytes: Bytes, reason: Box<str> },
    /// A chunk that was not read.
    Skipped(FrameHeader),
}

/// A file that is read in blocks.
#[derive(Debug)]
pub(super) struct BlockFile {
    file: File,
    block: Bytes,
    block_start: u64,
}

impl BlockFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: File::open(path)?,
            block: Bytes::new(),
            block_start: 0,
        })
    }

    /// Returns the file's length now.
    pub(super) fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// Returns at least `least` bytes from this offset on; fewer only at the end of the file.
    /// `length` is the length of the file, and not below the offset: no memory is taken for bytes
    /// beyond it.
    fn fetch(&mut self, offset: u64, least: usize, length: u64) -> io::Result<Bytes> {
        let left = to_usize(length - offset);
        let cached = offset
            .checked_sub(self.block_start)
            .and_then(|from| self.block.get(to_usize(from)..))
            .filter(|rest| !rest.is_empty() && rest.len() >= least.min(left));
        if let Some(cached) = cached {
            return Ok(self.block.slice_ref(cached));
        }
        let wanted = least.max(BLOCK_BYTES).min(left);
        let mut bytes = Vec::with_capacity(wanted);
        let mut file = &self.file;
        file.seek(SeekFrom::Start(offset))?;
        file.take(wanted as u64).read_to_end(&mut bytes)?;
        self.block = bytes.into();
        self.block_start = offset;
        Ok(self.block.clone())
    }

    /// Returns `bytes` bytes from this offset on; fewer only at the end of the file.
    pub(super) fn read(&mut self, offset: u64, bytes: u64, length: u64) -> io::Result<Bytes> {
        let mut read = self.fetch(offset, to_usize(bytes), length)?;
        read.truncate(to_usize(bytes));
        // A small chunk must not keep a whole block in memory.
        Ok(match read.len() * 2 < self.block.len() {
            true => Bytes::copy_from_slice(&read),
            false => read,
        })
    }

    /// Finds the next `marker` from this offset on whose bytes `is_start` accepts. `is_start` gets
    /// at least `least` bytes; fewer only at the end of the file.
    pub(super) fn find(
        &mut self,
        marker: [u8; 4],
        least: usize,
        mut offset: u64,
        length: u64,
        is_start: impl Fn(&[u8]) -> bool,
    ) -> io::Result<Option<u64>> {
        while offset + marker.len() as u64 <= length {
            let bytes = self.fetch(offset, marker.len(), length)?;
            let mut places = bytes.windows(marker.len());
            if let Some(place) = places.position(|window| window == marker) {
                offset += place as u64;
                if is_start(&self.fetch(offset, least, length)?) {
                    return Ok(Some(offset));
                }
                offset += 1;
            } else {
                // The marker may begin in the last bytes of the block.
                let passed = bytes.len().max(marker.len()) - (marker.len() - 1);
                offset += passed as u64;
            }
        }
        Ok(None)
    }
}

/// A segment file, open for reading.
#[derive(Debug)]
pub(crate) struct SegmentScanner {
    file: BlockFile,
    /// The tag that frames must have. If the header is damaged, it comes from the first sound
    /// frame.
    tag: Option<u32>,
    /// The number after the last frame. Bytes that look like a frame with a lower number are no
    /// frame of this segment.
    next_number: u64,
    /// Whether chunks are passed without being read.
    skips: bool,
    /// The largest chunk that is read into memory.
    limit_bytes: usize,
    /// An offset and a length of the file: no frame begins between them, so they are not searched
    /// again.
    searched: Option<(u64, u64)>,
}

impl SegmentScanner {
    pub(crate) fn open(path: &Path, limit_bytes: usize) -> io::Result<Self> {
        let mut scanner = Self {
            file: BlockFile::open(path)?,
            tag: None,
            next_number: 0,
            skips: false,
            limit_bytes,
            searched: None,
        };
        scanner.tag = scanner.header()?.map(|header| header.tag);
        Ok(scanner)
    }

    /// Sets whether chunks are passed without being read.
    pub(crate) fn set_skips(&mut self, skips: bool) {
        self.skips = skips;
    }

    /// Returns the file's length now.
    pub(crate) fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    /// Returns the number after the last frame that was seen.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// Returns the segment's header, if it is sound.
    pub(crate) fn header(&mut self) -> io::Result<Option<SegmentHeader>> {
        let length = self.length()?;
        Ok(self.read_header(length)?.ok())
    }

    /// Whether another segment has taken this path since this one was opened.
    pub(crate) fn is_replaced(&self, path: &Path) -> bool {
        let now = Self::open(path, self.limit_bytes)
            .ok()
            .and_then(|now| now.tag);
        self.tag.zip(now).is_some_and(|(before, now)| before != now)
    }

    /// Returns the frame or the damage at this offset. Returns nothing at the end, and before an
    /// incomplete frame of a live segment.
    pub(crate) fn step(&mut self, mut offset: u64, tail: Tail) -> io::Result<Option<Piece>> {
        let length = self.length()?;
        if offset == 0 && length > 0 {
            match self.read_header(length)? {
                Ok(header) => {
                    self.tag = Some(header.tag);
                    offset = SEGMENT_HEADER_BYTES as u64;
                }
                Err(error) => return self.damage(0, length, tail, error),
            }
        }
        if offset >= length || (tail == Tail::Live && self.searched == Some((offset, length))) {
            return Ok(None);
        }
        if let Ok(piece) = self.frame(offset, length)? {
            return Ok(Some(piece));
        }
        // The block may be stale: a writer truncates a failed write and tries again.
        self.file.block = Bytes::new();
        match self.frame(offset, length)? {
            Ok(piece) => Ok(Some(piece)),
            Err(error) => self.damage(offset, length, tail, error),
        }
    }

    fn read_header(&mut self, length: u64) -> io::Result<Result<SegmentHeader, SegmentError>> {
        self.file.block = Bytes::new();
        let head = self.file.fetch(0, SEGMENT_HEADER_BYTES, length)?;
        Ok(SegmentHeader::decode(&head))
    }

    fn frame(&mut self, start: u64, length: u64) -> io::Result<Result<Piece, SegmentError>> {
        let head = self.file.fetch(start, FRAME_HEADER_BYTES, length)?;
        let header = match frame_header(&head, self.tag, self.next_number) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error)),
        };
        let end = start + header.frame_bytes();
        if end > length {
            return Ok(Err(SegmentError::Short {
                needed: header.frame_bytes(),
                left: length - start,
            }));
        }
        // Take memory for the chunk only now: its length fits the file.
        let content = if self.skips {
            PieceContent::Skipped(header)
        } else if u64::from(header.length) > self.limit_bytes as u64 {
            let error = SegmentError::Limit {
                length: header.length,
                limit: self.limit_bytes,
            };
            self.damaged(start, end, length, error)?
        } else {
            let body = start + FRAME_HEADER_BYTES as u64;
            let bytes = self.file.read(body, header.length.into(), length)?;
            if !header.matches(&bytes) {
                return Ok(Err(SegmentError::ChunkChecksum));
            }
            PieceContent::Chunk {
                number: header.number,
                meta: header.meta,
                bytes,
            }
        };
        self.tag = Some(header.tag);
        self.next_number = header.number + 1;
        Ok(Ok(Piece {
            start,
            end,
            content,
        }))
    }

    /// Returns the damage from this offset up to the next frame.
    fn damage(
        &mut self,
        start: u64,
        length: u64,
        tail: Tail,
        error: SegmentError,
    ) -> io::Result<Option<Piece>> {
        let (tag, next_number) = (self.tag, self.next_number);
        let is_frame = |head: &[u8]| frame_header(head, tag, next_number).is_ok();
        let from = start + 1;
        let next = self
            .file
            .find(FRAME_MARKER, FRAME_HEADER_BYTES, from, length, is_frame)?;
        if next.is_none() && tail == Tail::Live {
            self.searched = Some((start, length));
            return Ok(None);
        }
        let end = start + (next.unwrap_or(length) - start).min(self.piece_bytes());
        let content = self.damaged(start, end, length, error)?;
        Ok(Some(Piece {
            start,
            end,
            content,
        }))
    }

    fn damaged(
        &mut self,
        start: u64,
        end: u64,
        length: u64,
        error: SegmentError,
    ) -> io::Result<PieceContent> {
        let bytes = (end - start).min(self.piece_bytes());
        Ok(PieceContent::Damaged {
            bytes: self.file.read(start, bytes, length)?,
            reason: error.to_string().into(),
        })
    }

    /// Returns the most damaged bytes of one piece: a frame with the largest chunk.
    const fn piece_bytes(&self) -> u64 {
        self.limit_bytes.saturating_add(FRAME_HEADER_BYTES) as u64
    }
}

/// Decodes a frame's header, and checks that the frame belongs to this segment and was not passed.
fn frame_header(
    head: &[u8],
    tag: Option<u32>,
    next_number: u64,
) -> Result<FrameHeader, SegmentError> {
    let header = FrameHeader::decode(head)?;
    let has_tag = tag.is_none_or(|tag| tag == header.tag);
    // The last number of all is refused, so that each chunk has a number after it.
    match has_tag && (next_number..u64::MAX).contains(&header.number) {
        true => Ok(header),
        false => Err(SegmentError::Foreign),
    }
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
        let PieceContent::Skipped(header) = piece.content else {
            continue;
        };
        if !next(&header, piece.end) {
            break;
        }
    }
    Ok(())
}
