//! Strings of words, read.

use super::hex;
use super::split::MAX_WORD_BYTES;
use super::tokens::TOKENS;
use super::words::{HEX, MAX_NUMBERED, OF_CHUNK, RAW, TOKEN, WORDS};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::num::{to_u64, to_usize};

/// So many words there is room for at once; most chunks have no more.
const FEW_WORDS: usize = 256;

/// How many bytes the strings that follow have together.
pub(super) fn read_size(
    cursor: &mut Cursor<'_>,
    reading: &'static str,
) -> Result<usize, DecodeError> {
    cursor.count(to_usize(u32::MAX.into()), reading)
}

/// Reads so many strings, which have so many bytes together; their memory was charged.
///
/// Returns their text and where each ends in it.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    bytes: usize,
    reading: &'static str,
) -> Result<(Vec<u8>, Vec<u32>), DecodeError> {
    let mut text = Text::new(bytes);
    let mut ends: Vec<u32> = Vec::with_capacity(count);
    let mut words: Vec<(u32, u32)> = Vec::with_capacity(bytes.min(FEW_WORDS));
    // In registers, as long as it lasts.
    let mut input = cursor.clone();
    for _ in 0..count {
        let at = input.clone();
        let full = |Full| at.over_limit(reading, to_u64(bytes) + 1, bytes);
        match input.varint(reading)? {
            HEX => {
                let packed = input.section(reading)?.take_rest();
                text.hex(packed).map_err(full)?;
            }
            RAW => {
                let raw = input.section(reading)?.take_rest();
                text.add(raw).map_err(full)?;
            }
            head => {
                if let Some(shared) = head.checked_sub(WORDS).filter(|shared| *shared > 0) {
                    let distance = input.varint(reading)?;
                    let (from, to) = earlier(&ends, distance)
                        .filter(|(from, to)| to_u64(to - from) >= shared)
                        .ok_or_else(|| {
                            at.error(reading, DecodeErrorKind::Invalid { found: distance })
                        })?;
                    let shared = to_usize(shared).min(to - from);
                    text.repeat(from, shared).map_err(full)?;
                }
                for _ in 0..input.count(bytes, reading)? {
                    // Most words are those of this chunk, by a number of one byte.
                    let known = input.peek().and_then(|[code]| known_word(&words, *code));
                    if known.is_some_and(|word| text.add_known(word)) {
                        input.take(1, reading)?;
                    } else {
                        read_word(&mut input, &mut text, &mut words, reading)?;
                    }
                }
            }
        }
        ends.push(short(text.len));
    }
    *cursor = input;
    if text.len != bytes {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(bytes),
            found: to_u64(text.len),
        };
        return Err(cursor.error(reading, kind));
    }
    text.bytes.truncate(bytes);
    Ok((text.bytes, ends))
}

/// Where the word with a number of one byte begins in the text, and its length.
#[inline]
fn known_word(words: &[(u32, u32)], code: u8) -> Option<(u32, u32)> {
    let number = u64::from(code).checked_sub(OF_CHUNK)?;
    // Another byte follows a number that is larger.
    let whole = code < 0x80;
    words.get(to_usize(number)).copied().filter(|_| whole)
}

#[inline(never)]
fn read_word(
    cursor: &mut Cursor<'_>,
    text: &mut Text,
    words: &mut Vec<(u32, u32)>,
    reading: &'static str,
) -> Result<(), DecodeError> {
    let at = cursor.clone();
    let most = text.most;
    let full = |Full| at.over_limit(reading, to_u64(most) + 1, most);
    let invalid = |found| at.error(reading, DecodeErrorKind::Invalid { found });
    let code = cursor.varint(reading)?;
    if let Some(number) = code.checked_sub(OF_CHUNK) {
        let (from, bytes) = words.get(to_usize(number)).ok_or_else(|| invalid(code))?;
        let (from, bytes) = (to_usize((*from).into()), to_usize((*bytes).into()));
        return text.repeat(from, bytes).map_err(full);
    }
    let from = text.len;
    if code == TOKEN {
        let number = cursor.u8(reading)?;
        let token = TOKENS.get(usize::from(number));
        let token = token.ok_or_else(|| invalid(number.into()))?;
        text.add(token.as_bytes()).map_err(full)?;
    } else {
        let window = cursor.peek();
        let spelled = cursor.take(to_usize(code) + 1, reading)?;
        text.add_short(spelled, window).map_err(full)?;
    }
    if words.len() == MAX_NUMBERED {
        return Err(at.over_limit(reading, to_u64(MAX_NUMBERED) + 1, MAX_NUMBERED));
    }
    words.push((short(from), short(text.len - from)));
    Ok(())
}

