//! What both sides say first, as bytes. PROTOCOL.md describes every one of them.

use std::fmt;

use crate::error::ProtocolErrorKind;
use crate::frame::{check_sum, take};

/// The first bytes of both sides.
pub(crate) const MAGIC: [u8; 8] = *b"BALERTCP";

/// The versions of the protocol that this crate speaks.
pub(crate) const VERSIONS: VersionRange = VersionRange { low: 1, high: 1 };

/// Versions of the protocol that a side speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VersionRange {
    /// The lowest.
    pub low: u16,
    /// The highest.
    pub high: u16,
}

impl VersionRange {
    /// The highest version that both speak.
    pub(crate) fn common(self, other: Self) -> Option<u16> {
        let high = self.high.min(other.high);
        (high >= self.low.max(other.low)).then_some(high)
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "version {}", self.low)
        } else {
            write!(f, "versions {} to {}", self.low, self.high)
        }
    }
}

/// Which end of a connection a peer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Sender,
    Receiver,
}

impl Role {
    const fn code(self) -> u8 {
        match self {
            Self::Sender => 0x01,
            Self::Receiver => 0x02,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Receiver => "receiver",
        }
    }
}

/// The limits of a side, and after the hellos those of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) max_chunk_bytes: u32,
    pub(crate) window_chunks: u32,
    pub(crate) window_bytes: u64,
}

impl ConnectionLimits {
    /// The smaller limit wins.
    pub(crate) fn min(self, other: Self) -> Self {
        Self {
            max_chunk_bytes: self.max_chunk_bytes.min(other.max_chunk_bytes),
            window_chunks: self.window_chunks.min(other.window_chunks),
            window_bytes: self.window_bytes.min(other.window_bytes),
        }
    }
}

/// What each side says first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hello {
    pub(crate) versions: VersionRange,
    pub(crate) role: Role,
    /// Bits such as [`Hello::TOKEN`]; unknown ones are ignored.
    pub(crate) features: u16,
    pub(crate) limits: ConnectionLimits,
    /// How often at least the side will be heard of, in milliseconds.
    pub(crate) heartbeat_ms: u32,
}

impl Hello {
    /// How many bytes a hello has, in every version.
    pub(crate) const BYTES: usize = 40;

    /// A sender has a token; a receiver demands one.
    pub(crate) const TOKEN: u16 = 0x0001;

    /// The longest time between two signs of life that a side may announce: ten minutes.
    const MAX_HEARTBEAT_MS: u32 = 600_000;

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
        bytes
            .iter()
            .zip(&MAGIC)
            .all(|(found, magic)| found == magic)
    }

    /// Reads the hello of a peer that must have this role and a version in common.
    pub(crate) fn read(
        bytes: &[u8; Self::BYTES],
        expected: Role,
    ) -> Result<Self, ProtocolErrorKind> {
        let fields = || {
            let mut rest = bytes.as_slice();
            let magic = take::<8>(&mut rest)?;
            let low = u16::from_le_bytes(take(&mut rest)?);
            let high = u16::from_le_bytes(take(&mut rest)?);
            let [role, _reserved, features @ ..] = take::<4>(&mut rest)?;
            let features = u16::from_le_bytes(features);
            let limits = ConnectionLimits {
                max_chunk_bytes: u32::from_le_bytes(take(&mut rest)?),
                window_chunks: u32::from_le_bytes(take(&mut rest)?),
                window_bytes: u64::from_le_bytes(take(&mut rest)?),
            };
            let heartbeat_ms = u32::from_le_bytes(take(&mut rest)?);
            let checksum = u32::from_le_bytes(take(&mut rest)?);
            Some((
                magic,
                VersionRange { low, high },
                role,
                features,
                limits,
                heartbeat_ms,
                checksum,
            ))
        };
        let (magic, versions, role, features, limits, heartbeat_ms, found) =
            fields().ok_or(ProtocolErrorKind::Ended)?;
        if magic != MAGIC {
            return Err(ProtocolErrorKind::Magic);
        }
        check_sum(bytes, found)?;
        // Before anything else: other versions may mean something else by what follows.
        if VERSIONS.common(versions).is_none() {
            return Err(ProtocolErrorKind::Version {
                theirs: versions,
                ours: VERSIONS,
            });
        }
        let found = [Role::Sender, Role::Receiver]
            .into_iter()
            .find(|known| known.code() == role)
            .ok_or_else(|| ProtocolErrorKind::Invalid {
                found: u64::from(role),
            })?;
        if found != expected {
            return Err(ProtocolErrorKind::Role {
                found: found.name(),
                expected: expected.name(),
            });
        }
        let least = limits
            .window_bytes
            .min(u64::from(limits.max_chunk_bytes.min(limits.window_chunks)));
        if least == 0 || heartbeat_ms == 0 || heartbeat_ms > Self::MAX_HEARTBEAT_MS {
            return Err(ProtocolErrorKind::Invalid {
                found: u64::from(heartbeat_ms).min(least),
            });
        }
        Ok(Self {
            versions,
            role: found,
            features,
            limits,
            heartbeat_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello() -> Hello {
        Hello {
            versions: VERSIONS,
            role: Role::Sender,
            features: 0,
            limits: ConnectionLimits {
                max_chunk_bytes: 1 << 20,
                window_chunks: 64,
                window_bytes: 1 << 33,
            },
            heartbeat_ms: 5000,
        }
    }

    #[test]
    fn hello_survives_its_bytes() {
        let bytes: [u8; Hello::BYTES] = hello().to_bytes().try_into().unwrap();
        assert_eq!(Hello::read(&bytes, Role::Sender), Ok(hello()));
        assert!(matches!(
            Hello::read(&bytes, Role::Receiver),
            Err(ProtocolErrorKind::Role { .. })
        ));
    }

    #[test]
    fn every_flipped_bit_of_a_hello_is_noticed() {
        let bytes: [u8; Hello::BYTES] = hello().to_bytes().try_into().unwrap();
        for bit in 0..Hello::BYTES * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Hello::read(&flipped, Role::Sender).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn hello_without_limits_or_heartbeat_is_refused() {
        let limits = hello().limits;
        let table = [
            Hello {
                limits: ConnectionLimits {
                    max_chunk_bytes: 0,
                    ..limits
                },
                ..hello()
            },
            Hello {
                limits: ConnectionLimits {
                    window_chunks: 0,
                    ..limits
                },
                ..hello()
            },
            Hello {
                limits: ConnectionLimits {
                    window_bytes: 0,
                    ..limits
                },
                ..hello()
            },
            Hello {
                heartbeat_ms: 0,
                ..hello()
            },
            Hello {
                heartbeat_ms: 600_001,
                ..hello()
            },
        ];
        for wrong in table {
            let bytes = wrong.to_bytes().try_into().unwrap();
            assert!(matches!(
                Hello::read(&bytes, Role::Sender),
                Err(ProtocolErrorKind::Invalid { .. })
            ));
        }
    }

    #[test]
    fn versions_meet_at_the_highest_common_one() {
        let range = |low, high| VersionRange { low, high };
        assert_eq!(range(1, 3).common(range(2, 9)), Some(3));
        assert_eq!(range(1, 1).common(range(2, 9)), None);
        assert_eq!(range(1, 1).to_string(), "version 1");
        assert_eq!(range(2, 9).to_string(), "versions 2 to 9");
    }
}
