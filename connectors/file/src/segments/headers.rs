//! The headers of a segment and of its frames: identity and type of each chunk on the medium.
//!
//! README.md, "Layout", describes every byte. This module does no I/O.

use baler_common::transport::{ChunkIdentity, ChunkMeta, ContainerKind};

/// The first bytes of a segment file.
pub const SEGMENT_MAGIC: [u8; 4] = *b"BSEG";
/// The version of segments that this crate writes and reads.
pub const SEGMENT_VERSION: u16 = 1;
/// The length of a segment's header.
pub const SEGMENT_HEADER_BYTES: usize = 32;
/// The first bytes of a frame. A reader looks for them after damage.
pub const FRAME_MARKER: [u8; 4] = [0xC5, b'F', b'R', 0x9A];
/// The length of a frame's header; the chunk follows.
pub const FRAME_HEADER_BYTES: usize = 76;

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The number of the first chunk, as in the file's name.
    pub first_chunk: u64,
    /// The time when the segment was made, in nanoseconds since the Unix epoch.
    pub created_unix_ns: u64,
    /// A random number that each frame repeats. It ensures that bytes *inside* a chunk are never
    /// mistaken for a frame.
    pub tag: u32,
}

impl SegmentHeader {
    /// Returns the header's bytes.
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
    /// [`SegmentError`] names the reason.
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
    /// Container, records and identity of the chunk; none if this version does not know the
    /// container.
    pub meta: Option<ChunkMeta>,
}

impl FrameHeader {
    /// Creates the header of a frame with this chunk.
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

    /// Returns the header's bytes.
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
    /// [`SegmentError`] names the reason.
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

    /// Returns the length of the frame, chunk included.
    pub fn frame_bytes(&self) -> u64 {
        u64::from(self.length) + FRAME_HEADER_BYTES as u64
    }
}

/// The damage of a header or a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SegmentError {
    /// The header's checksum does not match.
    #[error("the checksum of the header does not match")]
    HeaderChecksum,
    /// The chunk's checksum does not match.
    #[error("the checksum of the chunk does not match")]
    ChunkChecksum,
    /// The marker at the start of a segment or frame is missing.
    #[error("the marker is missing")]
    Marker,
    /// The header or frame is cut short.
    #[error("cut short: {needed} bytes needed, {left} left")]
    Short {
        /// The number of bytes that are needed.
        needed: u64,
        /// The number of bytes that are left.
        left: u64,
    },
    /// The frame belongs to another segment, or its number was already passed.
    #[error("a frame of another segment or time")]
    Foreign,
    /// The length of the chunk does not fit the length field of a frame.
    #[error("a chunk of {0} bytes does not fit a frame")]
    Length(usize),
    /// The chunk is larger than the reader's limit.
    #[error("a chunk of {length} bytes is above the limit of {limit}")]
    Limit {
        /// The chunk's length.
        length: u32,
        /// The reader's limit.
        limit: usize,
    },
    /// The segment has another version.
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

/// Checks marker and checksum of a header of `N` bytes. Returns the bytes between them.
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
mod tests;