/// Text that grows up to a size that was declared.
struct Text {
    /// Longer than the text will be, so that a word is copied with what is behind it: that is
    /// overwritten or cut off.
    bytes: Vec<u8>,
    len: usize,
    most: usize,
}

/// The text would be longer than was declared.
struct Full;

impl Text {
    fn new(most: usize) -> Self {
        Self {
            bytes: vec![0; most + MAX_WORD_BYTES],
            len: 0,
            most,
        }
    }

    /// Makes room for so many bytes more, and says where.
    fn room(&mut self, bytes: usize) -> Result<usize, Full> {
        let at = self.len;
        if bytes > self.most - at {
            return Err(Full);
        }
        self.len = at + bytes;
        Ok(at)
    }

    /// The bytes of a word that begins there.
    #[inline]
    fn word(&mut self, at: usize) -> Option<&mut [u8; MAX_WORD_BYTES]> {
        self.bytes.get_mut(at..)?.first_chunk_mut()
    }

    fn add(&mut self, more: &[u8]) -> Result<(), Full> {
        let at = self.room(more.len())?;
        let to = self.bytes.get_mut(at..self.len).ok_or(Full)?;
        to.copy_from_slice(more);
        Ok(())
    }

    /// As [`Self::add`], of no more than a word; `window` is it and what is behind it, if there is
    /// enough.
    fn add_short(
        &mut self,
        more: &[u8],
        window: Option<&[u8; MAX_WORD_BYTES]>,
    ) -> Result<(), Full> {
        let Some(window) = window else {
            return self.add(more);
        };
        let at = self.room(more.len())?;
        *self.word(at).ok_or(Full)? = *window;
        Ok(())
    }

    /// Adds a word that is there already; `false` if there is no room for it.
    #[inline]
    fn add_known(&mut self, (from, bytes): (u32, u32)) -> bool {
        let (from, bytes) = (to_usize(from.into()), to_usize(bytes.into()));
        let at = self.len;
        let Some(word) = self.word(from).copied() else {
            return false;
        };
        if bytes > self.most - at {
            return false;
        }
        let Some(to) = self.word(at) else {
            return false;
        };
        *to = word;
        self.len = at + bytes;
        true
    }

    /// Adds what is there already.
    fn repeat(&mut self, mut from: usize, bytes: usize) -> Result<(), Full> {
        let mut at = self.room(bytes)?;
        while at < self.len {
            let word = *self.word(from).ok_or(Full)?;
            *self.word(at).ok_or(Full)? = word;
            at += MAX_WORD_BYTES;
            from += MAX_WORD_BYTES;
        }
        Ok(())
    }

    fn hex(&mut self, packed: &[u8]) -> Result<(), Full> {
        let at = self.room(packed.len().saturating_mul(2))?;
        let to = self.bytes.get_mut(at..self.len).ok_or(Full)?;
        hex::unpack(packed, to);
        Ok(())
    }
}

/// Where the string so many before the next one begins and ends.
fn earlier(ends: &[u32], distance: u64) -> Option<(usize, usize)> {
    let number = ends.len().checked_sub(to_usize(distance))?;
    let to = *ends.get(number)?;
    let from = match number.checked_sub(1) {
        Some(before) => *ends.get(before)?,
        None => 0,
    };
    Some((to_usize(from.into()), to_usize(to.into())))
}

/// Texts have no more bytes than that.
fn short(size: usize) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}
