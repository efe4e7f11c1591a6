//! Frames as bytes. PROTOCOL.md describes every one of them.

use baler_common::transport::ContainerKind;

use crate::error::ProtocolErrorKind;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// From the sender: a chunk.
    Chunk,
    /// From the receiver: how many chunks, from the first of the connection on, are settled.
    Acknowledgement,
    /// From both: still there.
    Heartbeat,
    /// From both: nothing follows.
    Bye,
    /// From the receiver: a chunk is refused, since another connection sends chunks of its producer.
    Refusal,
}

impl FrameKind {
    const fn code(self) -> u8 {
        match self {
            Self::Chunk => 0x01,
            Self::Acknowledgement => 0x02,
            Self::Heartbeat => 0x03,
            Self::Bye => 0x04,
            Self::Refusal => 0x05,
        }
    }

    fn from_code(code: u8) -> Option<Self> {
        [
            Self::Chunk,
            Self::Acknowledgement,
            Self::Heartbeat,
            Self::Bye,
            Self::Refusal,
        ]
        .into_iter()
        .find(|kind| kind.code() == code)
    }
}

/// A frame's header, complete but for what follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// Whether the chunk's identity stands between header and container.
    pub(crate) has_identity: bool,
    /// The checksum of what follows, see [`covered`].
    pub(crate) checksum: u32,
    /// Which container; meaningful for chunks only.
    pub(crate) container: ContainerKind,
    /// How many records; for chunks.
    pub(crate) records: u32,
    /// How many bytes follow the header.
    pub(crate) length: u32,
    /// A chunk's number in the connection, or how many chunks are settled.
    pub(crate) sequence: u64,
}

impl FrameHeader {
    /// How many bytes a header has.
    pub(crate) const BYTES: usize = 28;

    const HAS_IDENTITY: u8 = 0x01;

    /// A frame that is all header.
    pub(crate) const fn short(kind: FrameKind, sequence: u64) -> Self {
        Self {
            kind,
            has_identity: false,
            checksum: 0,
            container: ContainerKind::Native,
            records: 0,
            length: 0,
            sequence,
        }
    }

    /// Appends the header's bytes.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        let container = match (self.kind, self.container) {
            (FrameKind::Chunk, ContainerKind::Kieker) => 0x01,
            (FrameKind::Chunk, ContainerKind::Native) => 0x02,
            _ => 0,
        };
        let flags = if self.has_identity {
            Self::HAS_IDENTITY
        } else {
            0
        };
        let start = out.len();
        out.extend_from_slice(&[self.kind.code(), flags, container, 0]);
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        let checksum = crc32c::crc32c(out.get(start..).unwrap_or_default());
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads a header. Its checksum comes first: no field of a flipped header is believed.
    pub(crate) fn read(bytes: &[u8; Self::BYTES]) -> Result<Self, ProtocolErrorKind> {
        let fields = || {
            let mut rest = bytes.as_slice();
            let codes = take::<4>(&mut rest)?;
            let length = u32::from_le_bytes(take(&mut rest)?);
            let records = u32::from_le_bytes(take(&mut rest)?);
            let checksum = u32::from_le_bytes(take(&mut rest)?);
            let sequence = u64::from_le_bytes(take(&mut rest)?);
            let own_checksum = u32::from_le_bytes(take(&mut rest)?);
            Some((codes, length, records, checksum, sequence, own_checksum))
        };
        let ([kind, flags, container, reserved], length, records, checksum, sequence, found) =
            fields().ok_or(ProtocolErrorKind::Ended)?;
        check_sum(bytes, found)?;
        let invalid = |found: u8| ProtocolErrorKind::Invalid {
            found: u64::from(found),
        };
        let kind = FrameKind::from_code(kind).ok_or_else(|| invalid(kind))?;
        if flags & !Self::HAS_IDENTITY != 0 || reserved != 0 {
            return Err(invalid(flags | reserved));
        }
        let container = match (kind, container) {
            (FrameKind::Chunk, 0x01) => ContainerKind::Kieker,
            (FrameKind::Chunk, 0x02) => ContainerKind::Native,
            (FrameKind::Chunk, _) => return Err(invalid(container)),
            (_, 0) => ContainerKind::Native,
            (_, _) => return Err(invalid(container)),
        };
        if kind != FrameKind::Chunk && length != 0 {
            return Err(ProtocolErrorKind::Length {
                found: u64::from(length),
                low: 0,
                high: 0,
            });
        }
        Ok(Self {
            kind,
            has_identity: flags & Self::HAS_IDENTITY != 0,
            checksum,
            container,
            records,
            length,
            sequence,
        })
    }
}

/// How many of the bytes that follow a header its checksum covers: the identity, and a container
/// that has no checksum of its own.
pub(crate) const fn covered(container: ContainerKind, identity: usize, length: usize) -> usize {
    match container {
        ContainerKind::Kieker => length,
        ContainerKind::Native => identity,
    }
}

/// Checks a checksum that stands in the last four of these bytes and covers the others.
pub(crate) fn check_sum(bytes: &[u8], found: u32) -> Result<(), ProtocolErrorKind> {
    let covered = bytes
        .split_last_chunk::<4>()
        .map_or(bytes, |(covered, _)| covered);
    let computed = crc32c::crc32c(covered);
    if computed == found {
        Ok(())
    } else {
        Err(ProtocolErrorKind::Checksum { found, computed })
    }
}

/// Takes the first bytes off.
pub(crate) fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (first, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(*first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hello::{ConnectionLimits, Hello, Role, VERSIONS};

    fn chunk() -> FrameHeader {
        FrameHeader {
            kind: FrameKind::Chunk,
            has_identity: true,
            checksum: 0xdead_beef,
            container: ContainerKind::Kieker,
            records: 16,
            length: 1000,
            sequence: 1 << 40,
        }
    }

    /// The bytes of the examples of PROTOCOL.md, in order.
    fn documented() -> Vec<u8> {
        let text = include_str!("../PROTOCOL.md");
        let (_, examples) = text.split_once("## Example").unwrap();
        let is_hex = |word: &str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
        let lines = examples.lines().map(|line| line.split(' '));
        let words = lines.flat_map(|words| words.take_while(|word| is_hex(word)));
        words
            .map(|word| u8::from_str_radix(word, 16).unwrap())
            .collect()
    }

    #[test]
    fn documented_examples_are_the_bytes() {
        let limits = ConnectionLimits {
            max_chunk_bytes: 1 << 20,
            window_chunks: 64,
            window_bytes: 4 << 20,
        };
        let hello = Hello {
            versions: VERSIONS,
            role: Role::Sender,
            features: 0,
            limits,
            heartbeat_ms: 5000,
        };
        let mut bytes = hello.to_bytes();
        FrameHeader::short(FrameKind::Acknowledgement, 3).write(&mut bytes);
        assert_eq!(documented(), bytes);
    }

    #[test]
    fn every_flipped_bit_of_a_header_is_noticed() {
        for header in [chunk(), FrameHeader::short(FrameKind::Acknowledgement, 7)] {
            let mut bytes = Vec::new();
            header.write(&mut bytes);
            let bytes: [u8; FrameHeader::BYTES] = bytes.try_into().unwrap();
            assert_eq!(FrameHeader::read(&bytes), Ok(header));
            for bit in 0..FrameHeader::BYTES * 8 {
                let mut flipped = bytes;
                flipped[bit / 8] ^= 1 << (bit % 8);
                assert!(FrameHeader::read(&flipped).is_err(), "bit {bit}");
            }
        }
    }
}
