//! The headers of a segment and of its frames: identity and type of each chunk on the medium.
//!
//! README.md, "Layout", describes every byte. No file is touched here.

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind};

/// The first bytes of a segment file.
pub const SEGMENT_MAGIC: [u8; 4] = *b"BSEG";
/// The version that this crate writes and reads.
pub const SEGMENT_VERSION: u16 = 1;
/// How long a segment's header is.
pub const SEGMENT_HEADER_BYTES: usize = 32;
/// The first bytes of a frame. A reader looks for them after damage.
pub const FRAME_MARKER: [u8; 4] = [0xC5, b'F', b'R', 0x9A];
/// How long a frame's header is; the chunk follows.
pub const FRAME_HEADER_BYTES: usize = 76;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The number of the first chunk, as in the file's name.
    pub first_chunk: u64,
    /// When the segment was made, in nanoseconds since the Unix epoch.
    pub created_unix_ns: u64,
    /// A random number that each frame repeats, so that bytes *inside* a chunk are never mistaken
    /// for a frame.
    pub tag: u32,
}

impl SegmentHeader {
    /// The header's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let fields: [&[u8]; 6] = [
            &SEGMENT_MAGIC,
            &SEGMENT_VERSION.to_le_bytes(),
            &[0; 2],
            &self.first_chunk.to_le_bytes(),
            &self.created_unix_ns.to_le_bytes(),
            &self.tag.to_le_bytes(),
        ];
        with_checksum(fields.concat())
    }

    /// Reads and checks a header.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] names the damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, SegmentError> {
        let mut input = checked::<SEGMENT_HEADER_BYTES>(bytes, SEGMENT_MAGIC)?;
        let version = u16::from_le_bytes(take(&mut input)?);
        if version != SEGMENT_VERSION {
            return Err(SegmentError::Version(version));
        }
        let _reserved: [u8; 2] = take(&mut input)?;
        Ok(Self {
            first_chunk: u64::from_le_bytes(take(&mut input)?),
            created_unix_ns: u64::from_le_bytes(take(&mut input)?),
            tag: u32::from_le_bytes(take(&mut input)?),
        })
    }
}

/// The header of a frame. The chunk follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// The segment's tag.
    pub tag: u32,
    /// The chunk's number in the folder.
    pub number: u64,
    /// The chunk's length in bytes.
    pub length: u32,
    /// The CRC32C of the chunk.
    pub chunk_crc32c: u32,
    /// Container, records and identity of the chunk; absent when this version does not know the
    /// container.
    pub meta: Option<ChunkMeta>,
}

impl FrameHeader {
    /// The header of a frame with this chunk.
    ///
    /// # Errors
    ///
    /// [`SegmentError::Length`] when the chunk is 4 GiB or larger.
    pub fn new(tag: u32, number: u64, meta: ChunkMeta, chunk: &[u8]) -> Result<Self, SegmentError> {
        Ok(Self {
            tag,
            number,
            length: u32::try_from(chunk.len()).map_err(|_| SegmentError::Length(chunk.len()))?,
            chunk_crc32c: crc32c::crc32c(chunk),
            meta: Some(meta),
        })
    }

    /// The header's bytes.
    pub fn encode(&self) -> Vec<u8> {
        let container = self.meta.map_or(0, |meta| container_code(meta.container));
        let records = self.meta.map_or(0, |meta| meta.records);
        let identity = self.meta.map(|meta| meta.identity.to_bytes());
        let fields: [&[u8]; 8] = [
            &FRAME_MARKER,
            &self.tag.to_le_bytes(),
            &self.number.to_le_bytes(),
            &self.length.to_le_bytes(),
            &self.chunk_crc32c.to_le_bytes(),
            &[container, 0, 0, 0],
            &records.to_le_bytes(),
            &identity.unwrap_or([0; ChunkIdentity::BYTES]),
        ];
        with_checksum(fields.concat())
    }

