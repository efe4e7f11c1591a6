//! Reads strings of words.

use super::tokens::{TOKENS, unpack_hex};
use super::words::{HEX, MAX_NUMBERED, OF_CHUNK, RAW, TOKEN, WORDS, short};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::number::{to_u64, to_usize};

/// Reads the total bytes of the following strings.
pub(super) fn read_size(
    cursor: &mut Cursor<'_>,
    reading: &'static str,
) -> Result<usize, DecodeError> {
    // One less than the value that stands for no word.
    cursor.count(to_usize(u32::MAX - 1), reading)
}

/// Reads `count` strings of `bytes` bytes together. The caller has charged their memory.
///
/// Returns their text and the end of each string in it.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    bytes: usize,
    reading: &'static str,
) -> Result<(Vec<u8>, Vec<u32>), DecodeError> {
    let mut reader = StringReader {
        text: Vec::with_capacity(bytes),
        most: bytes,
        words: Vec::new(),
        reading,
    };
    let mut ends = Vec::with_capacity(count);
    for _ in 0..count {
        reader.string(cursor, &ends)?;
        ends.push(short(reader.text.len()));
    }
    let text = reader.text;
    if text.len() != bytes {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(bytes),
            found: to_u64(text.len()),
        };
        return Err(cursor.error(reading, kind));
    }
    Ok((text, ends))
}

/// The strings and words that were read so far.
struct StringReader {
    text: Vec<u8>,
    /// The limit of the text's bytes.
    most: usize,
    /// The position in the text and the length of each word that was new in this chunk.
    words: Vec<(u32, u32)>,
    reading: &'static str,
}

impl StringReader {
    /// Reads the next string; `ends` are the ends of the strings before it.
    fn string(&mut self, cursor: &mut Cursor<'_>, ends: &[u32]) -> Result<(), DecodeError> {
        let at = cursor.clone();
        let head = cursor.varint(self.reading)?;
        if head == HEX {
            let packed = cursor.section(self.reading)?.take_rest();
            let digits = 2 * packed.len();
            self.check_room(&at, digits)?;
            let from = self.text.len();
            self.text.resize(from + digits, 0);
            if let Some(text) = self.text.get_mut(from..) {
                unpack_hex(packed, text);
            }
            return Ok(());
        }
        if head == RAW {
            let raw = cursor.section(self.reading)?.take_rest();
            return self.add(&at, raw);
        }
        // The heads below are `HEX` and `RAW`.
        let shared = head - WORDS;
        if shared > 0 {
            let distance = cursor.varint(self.reading)?;
            let (from, _) = earlier(ends, distance)
                .filter(|(from, to)| to_u64(to - from) >= shared)
                .ok_or_else(|| {
                    at.error(self.reading, DecodeErrorKind::Invalid { found: distance })
                })?;
            self.repeat(&at, from, to_usize(shared))?;
        }
        for _ in 0..cursor.count(self.most, self.reading)? {
            self.word(cursor)?;
        }
        Ok(())
    }

    /// Reads the next word of a string.
    fn word(&mut self, cursor: &mut Cursor<'_>) -> Result<(), DecodeError> {
        let at = cursor.clone();
        let invalid = |found| at.error(self.reading, DecodeErrorKind::Invalid { found });
        let code = cursor.varint(self.reading)?;
        if let Some(number) = code.checked_sub(OF_CHUNK) {
            let word = self.words.get(to_usize(number));
            let (from, bytes) = *word.ok_or_else(|| invalid(code))?;
            return self.repeat(&at, to_usize(from), to_usize(bytes));
        }
        let word = if code == TOKEN {
            let number = cursor.u8(self.reading)?;
            let token = TOKENS.get(usize::from(number));
            token.ok_or_else(|| invalid(number.into()))?.as_bytes()
        } else {
            cursor.take(to_usize(code) + 1, self.reading)?
        };
        let from = self.text.len();
        self.add(&at, word)?;
        if self.words.len() == MAX_NUMBERED {
            return Err(at.over_limit(self.reading, to_u64(MAX_NUMBERED) + 1, MAX_NUMBERED));
        }
        self.words.push((short(from), short(word.len())));
        Ok(())
    }

    fn add(&mut self, at: &Cursor<'_>, more: &[u8]) -> Result<(), DecodeError> {
        self.check_room(at, more.len())?;
        self.text.extend_from_slice(more);
        Ok(())
    }

    /// Repeats bytes that are already in the text.
    fn repeat(&mut self, at: &Cursor<'_>, from: usize, bytes: usize) -> Result<(), DecodeError> {
        self.check_room(at, bytes)?;
        self.text.extend_from_within(from..from + bytes);
        Ok(())
    }

    fn check_room(&self, at: &Cursor<'_>, bytes: usize) -> Result<(), DecodeError> {
        if bytes > self.most - self.text.len() {
            return Err(at.over_limit(self.reading, to_u64(self.most) + 1, self.most));
        }
        Ok(())
    }
}

/// Returns the start and the end of the string `distance` before the next one.
fn earlier(ends: &[u32], distance: u64) -> Option<(usize, usize)> {
    let number = ends.len().checked_sub(to_usize(distance))?;
    let to = *ends.get(number)?;
    let from = match number.checked_sub(1) {
        Some(before) => *ends.get(before)?,
        None => 0,
    };
    Some((to_usize(from), to_usize(to)))
}

#[cfg(test)]
mod tests;
