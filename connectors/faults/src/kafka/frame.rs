//! Frames of Kafka's protocol: a length, then so many bytes.

use std::io::{self, Read, Write};

/// The largest frame; clients take responses of up to 100 MB.
const MAX_FRAME: usize = 128 << 20;

/// A frame without its length.
pub(super) fn read(from: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    from.read_exact(&mut length)?;
    let length = usize::try_from(i32::from_be_bytes(length))
        .ok()
        .filter(|length| *length <= MAX_FRAME)
        .ok_or(io::ErrorKind::InvalidData)?;
    let mut frame = Vec::new();
    let read = from
        .take(u64::try_from(length).unwrap_or(u64::MAX))
        .read_to_end(&mut frame)?;
    if read < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(frame)
}

/// A frame in one piece.
pub(super) fn write(to: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = i32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut whole = Vec::with_capacity(frame.len().saturating_add(4));
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(frame);
    to.write_all(&whole)?;
    to.flush()
}
