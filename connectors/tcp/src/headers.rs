//! The bytes of hellos and frame headers. PROTOCOL.md describes all of them.

use baler_common::transport::ContainerKind;

use crate::error::ProtocolErrorKind;
use crate::versions::{VERSIONS, VersionRange};

/// The first bytes of both sides.
pub(crate) const MAGIC: [u8; 8] = *b"BALERTCP";

/// The role of one end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Role {
    Sender = 0x01,
    Receiver = 0x02,
}

impl Role {
    const fn code(self) -> u8 {
        self as u8
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// The limits of one side; after the hellos, the limits of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) max_chunk_bytes: u32,
    pub(crate) window_chunks: u32,
    pub(crate) window_bytes: u64,
}

impl ConnectionLimits {
    /// Returns the smaller limits of the two sides.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            max_chunk_bytes: self.max_chunk_bytes.min(other.max_chunk_bytes),
            window_chunks: self.window_chunks.min(other.window_chunks),
            window_bytes: self.window_bytes.min(other.window_bytes),
        }
    }
}

/// The first message of each side: its version, role and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) versions: VersionRange,
    pub(crate) role: Role,
    /// Bits such as [`Hello::TOKEN`]; unknown ones are ignored.
    pub(crate) features: u16,
    pub(crate) limits: ConnectionLimits,
    /// The longest time between two frames of the side, in milliseconds.
    pub(crate) heartbeat_ms: u32,
}

impl Hello {
    /// The length of a hello, in every version.
    pub(crate) const BYTES: usize = 40;

    /// The bit of a sender that has a token, and of a receiver that demands one.
    pub(crate) const TOKEN: u16 = 0x0001;

    /// The longest interval of heartbeats that a side may announce: ten minutes.
    pub(crate) const MAX_HEARTBEAT_MS: u32 = 600_000;

    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&self.versions.low.to_le_bytes());
        bytes.extend_from_slice(&self.versions.high.to_le_bytes());
        bytes.extend_from_slice(&[self.role.code(), 0]);
        bytes.extend_from_slice(&self.features.to_le_bytes());
        bytes.extend_from_slice(&self.limits.max_chunk_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.limits.window_chunks.to_le_bytes());
        bytes.extend_from_slice(&self.limits.window_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.heartbeat_ms.to_le_bytes());
        bytes.extend_from_slice(&crc32c::crc32c(&bytes).to_le_bytes());
        bytes
    }

    /// Whether this side has, or demands, a token.
    pub(crate) fn has_token(self) -> bool {
        self.features & Self::TOKEN != 0
    }

    /// Whether these bytes may be the start of a hello.
    pub(crate) fn may_start(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC) || MAGIC.starts_with(bytes)
    }

    /// Reads the hello of a peer, which must have this role and a common version.
    pub(crate) fn read(
        bytes: &[u8; Self::BYTES],
        expected: Role,
    ) -> Result<Self, ProtocolErrorKind> {
        let mut rest = bytes.as_slice();
        if take(&mut rest)? != MAGIC {
            return Err(ProtocolErrorKind::Magic);
        }
        check_sum(bytes)?;
        let versions = VersionRange {
            low: u16::from_le_bytes(take(&mut rest)?),
            high: u16::from_le_bytes(take(&mut rest)?),
        };
        // Checked before the next fields: in other versions they may have another meaning.
        if VERSIONS.common(versions).is_none() {
            return Err(ProtocolErrorKind::Version {
                theirs: versions,
                ours: VERSIONS,
            });
        }
        let [role, _reserved] = take(&mut rest)?;
        let role = [Role::Sender, Role::Receiver]
            .into_iter()
            .find(|known| known.code() == role)
            .ok_or_else(|| ProtocolErrorKind::Invalid {
                found: u64::from(role),
            })?;
        if role != expected {
            return Err(ProtocolErrorKind::Role {
                found: role.name(),
                expected: expected.name(),
            });
        }
        let hello = Self {
            versions,
            role,
            features: u16::from_le_bytes(take(&mut rest)?),
            limits: ConnectionLimits {
                max_chunk_bytes: u32::from_le_bytes(take(&mut rest)?),
                window_chunks: u32::from_le_bytes(take(&mut rest)?),
                window_bytes: u64::from_le_bytes(take(&mut rest)?),
            },
            heartbeat_ms: u32::from_le_bytes(take(&mut rest)?),
        };
        let limits = hello.limits;
        let least = limits
            .window_bytes
            .min(u64::from(limits.max_chunk_bytes.min(limits.window_chunks)));
        if least == 0 || !(1..=Self::MAX_HEARTBEAT_MS).contains(&hello.heartbeat_ms) {
            return Err(ProtocolErrorKind::Invalid {
                found: u64::from(hello.heartbeat_ms).min(least),
            });
        }
        Ok(hello)
    }
}

