//! Takes a segment file apart, frame by frame, and finds its way again behind damage.

use std::io;
use std::path::Path;

use bytes::Bytes;

use crate::block::{BlockFile, to_usize};
use crate::segment::{
    FRAME_HEADER_BYTES, FRAME_MARKER, FrameHeader, SEGMENT_HEADER_BYTES, SegmentError,
    SegmentHeader,
};

/// What an unfinished piece at the end of a file means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// The segment is finished: the piece is damage.
    Final,
    /// A writer may be at work on it: wait.
    Live,
}

/// What stands at an offset.
#[derive(Debug)]
pub(crate) enum Step {
    /// A whole frame.
    Frame {
        at: u64,
        end: u64,
        header: FrameHeader,
        chunk: Bytes,
    },
    /// A frame that was to be skipped.
    Skipped { end: u64, header: FrameHeader },
    /// A frame whose header is sound and whose chunk is above the limit; it was not read.
    TooLarge {
        at: u64,
        end: u64,
        header: FrameHeader,
    },
    /// Bytes that are no frame, up to `end`. A long run comes in several pieces.
    Damaged {
        at: u64,
        end: u64,
        bytes: Bytes,
        error: SegmentError,
    },
    /// The end, behind bytes of an unfinished frame.
    Unfinished,
    /// The end, exactly.
    End,
}

/// A segment file, open for reading.
#[derive(Debug)]
pub(crate) struct SegmentScanner {
    file: BlockFile,
    /// The tag that frames must have; learned from the first sound frame if the header is damaged.
    tag: Option<u32>,
    /// Frames below this number were passed already: what has such a number is no frame of ours.
    next_number: u64,
    /// Frames below this number are skipped unread.
    skip_below: u64,
    /// The largest chunk that is read into memory.
    limit_bytes: usize,
    /// From this offset to this length of the file no frame begins: do not search it again.
    barren: Option<(u64, u64)>,
}

impl SegmentScanner {
    pub(crate) fn open(path: &Path, limit_bytes: usize) -> io::Result<Self> {
        let mut scanner = Self {
            file: BlockFile::open(path)?,
            tag: None,
            next_number: 0,
            skip_below: 0,
            limit_bytes,
            barren: None,
        };
        scanner.tag = scanner.header()?.map(|header| header.tag);
        Ok(scanner)
    }

    /// Skips frames below this number without reading their chunks.
    pub(crate) fn skip_below(&mut self, number: u64) {
        self.skip_below = number;
    }

    /// The file's length now.
    pub(crate) fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    /// The number after the last frame that was seen.
    pub(crate) const fn next_number(&self) -> u64 {
        self.next_number
    }

    /// The segment's header, if it is sound.
    pub(crate) fn header(&mut self) -> io::Result<Option<SegmentHeader>> {
        let length = self.length()?;
        Ok(self.segment_header(length)?.ok())
    }

    /// Whether another segment has come to this path since it was opened.
    pub(crate) fn is_replaced(&self, path: &Path) -> bool {
        let now = Self::open(path, self.limit_bytes)
            .ok()
            .and_then(|now| now.tag);
        self.tag.zip(now).is_some_and(|(before, now)| before != now)
    }

    /// Up to `limit_bytes` bytes of the file.
    pub(crate) fn piece(&mut self, offset: u64, end: u64) -> io::Result<Bytes> {
        let bytes = to_usize(end.saturating_sub(offset)).min(self.piece_bytes());
        let length = self.length()?;
        self.file.fetch(offset, bytes, bytes, length)
    }

