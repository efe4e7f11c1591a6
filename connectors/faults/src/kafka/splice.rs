//! Frames of Kafka's protocol (a length and a body), read field by field.

use std::io::{self, Read, Write};

use super::protocol::Other;

/// Reads a message and copies it, except for the replaced parts.
#[derive(Clone)]
pub(super) struct Splice<'a> {
    left: &'a [u8],
    out: Vec<u8>,
}

impl<'a> Splice<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self {
            left: bytes,
            out: Vec::with_capacity(bytes.len()),
        }
    }

    pub(super) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(bytes)?;
        self.left = left;
        Some(taken)
    }

    fn copy(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let taken = self.take(bytes)?;
        self.out.extend_from_slice(taken);
        Some(taken)
    }

    pub(super) fn i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.copy(2)?.try_into().ok()?))
    }

    pub(super) fn i32(&mut self) -> Option<i32> {
        Some(i32::from_be_bytes(self.copy(4)?.try_into().ok()?))
    }

    fn take_i16(&mut self) -> Option<i16> {
        Some(i16::from_be_bytes(self.take(2)?.try_into().ok()?))
    }

    pub(super) fn i16_at_most(&mut self, most: i16) -> Option<()> {
        let found = self.take_i16()?;
        self.put(&found.min(most).to_be_bytes());
        Some(())
    }

    fn take_varint(&mut self) -> Option<usize> {
        let mut value = 0_usize;
        for shift in (0..35).step_by(7) {
            let byte = *self.take(1)?.first()?;
            value |= usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn put_varint(&mut self, mut value: usize) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.out.push(low & 0x7f);
            }
            self.out.push(low | 0x80);
        }
    }

    fn varint(&mut self) -> Option<usize> {
        let value = self.take_varint()?;
        self.put_varint(value);
        Some(value)
    }

    /// Reads the number of elements of an array; 0 if the array is null.
    pub(super) fn take_count(&mut self, flexible: bool) -> Option<usize> {
        if flexible {
            return Some(self.take_varint()?.saturating_sub(1));
        }
        let count = i32::from_be_bytes(self.take(4)?.try_into().ok()?);
        Some(usize::try_from(count).unwrap_or(0))
    }

    pub(super) fn put_count(&mut self, flexible: bool, count: usize) -> Option<()> {
        if flexible {
            self.put_varint(count.checked_add(1)?);
        } else {
            self.put(&i32::try_from(count).ok()?.to_be_bytes());
        }
        Some(())
    }

    pub(super) fn count(&mut self, flexible: bool) -> Option<usize> {
        let count = self.take_count(flexible)?;
        self.put_count(flexible, count)?;
        Some(count)
    }

    pub(super) fn put(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
    }

    pub(super) fn take_string(&mut self, flexible: bool) -> Option<Option<&'a [u8]>> {
        let bytes = if flexible {
            self.take_varint()?.checked_sub(1)
        } else {
            usize::try_from(self.take_i16()?).ok()
        };
        match bytes {
            None => Some(None),
            Some(bytes) => self.take(bytes).map(Some),
        }
    }

    fn put_string(&mut self, flexible: bool, text: Option<&[u8]>) -> Option<()> {
        if flexible {
            self.put_varint(text.map_or(0, |text| text.len() + 1));
        } else {
            let bytes = text.map_or(Ok(-1), |text| i16::try_from(text.len())).ok()?;
            self.out.extend_from_slice(&bytes.to_be_bytes());
        }
        self.out.extend_from_slice(text.unwrap_or_default());
        Some(())
    }

    pub(super) fn string(&mut self, flexible: bool) -> Option<()> {
        let text = self.take_string(flexible)?;
        self.put_string(flexible, text)
    }

    /// Copies a host and a port, or replaces them.
    pub(super) fn broker(&mut self, flexible: bool, other: Other<'_>) -> Option<()> {
        let host = self.take_string(flexible)?;
        let port = i32::from_be_bytes(self.take(4)?.try_into().ok()?);
        let name = host.and_then(|host| std::str::from_utf8(host).ok());
        // An answer without a broker has an empty name.
        let name = name.filter(|name| !name.is_empty() && port > 0);
        match name.and_then(|name| other(name, port)) {
            Some((host, port)) => {
                self.put_string(flexible, Some(host.as_bytes()))?;
                self.out.extend_from_slice(&i32::from(port).to_be_bytes());
            }
            None => {
                self.put_string(flexible, host)?;
                self.out.extend_from_slice(&port.to_be_bytes());
            }
        }
        Some(())
    }

    pub(super) fn tags(&mut self, flexible: bool) -> Option<()> {
        if flexible {
            for _ in 0..self.varint()? {
                self.varint()?;
                let bytes = self.varint()?;
                self.copy(bytes)?;
            }
        }
        Some(())
    }

    pub(super) fn rest(mut self) -> Vec<u8> {
        self.out.extend_from_slice(self.left);
        self.out
    }
}

/// The largest frame; clients accept responses of up to 100 MB.
const MAX_FRAME: usize = 128 << 20;

/// Reads a frame. Returns it without its length.
pub(super) fn read_frame(from: &mut impl Read) -> io::Result<Vec<u8>> {
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

/// Writes a frame in one piece.
pub(super) fn write_frame(to: &mut impl Write, frame: &[u8]) -> io::Result<()> {
    let length = i32::try_from(frame.len()).map_err(|_| io::ErrorKind::InvalidData)?;
    let mut whole = Vec::with_capacity(frame.len().saturating_add(4));
    whole.extend_from_slice(&length.to_be_bytes());
    whole.extend_from_slice(frame);
    to.write_all(&whole)?;
    to.flush()
}
