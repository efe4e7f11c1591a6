//! The first 16 bytes, and the checksum at the end; FORMAT.md, "Prefix".

use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind, EncodeError};
use crate::container::limits::Limits;
use crate::number::{to_u64, to_usize};

/// The first bytes of the container.
pub(in crate::container) const MAGIC: [u8; 4] = *b"BALR";

/// The version that this code writes and reads.
const VERSION: u8 = 1;

/// How many bytes the prefix has.
pub(in crate::container) const PREFIX_BYTES: usize = 16;

/// How many bytes of the prefix its own checksum covers.
const CHECKED_BYTES: usize = 12;

/// How many bytes the checksum at the end has.
pub(super) const CHECKSUM_BYTES: usize = 4;

/// The checksum of any bytes that end with their own checksum, like the prefix.
const OF_CHECKED: u32 = 0x4867_4bc7;

/// Fills the prefix at `start` and appends the checksum: the last step of writing a chunk.
pub(super) fn seal(out: &mut Vec<u8>, start: usize, format: u8) -> Result<usize, EncodeError> {
    let bytes = out.len() - start + CHECKSUM_BYTES;
    let total = u32::try_from(bytes).map_err(|_| EncodeError::TooLarge {
        bytes,
        limit: to_usize(u32::MAX),
    })?;
    let [m0, m1, m2, m3] = MAGIC;
    let [t0, t1, t2, t3] = total.to_le_bytes();
    let checked: [u8; CHECKED_BYTES] = [m0, m1, m2, m3, VERSION, format, 0, 0, t0, t1, t2, t3];
    let checksum = crc32c::crc32c(&checked).to_le_bytes();
    let chunk = out.get_mut(start..);
    if let Some((prefix, behind)) = chunk.and_then(|it| it.split_at_mut_checked(PREFIX_BYTES)) {
        let filled = checked.iter().chain(&checksum);
        prefix
            .iter_mut()
            .zip(filled)
            .for_each(|(to, from)| *to = *from);
        let checksum = crc32c::crc32c_append(OF_CHECKED, behind);
        out.extend_from_slice(&checksum.to_le_bytes());
    }
    Ok(bytes)
}

/// Returns the length of a chunk from its prefix, if these bytes begin with a valid one.
pub(in crate::container) fn declared_bytes(start: &[u8]) -> Option<u32> {
    let (prefix, _) = start.split_first_chunk::<PREFIX_BYTES>()?;
    let (checked, checksum) = prefix.split_last_chunk::<CHECKSUM_BYTES>()?;
    let (_, length) = checked.split_last_chunk::<4>()?;
    let bytes = u32::from_le_bytes(*length);
    let sound = checked.starts_with(&MAGIC)
        && crc32c::crc32c(checked) == u32::from_le_bytes(*checksum)
        && to_usize(bytes) >= PREFIX_BYTES + CHECKSUM_BYTES;
    sound.then_some(bytes)
}

/// What surrounds the content of a valid chunk.
pub(super) struct Envelope<'a> {
    /// The format of the body.
    pub(super) format: u8,
    /// The bytes between prefix and checksum.
    pub(super) content: Cursor<'a>,
    pub(super) checksum: u32,
}

/// Checks prefix, length and checksum.
pub(super) fn open<'a>(chunk: &'a [u8], limits: &Limits) -> Result<Envelope<'a>, DecodeError> {
    let mut cursor = Cursor::new(chunk);
    if chunk.len() > limits.chunk_bytes {
        return Err(cursor.over_limit("the chunk", to_u64(chunk.len()), limits.chunk_bytes));
    }
    let mut checked = cursor.split(CHECKED_BYTES, "the prefix")?;
    check(
        crc32c::crc32c(checked.clone().take_rest()),
        &mut cursor,
        "the prefix's checksum",
    )?;

    checked.take(MAGIC.len(), "the magic")?;
    let at = checked.clone();
    let version = checked.u8("the version")?;
    if version != VERSION {
        return Err(unknown(&at, "the version", "version", version.into()));
    }
    let format = checked.u8("the body's format")?;
    let at = checked.clone();
    let reserved = checked.u16("the reserved bytes")?;
    if reserved != 0 {
        return Err(unknown(
            &at,
            "the reserved bytes",
            "value of the reserved bytes",
            reserved.into(),
        ));
    }
    let at = checked.clone();
    let declared = to_usize(checked.u32("the chunk's length")?);
    let found = chunk.len();
    let least = PREFIX_BYTES + CHECKSUM_BYTES;
    if declared > found {
        let kind = DecodeErrorKind::Ends {
            needed: declared,
            left: found,
        };
        return Err(at.error("the chunk", kind));
    }
    if declared < least {
        let kind = DecodeErrorKind::Invalid {
            found: to_u64(declared),
        };
        return Err(at.error("the chunk's length", kind));
    }

    let content = cursor.split(declared - least, "the chunk")?;
    let checked = chunk.get(..declared - CHECKSUM_BYTES).unwrap_or(chunk);
    let checksum = crc32c::crc32c(checked);
    check(checksum, &mut cursor, "the chunk's checksum")?;
    cursor.finish("the chunk")?;
    Ok(Envelope {
        format,
        content,
        checksum,
    })
}

fn check(computed: u32, cursor: &mut Cursor<'_>, reading: &'static str) -> Result<(), DecodeError> {
    let at = cursor.clone();
    let found = cursor.u32(reading)?;
    if found == computed {
        Ok(())
    } else {
        Err(at.error(reading, DecodeErrorKind::Checksum { found, computed }))
    }
}

/// Returns the error that this version does not know something.
pub(super) fn unknown(
    at: &Cursor<'_>,
    reading: &'static str,
    what: &'static str,
    number: u64,
) -> DecodeError {
    at.error(reading, DecodeErrorKind::Unknown { what, number })
}
