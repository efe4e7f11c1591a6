//! Encodes chunks as the bytes of a sender's connection, and decodes them. Does no I/O.

use std::io::IoSlice;

use baler_common::number::{to_u64, to_usize};
use baler_common::transport::{Chunk, ChunkIdentity, ChunkMeta};
use bytes::{Buf, Bytes, BytesMut};

use crate::error::{ProtocolError, ProtocolErrorKind};
use crate::headers::{ConnectionLimits, FrameHeader, FrameKind, covered};

/// Numbers the chunks of one connection and puts headers before them.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    sequence: u64,
    previous: Option<ChunkIdentity>,
    /// Headers and identities of the frames that are being written, back to back.
    heads: Vec<u8>,
    /// The length of each frame's part of `heads`, and the container that follows it.
    frames: Vec<(usize, Bytes)>,
}

impl Outgoing {
    /// Appends a chunk to the frames that are written next.
    pub(crate) fn push(&mut self, chunk: &Chunk) {
        let identity = chunk.meta.identity;
        let follows = self.previous.map(successor) == Some(identity);
        let identity_bytes = identity.to_bytes();
        let identity_bytes = if follows {
            &[]
        } else {
            identity_bytes.as_slice()
        };
        let length = identity_bytes.len() + chunk.bytes.len();
        let covers_chunk = covered(chunk.meta.container, identity_bytes.len(), length) == length;
        let covered_bytes = if covers_chunk {
            chunk.bytes.as_ref()
        } else {
            &[]
        };
        let checksum = crc32c::crc32c_append(crc32c::crc32c(identity_bytes), covered_bytes);
        let header = FrameHeader {
            kind: FrameKind::Chunk,
            has_identity: !follows,
            checksum,
            container: chunk.meta.container,
            records: chunk.meta.records,
            // The writer has checked the chunk against a limit far below this one.
            length: u32::try_from(length).unwrap_or(u32::MAX),
            sequence: self.sequence,
        };
        let start = self.heads.len();
        header.write(&mut self.heads);
        self.heads.extend_from_slice(identity_bytes);
        let head = self.heads.len() - start;
        self.frames.push((head, chunk.bytes.clone()));
        self.previous = Some(identity);
        self.sequence = self.sequence.wrapping_add(1);
    }

    /// Adds a frame that consists of its header.
    pub(crate) fn push_short(&mut self, kind: FrameKind) {
        FrameHeader::short(kind, 0).write(&mut self.heads);
        self.frames.push((FrameHeader::BYTES, Bytes::new()));
    }

    /// Returns the added frames, in order, for one vectored write.
    pub(crate) fn slices(&self) -> Vec<IoSlice<'_>> {
        let mut heads = self.heads.as_slice();
        self.frames
            .iter()
            .flat_map(|(head, bytes)| {
                let (head, after) = heads.split_at(*head);
                heads = after;
                [IoSlice::new(head), IoSlice::new(bytes)]
            })
            .filter(|slice| !slice.is_empty())
            .collect()
    }

    /// Removes the frames after they were written.
    pub(crate) fn clear(&mut self) {
        self.heads.clear();
        self.frames.clear();
    }
}

/// Decodes frames from the front of a buffer. The bytes of a chunk are a slice of the buffer, not a
/// copy.
#[derive(Debug)]
pub(crate) struct Incoming {
    limits: ConnectionLimits,
    /// The number of bytes decoded so far.
    offset: u64,
    /// The number of the next chunk.
    sequence: u64,
    previous: Option<ChunkIdentity>,
    /// The header of a chunk that is not complete yet.
    header: Option<FrameHeader>,
}

/// The result of decoding the front of the buffer.
#[derive(Debug)]
pub(crate) enum Step {
    /// The last frame of the sender.
    Bye,
    /// A chunk, and its number in the connection.
    Chunk(u64, ChunkMeta, Bytes),
    /// A sign of life of the sender.
    Heartbeat,
    /// The lowest number of bytes that are missing for the next step.
    More(usize),
}

impl Incoming {
    /// Starts after the sender's first `offset` bytes: its hello and its proof.
    pub(crate) fn new(limits: ConnectionLimits, offset: u64) -> Self {
        Self {
            limits,
            offset,
            sequence: 0,
            previous: None,
            header: None,
        }
    }

    /// Returns the number of bytes decoded so far.
    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether the next bytes begin a frame, rather than continue a chunk.
    pub(crate) fn is_between_frames(&self) -> bool {
        self.header.is_none()
    }

    /// Decodes the next step. After an error the bytes at fault are still in the buffer.
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
                let [found, ..] = *bytes;
                let found = u64::from(found);
                return Err(self.error("a sender's frame", ProtocolErrorKind::Invalid { found }));
            }
        };
        self.advance(buffer, FrameHeader::BYTES);
        Ok(step)
    }

    /// Checks the header of a chunk before memory is taken for the chunk.
    fn check(&self, header: &FrameHeader) -> Result<(), ProtocolErrorKind> {
        let low = if header.has_identity {
            to_u64(ChunkIdentity::BYTES)
        } else {
            0
        };
        let high = low + u64::from(self.limits.max_chunk_bytes);
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
        let length = to_usize(header.length);
        if buffer.len() < length {
            return Ok(Step::More(length - buffer.len()));
        }
        let identity_bytes = if header.has_identity {
            ChunkIdentity::BYTES
        } else {
            0
        };
        let no_identity = || self.error("a chunk", ProtocolErrorKind::NoIdentity);
        let covered = covered(header.container, identity_bytes, length);
        let computed = crc32c::crc32c(buffer.get(..covered).ok_or_else(no_identity)?);
        if header.checksum != computed {
            let found = header.checksum;
            let kind = ProtocolErrorKind::Checksum { found, computed };
            return Err(self.error("a chunk", kind));
        }
        let identity = match (header.has_identity, self.previous) {
            (true, _) => buffer.first_chunk().and_then(ChunkIdentity::from_bytes),
            (false, previous) => previous.map(successor),
        };
        let identity = identity.ok_or_else(no_identity)?;
        self.advance(buffer, identity_bytes);
        let bytes = buffer.split_to(length - identity_bytes).freeze();
        self.offset = self.offset.wrapping_add(to_u64(bytes.len()));
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
        self.offset = self.offset.wrapping_add(to_u64(bytes));
    }

    fn error(&self, reading: &'static str, kind: ProtocolErrorKind) -> ProtocolError {
        kind.at(self.offset, reading)
    }
}

fn successor(previous: ChunkIdentity) -> ChunkIdentity {
    ChunkIdentity {
        sequence: previous.sequence.wrapping_add(1),
        ..previous
    }
}

#[cfg(test)]
mod tests;