    /// Reads and checks a frame's header.
    ///
    /// # Errors
    ///
    /// [`SegmentError`] names the damage.
    pub fn decode(bytes: &[u8]) -> Result<Self, SegmentError> {
        let mut input = checked::<FRAME_HEADER_BYTES>(bytes, FRAME_MARKER)?;
        let tag = u32::from_le_bytes(take(&mut input)?);
        let number = u64::from_le_bytes(take(&mut input)?);
        let length = u32::from_le_bytes(take(&mut input)?);
        let chunk_crc32c = u32::from_le_bytes(take(&mut input)?);
        let [container, _, _, _] = take(&mut input)?;
        let records = u32::from_le_bytes(take(&mut input)?);
        let identity = ChunkIdentity::from_bytes(&take(&mut input)?);
        let meta = container_of(container).zip(identity);
        Ok(Self {
            tag,
            number,
            length,
            chunk_crc32c,
            meta: meta.map(|(container, identity)| ChunkMeta {
                container,
                records,
                identity,
            }),
        })
    }

    /// Whether this is the chunk that the header announces.
    pub fn matches(&self, chunk: &[u8]) -> bool {
        crc32c::crc32c(chunk) == self.chunk_crc32c
    }

    /// How long the frame is, chunk included.
    pub fn frame_bytes(&self) -> u64 {
        u64::from(self.length).saturating_add(FRAME_HEADER_BYTES as u64)
    }
}

/// Why a header or a frame is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The header's checksum does not match.
    #[error("the checksum of the header does not match")]
    HeaderChecksum,
    /// The chunk's checksum does not match.
    #[error("the checksum of the chunk does not match")]
    ChunkChecksum,
    /// The magic or the marker is missing.
    #[error("the marker is missing")]
    Marker,
    /// The bytes are too few.
    #[error("cut short: {needed} bytes needed, {left} left")]
    Short {
        /// How many bytes were needed.
        needed: u64,
        /// How many are there.
        left: u64,
    },
    /// The frame belongs to another segment, or its number was passed already.
    #[error("a frame of another segment or time")]
    Foreign,
    /// The chunk does not fit the length field of a frame.
    #[error("a chunk of {0} bytes does not fit a frame")]
    Length(usize),
    /// The chunk is larger than the reader takes.
    #[error("a chunk of {length} bytes is above the limit of {limit}")]
    Limit {
        /// The chunk's length.
        length: u32,
        /// The reader's limit.
        limit: usize,
    },
    /// The segment is of another version.
    #[error("version {0} is unknown to this reader")]
    Version(u16),
}

const fn container_code(container: ContainerKind) -> u8 {
    match container {
        ContainerKind::Native => 1,
        ContainerKind::Kieker => 2,
        ContainerKind::Added => 3,
    }
}

const fn container_of(code: u8) -> Option<ContainerKind> {
    match code {
        1 => Some(ContainerKind::Native),
        2 => Some(ContainerKind::Kieker),
        3 => Some(ContainerKind::Added),
        _ => None,
    }
}

/// Checks marker and checksum of a header of `N` bytes; returns the bytes between them.
fn checked<const N: usize>(bytes: &[u8], marker: [u8; 4]) -> Result<&[u8], SegmentError> {
    if !bytes.starts_with(&marker) {
        // A header that is cut within its marker is short, not foreign.
        return Err(match marker.starts_with(bytes) {
            true => short(N, bytes.len()),
            false => SegmentError::Marker,
        });
    }
    let Some((header, _)) = bytes.split_first_chunk::<N>() else {
        return Err(short(N, bytes.len()));
    };
    let (rest, crc) = header.split_last_chunk::<4>().ok_or(SegmentError::Marker)?;
    if crc32c::crc32c(rest) != u32::from_le_bytes(*crc) {
        return Err(SegmentError::HeaderChecksum);
    }
    rest.get(marker.len()..).ok_or(SegmentError::Marker)
}

