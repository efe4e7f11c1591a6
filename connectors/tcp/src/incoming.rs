//! Bytes of a sender to chunks. No I/O here: what comes in pieces is put into a buffer by others.

use baler_common::transport::{ChunkIdentity, ChunkMeta};
use bytes::{Buf, Bytes, BytesMut};

use crate::error::{ProtocolError, ProtocolErrorKind};
use crate::frame::{FrameHeader, FrameKind, covered};
use crate::hello::ConnectionLimits;

/// Takes frames off the front of a buffer. A chunk's bytes are a slice of it, not a copy.
#[derive(Debug)]
pub(crate) struct Incoming {
    limits: ConnectionLimits,
    /// How many bytes were taken off so far.
    offset: u64,
    /// The number of the next chunk.
    sequence: u64,
    previous: Option<ChunkIdentity>,
    /// The header whose chunk is not complete yet.
    header: Option<FrameHeader>,
}

/// What the front of the buffer is.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing follows.
    Bye,
    /// A chunk, and its number in the connection.
    Chunk(u64, ChunkMeta, Bytes),
    /// Still there.
    Heartbeat,
    /// At least so many bytes are missing for the next step.
    More(usize),
}

impl Incoming {
    /// After the hellos, which took `offset` bytes.
    pub(crate) fn new(limits: ConnectionLimits, offset: u64) -> Self {
        Self {
            limits,
            offset,
            sequence: 0,
            previous: None,
            header: None,
        }
    }

    /// How many bytes were taken off so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the next bytes begin a chunk or another frame, rather than go on with a chunk.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.header.is_none()
    }

    /// Takes the next step off the buffer. After an error the bytes at fault are still in it.
    pub(crate) fn next(&mut self, buffer: &mut BytesMut) -> Result<Step, ProtocolError> {
        if let Some(header) = self.header {
            return self.next_chunk(&header, buffer);
        }
        let Some(bytes) = buffer.first_chunk() else {
            return Ok(Step::More(FrameHeader::BYTES - buffer.len()));
        };
        let header =
            FrameHeader::read(bytes).map_err(|kind| self.error("a frame's header", kind))?;
        let step = match header.kind {
            FrameKind::Chunk => {
                self.check(&header)
                    .map_err(|kind| self.error("a chunk's header", kind))?;
                self.header = Some(header);
                self.advance(buffer, FrameHeader::BYTES);
                return self.next_chunk(&header, buffer);
            }
            FrameKind::Heartbeat => Step::Heartbeat,
            FrameKind::Bye => Step::Bye,
            FrameKind::Acknowledgement | FrameKind::Refusal => {
                let found = u64::from(bytes.first().copied().unwrap_or_default());
                return Err(self.error("a sender's frame", ProtocolErrorKind::Invalid { found }));
            }
        };
        self.advance(buffer, FrameHeader::BYTES);
        Ok(step)
    }

    /// Checks what a chunk's header promises, before a byte is kept for it.
    fn check(&self, header: &FrameHeader) -> Result<(), ProtocolErrorKind> {
        let low = if header.has_identity {
            u64::try_from(ChunkIdentity::BYTES).unwrap_or(u64::MAX)
        } else {
            0
        };
        let high = low.saturating_add(u64::from(self.limits.max_chunk_bytes));
        let found = u64::from(header.length);
        if !(low..=high).contains(&found) {
            return Err(ProtocolErrorKind::Length { found, low, high });
        }
        if header.sequence != self.sequence {
            return Err(ProtocolErrorKind::Sequence {
                found: header.sequence,
                expected: self.sequence,
            });
        }
        if !header.has_identity && self.previous.is_none() {
            return Err(ProtocolErrorKind::NoIdentity);
        }
        Ok(())
    }

    fn next_chunk(
        &mut self,
        header: &FrameHeader,
        buffer: &mut BytesMut,
    ) -> Result<Step, ProtocolError> {
        let length = usize::try_from(header.length).unwrap_or(usize::MAX);
        if buffer.len() < length {
            return Ok(Step::More(length - buffer.len()));
        }
        let identity_bytes = if header.has_identity {
            ChunkIdentity::BYTES
        } else {
            0
        };
        let covered = covered(header.container, identity_bytes, length);
        let computed = crc32c::crc32c(buffer.get(..covered).unwrap_or_default());
        if header.checksum != computed {
            let found = header.checksum;
            let kind = ProtocolErrorKind::Checksum { found, computed };
            return Err(self.error("a chunk", kind));
        }
        let identity = match (header.has_identity, self.previous) {
            (true, _) => buffer.first_chunk().and_then(ChunkIdentity::from_bytes),
            (false, Some(previous)) => Some(ChunkIdentity {
                sequence: previous.sequence.wrapping_add(1),
                ..previous
            }),
            (false, None) => None,
        };
        let identity =
            identity.ok_or_else(|| self.error("a chunk", ProtocolErrorKind::NoIdentity))?;
        self.advance(buffer, identity_bytes);
        let bytes = buffer.split_to(length - identity_bytes).freeze();
        self.offset = self
            .offset
            .wrapping_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
        self.previous = Some(identity);
        self.header = None;
        self.sequence = self.sequence.wrapping_add(1);
        let meta = ChunkMeta {
            container: header.container,
            records: header.records,
            identity,
        };
        Ok(Step::Chunk(header.sequence, meta, bytes))
    }

    fn advance(&mut self, buffer: &mut BytesMut, bytes: usize) {
        buffer.advance(bytes);
        self.offset = self
            .offset
            .wrapping_add(u64::try_from(bytes).unwrap_or(u64::MAX));
    }

    fn error(&self, reading: &'static str, kind: ProtocolErrorKind) -> ProtocolError {
        ProtocolError {
            offset: self.offset,
            reading,
            kind,
        }
    }
}
