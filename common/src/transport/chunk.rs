//! An encoded chunk, and its identity.

use std::fmt;
use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;

use crate::random::{random, random_u32};

/// One encoded container on its way to a medium.
///
/// Cloning it shares the bytes: retry, spool and writer hold the same memory.
#[derive(Debug, Clone)]
pub struct Chunk {
    /// The owner's number of this chunk; confirmations contain it. Strictly increasing for each
    /// writer.
    pub ticket: u64,
    /// Data that a medium may carry beside the bytes.
    pub meta: ChunkMeta,
    /// The complete container.
    pub bytes: Bytes,
}

/// The information about a chunk that is known without decoding it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkMeta {
    /// The kind of its container.
    pub container: ContainerKind,
    /// The number of its records.
    pub records: u32,
    /// Its identity. Media must carry it if the container cannot hold it
    /// ([`ContainerKind::carries_identity`]), and may always carry it.
    pub identity: ChunkIdentity,
}

/// The kind of a chunk's container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ContainerKind {
    /// A container of another crate, recognised by its magic.
    Added,
    /// Kieker's KIKA/DFLT.
    Kieker,
    /// Baler's own.
    Native,
}

impl ContainerKind {
    /// Whether the container itself holds the chunk's identity. For all others, media carry it.
    pub const fn carries_identity(self) -> bool {
        matches!(self, Self::Native)
    }

    /// The name in URIs, tables and JSON: `native`, `kieker` or `added`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Kieker => "kieker",
            Self::Native => "native",
        }
    }

    /// The kind with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Added, Self::Kieker, Self::Native];
        all.into_iter().find(|kind| kind.name() == name)
    }
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name of a chunk. No two chunks have the same name; a chunk that is sent again keeps it.
///
/// Together with the position of a record in its chunk it names a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ChunkIdentity {
    /// The producer of the chunk.
    pub producer: ProducerId,
    /// The life of the producer.
    pub epoch: Epoch,
    /// The lane of the producer.
    pub lane: u32,
    /// Its number in the lane, dense from 0 in each epoch.
    pub sequence: u64,
}

impl ChunkIdentity {
    /// The number of bytes that [`ChunkIdentity::to_bytes`] returns.
    pub const BYTES: usize = 40;

    /// Returns the first identity of a lane.
    pub const fn first(producer: ProducerId, epoch: Epoch, lane: u32) -> Self {
        Self {
            producer,
            epoch,
            lane,
            sequence: 0,
        }
    }

    /// The identity as little-endian bytes: producer 16, epoch start 8, epoch random 4, lane 4,
    /// sequence 8. Frames of media carry it in this form; FORMAT.md, "Identity".
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let parts = self
            .producer
            .0
            .into_iter()
            .chain(self.epoch.start_unix_ns.to_le_bytes())
            .chain(self.epoch.random.to_le_bytes())
            .chain(self.lane.to_le_bytes())
            .chain(self.sequence.to_le_bytes());
        bytes
            .iter_mut()
            .zip(parts)
            .for_each(|(byte, part)| *byte = part);
        bytes
    }

    /// The identity in these bytes.
    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Option<Self> {
        let (producer, rest) = bytes.split_first_chunk()?;
        let (start, rest) = rest.split_first_chunk()?;
        let (random, rest) = rest.split_first_chunk()?;
        let (lane, rest) = rest.split_first_chunk()?;
        let (sequence, _) = rest.split_first_chunk()?;
        Some(Self {
            producer: ProducerId(*producer),
            epoch: Epoch {
                start_unix_ns: u64::from_le_bytes(*start),
                random: u32::from_le_bytes(*random),
            },
            lane: u32::from_le_bytes(*lane),
            sequence: u64::from_le_bytes(*sequence),
        })
    }
}

impl fmt::Display for ChunkIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}/{}/{}/{}",
            self.producer, self.epoch, self.lane, self.sequence
        )
    }
}

/// The text is not an identity: producer, epoch, lane and sequence, in their displayed form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no identity: write producer/epoch-random/lane/sequence")]
pub struct ParseIdentityError;

/// Reads the output of [`Display`](fmt::Display).
impl FromStr for ChunkIdentity {
    type Err = ParseIdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('/');
            let identity = Self {
                producer: parts.next()?.parse().ok()?,
                epoch: parts.next()?.parse().ok()?,
                lane: parts.next()?.parse().ok()?,
                sequence: parts.next()?.parse().ok()?,
            };
            parts.next().is_none().then_some(identity)
        };
        parse().ok_or(ParseIdentityError)
    }
}

/// A producer: an application instance, over all its lives.
// Bytes rather than a u128 keep chunks, and the errors that return them, below 128 bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerId([u8; 16]);

impl ProducerId {
    /// The producer with this number.
    pub const fn new(number: u128) -> Self {
        Self(number.to_le_bytes())
    }

    /// Returns a producer that no other process has.
    pub fn random() -> Self {
        Self::new(u128::from(random()) << 64 | u128::from(random()))
    }

    /// The producer's number.
    pub const fn as_u128(self) -> u128 {
        u128::from_le_bytes(self.0)
    }
}

impl fmt::Display for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.as_u128())
    }
}

impl fmt::Debug for ProducerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ProducerId {
    type Err = std::num::ParseIntError;

    fn from_str(hex: &str) -> Result<Self, Self::Err> {
        u128::from_str_radix(hex, 16).map(Self::new)
    }
}

/// One life of a producer: from the start of its collector to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Epoch {
    /// When it began, in nanoseconds since the Unix epoch; later lives compare greater.
    pub start_unix_ns: u64,
    /// Distinguishes lives that began in the same nanosecond.
    pub random: u32,
}

impl Epoch {
    /// Returns a life that began at this time.
    pub fn new(start_unix_ns: u64) -> Self {
        Self {
            start_unix_ns,
            random: random_u32(),
        }
    }

    /// As [`new`](Self::new), for a time of the system.
    pub fn at(start: SystemTime) -> Self {
        let since_1970 = start.duration_since(UNIX_EPOCH);
        Self::new(since_1970.map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// Reads the output of [`Display`](fmt::Display): the start in nanoseconds, a hyphen, the random
/// part in hexadecimal.
impl FromStr for Epoch {
    type Err = ParseIdentityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (start, random) = text.split_once('-')?;
            Some(Self {
                start_unix_ns: start.parse().ok()?,
                random: u32::from_str_radix(random, 16).ok()?,
            })
        };
        parse().ok_or(ParseIdentityError)
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{:08x}", self.start_unix_ns, self.random)
    }
}

#[cfg(test)]
mod tests;