fn take<const N: usize>(input: &mut &[u8]) -> Result<[u8; N], SegmentError> {
    let (part, rest) = input
        .split_first_chunk::<N>()
        .ok_or_else(|| short(N, input.len()))?;
    *input = rest;
    Ok(*part)
}

const fn short(needed: usize, left: usize) -> SegmentError {
    SegmentError::Short {
        needed: needed as u64,
        left: left as u64,
    }
}

/// Appends the checksum of a header.
fn with_checksum(mut header: Vec<u8>) -> Vec<u8> {
    let checksum = crc32c::crc32c(&header);
    header.extend_from_slice(&checksum.to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;
    use baler_common::transport::{Epoch, ProducerId};
    use proptest::prelude::*;

    fn frame_header() -> FrameHeader {
        let meta = ChunkMeta {
            container: ContainerKind::Kieker,
            records: 3,
            identity: ChunkIdentity {
                producer: ProducerId::new(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10),
                epoch: Epoch {
                    start_unix_ns: 1_700_000_000_000_000_000,
                    random: 0xdead_beef,
                },
                lane: 7,
                sequence: 9,
            },
        };
        FrameHeader::new(0x1122_3344, 5, meta, b"KIKA...").unwrap()
    }

    #[test]
    fn segment_header_has_the_documented_bytes() {
        let header = SegmentHeader {
            first_chunk: 0x0102,
            created_unix_ns: 0x0304_0506_0708_090a,
            tag: 0x1122_3344,
        };
        let bytes = header.encode();
        assert_eq!(bytes[..8], *b"BSEG\x01\0\0\0");
        assert_eq!(bytes[8..16], [2, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[24..28], [0x44, 0x33, 0x22, 0x11]);
        assert_eq!(bytes[28..], crc32c::crc32c(&bytes[..28]).to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Ok(header));
    }

    #[test]
    fn frame_header_has_the_documented_bytes() {
        let header = frame_header();
        let bytes = header.encode();
        assert_eq!(bytes[..4], FRAME_MARKER);
        assert_eq!(bytes[8..16], [5, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(bytes[16..20], [7, 0, 0, 0]);
        assert_eq!(bytes[24..28], [2, 0, 0, 0]);
        assert_eq!(bytes[28..32], [3, 0, 0, 0]);
        assert_eq!(bytes[32..72], header.meta.unwrap().identity.to_bytes());
        assert_eq!(FrameHeader::decode(&bytes), Ok(header));
        for (container, code) in [(ContainerKind::Native, 1), (ContainerKind::Added, 3)] {
            let mut other = header;
            other.meta.as_mut().unwrap().container = container;
            assert_eq!(other.encode()[24], code);
            assert_eq!(FrameHeader::decode(&other.encode()), Ok(other));
        }
    }

    #[test]
    fn later_version_is_named() {
        let header = SegmentHeader {
            first_chunk: 0,
            created_unix_ns: 0,
            tag: 0,
        };
        let mut bytes = header.encode();
        bytes[4] = 2;
        let crc = crc32c::crc32c(&bytes[..28]);
        bytes[28..].copy_from_slice(&crc.to_le_bytes());
        assert_eq!(SegmentHeader::decode(&bytes), Err(SegmentError::Version(2)));
    }

    proptest! {
        #[test]
        fn every_flip_of_a_frame_header_is_found(bit in 0..FRAME_HEADER_BYTES * 8) {
            let mut bytes = frame_header().encode();
            bytes[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(FrameHeader::decode(&bytes).is_err());
        }

        #[test]
        fn every_cut_of_a_frame_header_is_short(length in 0..FRAME_HEADER_BYTES) {
            let bytes = frame_header().encode();
            let short = matches!(
                FrameHeader::decode(&bytes[..length]),
                Err(SegmentError::Short { .. })
            );
            prop_assert!(short);
        }
    }
}