/// The kinds of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum FrameKind {
    /// From the sender: a chunk.
    Chunk = 0x01,
    /// From the receiver: the number of settled chunks, from the first of the connection on.
    Acknowledgement = 0x02,
    /// From both: the side is alive.
    Heartbeat = 0x03,
    /// From both: no frame follows.
    Bye = 0x04,
    /// From the receiver: it refuses a chunk because another connection sends chunks of its
    /// producer.
    Refusal = 0x05,
}

impl FrameKind {
    const fn code(self) -> u8 {
        self as u8
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

/// The header of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) kind: FrameKind,
    /// Whether the chunk's identity stands between header and container.
    pub(crate) has_identity: bool,
    /// The checksum of the bytes after the header, see [`covered`].
    pub(crate) checksum: u32,
    /// The kind of a chunk's container.
    pub(crate) container: ContainerKind,
    /// The number of records in a chunk.
    pub(crate) records: u32,
    /// The number of bytes after the header.
    pub(crate) length: u32,
    /// A chunk's number in the connection, or the number of settled chunks.
    pub(crate) sequence: u64,
}

impl FrameHeader {
    /// The length of a header.
    pub(crate) const BYTES: usize = 28;

    const HAS_IDENTITY: u8 = 0x01;

    /// Returns a frame that consists of its header.
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
            (FrameKind::Chunk, ContainerKind::Added) => 0x03,
            _ => 0,
        };
        let flags = u8::from(self.has_identity) * Self::HAS_IDENTITY;
        let start = out.len();
        out.extend_from_slice(&[self.kind.code(), flags, container, 0]);
        out.extend_from_slice(&self.length.to_le_bytes());
        out.extend_from_slice(&self.records.to_le_bytes());
        out.extend_from_slice(&self.checksum.to_le_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
        let (_, header) = out.split_at(start);
        let checksum = crc32c::crc32c(header);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Reads a header. Checks the checksum first, so that no field of a damaged header is used.
    pub(crate) fn read(bytes: &[u8; Self::BYTES]) -> Result<Self, ProtocolErrorKind> {
        check_sum(bytes)?;
        let mut rest = bytes.as_slice();
        let [kind, flags, container, reserved] = take(&mut rest)?;
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
            (FrameKind::Chunk, 0x03) => ContainerKind::Added,
            (FrameKind::Chunk, _) => return Err(invalid(container)),
            (_, 0) => ContainerKind::Native,
            (_, _) => return Err(invalid(container)),
        };
        let header = Self {
            kind,
            has_identity: flags & Self::HAS_IDENTITY != 0,
            container,
            length: u32::from_le_bytes(take(&mut rest)?),
            records: u32::from_le_bytes(take(&mut rest)?),
            checksum: u32::from_le_bytes(take(&mut rest)?),
            sequence: u64::from_le_bytes(take(&mut rest)?),
        };
        if kind != FrameKind::Chunk && header.length != 0 {
            return Err(ProtocolErrorKind::Length {
                found: u64::from(header.length),
                low: 0,
                high: 0,
            });
        }
        Ok(header)
    }
}

/// Returns how many bytes after a header its checksum covers: the identity, and a container without
/// a checksum of its own.
pub(crate) const fn covered(container: ContainerKind, identity: usize, length: usize) -> usize {
    match container {
        ContainerKind::Added | ContainerKind::Kieker => length,
        ContainerKind::Native => identity,
    }
}

/// Checks the checksum in the last four bytes, which covers the bytes before it.
fn check_sum(bytes: &[u8]) -> Result<(), ProtocolErrorKind> {
    let (covered, found) = bytes.split_last_chunk().ok_or(ProtocolErrorKind::Ended)?;
    let (found, computed) = (u32::from_le_bytes(*found), crc32c::crc32c(covered));
    if computed == found {
        Ok(())
    } else {
        Err(ProtocolErrorKind::Checksum { found, computed })
    }
}

/// Takes the first bytes off `rest`.
fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], ProtocolErrorKind> {
    let (first, after) = rest.split_first_chunk().ok_or(ProtocolErrorKind::Ended)?;
    *rest = after;
    Ok(*first)
}

#[cfg(test)]
mod tests;
