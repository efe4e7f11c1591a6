//! The only module that cuts untrusted bytes and turns their numbers into sizes.

use super::error::{DecodeError, DecodeErrorKind};
use super::varint::{self, Broken};
use crate::number::{to_u64, to_usize};

/// Walks over a chunk, or over its decompressed body, and knows its position.
///
/// A failed read leaves the cursor where it was, so that the error points at the bad item.
#[derive(Debug, Clone)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    offset: usize,
    in_body: bool,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor at the start of a chunk.
    pub fn new(chunk: &'a [u8]) -> Self {
        Self {
            rest: chunk,
            offset: 0,
            in_body: false,
        }
    }

    /// Creates a cursor over a part of a stream that begins at this offset.
    pub fn at(part: &'a [u8], offset: usize) -> Self {
        Self {
            offset,
            ..Self::new(part)
        }
    }

    /// Creates a cursor at the start of a decompressed body.
    pub fn in_body(body: &'a [u8]) -> Self {
        Self {
            rest: body,
            offset: 0,
            in_body: true,
        }
    }

    /// Returns the position in the chunk or the body, in bytes.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns how many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Whether no byte is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns an error for this position.
    pub fn error(&self, reading: &'static str, kind: DecodeErrorKind) -> DecodeError {
        DecodeError {
            offset: self.offset,
            in_body: self.in_body,
            reading,
            kind,
        }
    }

    /// Returns the error that `found` is above `limit`.
    pub fn over_limit(&self, reading: &'static str, found: u64, limit: usize) -> DecodeError {
        let limit = to_u64(limit);
        self.error(reading, DecodeErrorKind::Limit { limit, found })
    }

    /// Takes the next `bytes` bytes.
    #[inline]
    pub fn take(&mut self, bytes: usize, reading: &'static str) -> Result<&'a [u8], DecodeError> {
        let Some((head, rest)) = self.rest.split_at_checked(bytes) else {
            return Err(self.error(
                reading,
                DecodeErrorKind::Ends {
                    needed: bytes,
                    left: self.rest.len(),
                },
            ));
        };
        self.rest = rest;
        self.offset += bytes;
        Ok(head)
    }

    /// Returns a cursor over the next `bytes` bytes; this one continues after them.
    pub fn split(&mut self, bytes: usize, reading: &'static str) -> Result<Self, DecodeError> {
        let offset = self.offset;
        Ok(Self {
            rest: self.take(bytes, reading)?,
            offset,
            in_body: self.in_body,
        })
    }

    /// Returns a cursor `bytes` bytes further on, or at the end if there are fewer.
    pub fn after(&self, bytes: usize) -> Self {
        let (passed, rest) = self.rest.split_at(bytes.min(self.rest.len()));
        Self {
            rest,
            offset: self.offset + passed.len(),
            in_body: self.in_body,
        }
    }

    /// Takes all remaining bytes.
    pub fn take_rest(&mut self) -> &'a [u8] {
        self.offset += self.rest.len();
        std::mem::take(&mut self.rest)
    }

    /// The next `N` bytes.
    pub fn array<const N: usize>(&mut self, reading: &'static str) -> Result<[u8; N], DecodeError> {
        match self.take(N, reading)?.first_chunk() {
            Some(array) => Ok(*array),
            None => Err(self.error(reading, DecodeErrorKind::Ends { needed: N, left: 0 })),
        }
    }

    /// One byte.
    pub fn u8(&mut self, reading: &'static str) -> Result<u8, DecodeError> {
        Ok(u8::from_le_bytes(self.array(reading)?))
    }

    /// Two bytes, little-endian.
    pub fn u16(&mut self, reading: &'static str) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array(reading)?))
    }

    /// Four bytes, little-endian.
    pub fn u32(&mut self, reading: &'static str) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array(reading)?))
    }

    /// Eight bytes, little-endian.
    pub fn u64(&mut self, reading: &'static str) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array(reading)?))
    }

    /// A variable-length number.
    #[inline]
    pub fn varint(&mut self, reading: &'static str) -> Result<u64, DecodeError> {
        // Most numbers have one byte.
        if let Some((byte, rest)) = self.rest.split_first() {
            if *byte < 0x80 {
                self.rest = rest;
                self.offset += 1;
                return Ok((*byte).into());
            }
        }
        self.long_varint(reading)
    }

    fn long_varint(&mut self, reading: &'static str) -> Result<u64, DecodeError> {
        match varint::read(self.rest) {
            Ok((number, bytes)) => {
                self.take(bytes, reading)?;
                Ok(number)
            }
            Err(Broken::Malformed) => Err(self.error(reading, DecodeErrorKind::Varint)),
            Err(Broken::Truncated) => Err(self.error(
                reading,
                DecodeErrorKind::Ends {
                    needed: self.left() + 1,
                    left: self.left(),
                },
            )),
        }
    }

    /// A variable-length signed number.
    pub fn signed(&mut self, reading: &'static str) -> Result<i64, DecodeError> {
        self.varint(reading).map(varint::unzigzag)
    }

    /// A variable-length count, refused above `limit`.
    pub fn count(&mut self, limit: usize, reading: &'static str) -> Result<usize, DecodeError> {
        let before = self.clone();
        let count = self.varint(reading)?;
        if count > to_u64(limit) {
            return Err(before.over_limit(reading, count, limit));
        }
        Ok(to_usize(count))
    }

    /// A variable-length length, and a cursor over that many bytes.
    pub fn section(&mut self, reading: &'static str) -> Result<Self, DecodeError> {
        let before = self.clone();
        let bytes = to_usize(self.varint(reading)?);
        self.split(bytes, reading).inspect_err(|_| *self = before)
    }

    /// A variable-length length, and that many bytes of UTF-8.
    pub fn text(&mut self, reading: &'static str) -> Result<&'a str, DecodeError> {
        let mut section = self.section(reading)?;
        let at = section.clone();
        std::str::from_utf8(section.take_rest())
            .map_err(|_| at.error(reading, DecodeErrorKind::Utf8))
    }

    /// Checks that nothing is left.
    pub fn finish(&self, reading: &'static str) -> Result<(), DecodeError> {
        if self.is_empty() {
            return Ok(());
        }
        let bytes = self.left();
        Err(self.error(reading, DecodeErrorKind::Trailing { bytes }))
    }
}

#[cfg(test)]
mod tests;