    /// What stands at this offset. Every step but `Unfinished` and `End` moves on.
    pub(crate) fn step(&mut self, mut offset: u64, tail: Tail) -> io::Result<Step> {
        let length = self.length()?;
        if offset == 0 && length > 0 {
            match self.segment_header(length)? {
                Ok(header) => {
                    self.tag = Some(header.tag);
                    offset = SEGMENT_HEADER_BYTES as u64;
                }
                Err(error) => return self.damage(0, length, tail, error),
            }
        }
        if offset >= length {
            return Ok(Step::End);
        }
        if tail == Tail::Live && self.barren == Some((offset, length)) {
            return Ok(Step::Unfinished);
        }
        match self.frame(offset, length)? {
            Ok(step) => Ok(step),
            // What was read ahead may be stale: a writer cuts a failed write off and tries again.
            Err(_) => {
                self.file.forget();
                match self.frame(offset, length)? {
                    Ok(step) => Ok(step),
                    Err(error) => self.damage(offset, length, tail, error),
                }
            }
        }
    }

    fn segment_header(&mut self, length: u64) -> io::Result<Result<SegmentHeader, SegmentError>> {
        self.file.forget();
        let head = self
            .file
            .fetch(0, SEGMENT_HEADER_BYTES, SEGMENT_HEADER_BYTES, length)?;
        Ok(SegmentHeader::decode(&head))
    }

    fn frame(&mut self, offset: u64, length: u64) -> io::Result<Result<Step, SegmentError>> {
        let head = self
            .file
            .fetch(offset, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES, length)?;
        let header = match self.own(&head) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error)),
        };
        let end = offset.saturating_add(header.frame_bytes());
        if end > length {
            return Ok(Err(SegmentError::Short {
                needed: header.frame_bytes(),
                left: length - offset,
            }));
        }
        // Only now, with the length checked against the file, is memory for it taken.
        let step = if header.number < self.skip_below {
            Step::Skipped { end, header }
        } else if u64::from(header.length) > self.limit_bytes as u64 {
            Step::TooLarge {
                at: offset,
                end,
                header,
            }
        } else {
            let bytes = to_usize(u64::from(header.length));
            let start = offset.saturating_add(FRAME_HEADER_BYTES as u64);
            let chunk = self.file.fetch(start, bytes, bytes, length)?;
            if !header.matches(&chunk) {
                return Ok(Err(SegmentError::ChunkChecksum));
            }
            let chunk = self.file.detach(chunk);
            Step::Frame {
                at: offset,
                end,
                header,
                chunk,
            }
        };
        self.tag = Some(header.tag);
        self.next_number = header.number.saturating_add(1);
        Ok(Ok(step))
    }

    /// A frame's header, if it belongs to this segment and is not behind us.
    fn own(&self, head: &[u8]) -> Result<FrameHeader, SegmentError> {
        let header = FrameHeader::decode(head)?;
        let tag_is_ours = self.tag.is_none_or(|tag| tag == header.tag);
        match tag_is_ours && header.number >= self.next_number {
            true => Ok(header),
            false => Err(SegmentError::Foreign),
        }
    }

    fn damage(
        &mut self,
        offset: u64,
        length: u64,
        tail: Tail,
        error: SegmentError,
    ) -> io::Result<Step> {
        let next = self.resynchronise(offset.saturating_add(1), length)?;
        if next.is_none() && tail == Tail::Live {
            self.barren = Some((offset, length));
            return Ok(Step::Unfinished);
        }
        let limit = offset.saturating_add(self.piece_bytes() as u64);
        let end = next.unwrap_or(length).min(limit);
        let bytes = self.piece(offset, end)?;
        Ok(Step::Damaged {
            at: offset,
            end,
            bytes,
            error,
        })
    }

    /// How many damaged bytes are handed out at once: a whole frame of the largest chunk.
    const fn piece_bytes(&self) -> usize {
        self.limit_bytes.saturating_add(FRAME_HEADER_BYTES)
    }

    /// Where the next frame of this segment begins, from this offset on.
    fn resynchronise(&mut self, mut offset: u64, length: u64) -> io::Result<Option<u64>> {
        while let Some(at) = self.file.find(FRAME_MARKER, offset, length)? {
            let head = self
                .file
                .fetch(at, FRAME_HEADER_BYTES, FRAME_HEADER_BYTES, length)?;
            if self.own(&head).is_ok() {
                return Ok(Some(at));
            }
            offset = at.saturating_add(1);
        }
        Ok(None)
    }
}
