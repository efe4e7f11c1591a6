//! Strings of words, read.

use super::hex;
use super::split::MAX_WORD_BYTES;
use super::tokens::TOKENS;
use super::words::{HEX, MAX_NUMBERED, OF_CHUNK, RAW, TOKEN, WORDS};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::columnar::ints::Spare;
use crate::container::num::{to_u64, to_usize};

/// How many bytes the strings that follow have together.
pub(super) fn read_size(
    cursor: &mut Cursor<'_>,
    reading: &'static str,
) -> Result<usize, DecodeError> {
    // One less than what says that there is no word.
    cursor.count(to_usize((u32::MAX - 1).into()), reading)
}

/// Reads so many strings, which have so many bytes together; their memory was charged.
///
/// Returns their text and where each ends in it.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    bytes: usize,
    spare: &mut Spare,
    reading: &'static str,
) -> Result<(Vec<u8>, Vec<u32>), DecodeError> {
    let mut text = Text {
        bytes: spare.text(bytes + BLOCK),
        len: 0,
        most: bytes,
    };
    let mut ends = spare.narrow(count);
    ends.clear();
    let mut words = Words::new(spare.words(SHORT_NUMBERS));
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
                let mut left = input.count(bytes, reading)?;
                while left > 0 {
                    left -= words.take(&mut input, left, &mut text);
                    if left > 0 {
                        // One that is not as most are, or the end of the text.
                        read_word(&mut input, &mut text, &mut words, reading)?;
                        left -= 1;
                    }
                }
            }
        }
        ends.push(short(text.len));
    }
    *cursor = input;
    spare.add_words(words.spelled);
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

/// Words with smaller numbers, as these are written, are copied in one go; most chunks have fewer.
const SHORT_NUMBERS: usize = 512;

/// The first number that is written in two bytes, of which the first one has this much of it.
const TWO_BYTES: usize = 128;

/// What is said again is copied by so many bytes: most beginnings in one go.
const BLOCK: usize = 64;

/// Instead of the length of a word that there is not: no word has as many bytes.
const NO_WORD: u8 = u8::MAX;

/// The words of a chunk by number, as it is written.
struct Words {
    /// How long those are that have a small number.
    short: [u8; SHORT_NUMBERS],
    /// Their bytes, and any behind them: a word that was just written, together with others, cannot
    /// be read back from the text in one go without waiting for all of them.
    spelled: Vec<[u8; MAX_WORD_BYTES]>,
    /// Where each of the others begins in the text, and its length.
    long: Vec<(u32, u32)>,
    count: usize,
}

impl Words {
    /// None; the memory has room for the short ones.
    fn new(spelled: Vec<[u8; MAX_WORD_BYTES]>) -> Self {
        Self {
            short: [NO_WORD; SHORT_NUMBERS],
            spelled,
            long: Vec::new(),
            count: 0,
        }
    }

    /// Adds the word with this number to the text; `None` if there is none.
    fn repeat(&self, code: u64, text: &mut Text) -> Option<Result<(), Full>> {
        let code = to_usize(code);
        if let Some(beyond) = code.checked_sub(SHORT_NUMBERS) {
            let (from, bytes) = *self.long.get(beyond)?;
            return Some(text.repeat(to_usize(from.into()), to_usize(bytes.into())));
        }
        let bytes = *self.short.get(code)?;
        let word = self.spelled.get(code)?.get(..bytes.into())?;
        Some(text.add(word))
    }

    #[inline]
    fn push(&mut self, from: usize, bytes: usize, spelled: &[u8; MAX_WORD_BYTES]) {
        let code = to_usize(OF_CHUNK) + self.count;
        match self.short.get_mut(code).zip(self.spelled.get_mut(code)) {
            Some((length, spelling)) => {
                *length = u8::try_from(bytes).unwrap_or(NO_WORD);
                *spelling = *spelled;
            }
            None => self.long.push((short(from), short(bytes))),
        }
        self.count += 1;
    }

    /// Takes words as long as they are as most are: those of this chunk by a small number, and new
    /// ones which get such a number; up to so many. Returns how many it took.
    ///
    /// Words are copied with what is behind them: that is overwritten or cut off.
    #[inline(always)]
    fn take(&mut self, input: &mut Cursor<'_>, most: usize, text: &mut Text) -> usize {
        let start = input.rest();
        let mut rest = start;
        let to = text.bytes.as_mut_slice();
        let (mut at, mut taken) = (text.len, 0);
        // What the next new word is numbered.
        let mut next = to_usize(OF_CHUNK) + self.count;
        while taken < most
            && let Some((code, behind)) = rest.split_first()
        {
            let room = text.most - at;
            let (mut number, mut behind) = (usize::from(*code), behind);
            if number >= TWO_BYTES {
                let Some((high, rest)) = behind.split_first() else {
                    break;
                };
                // Zeros need not be written, and are refused.
                if !(1..SHORT_NUMBERS / TWO_BYTES).contains(&usize::from(*high)) {
                    break;
                }
                number = number % TWO_BYTES + usize::from(*high) * TWO_BYTES;
                behind = rest;
            }
            let bytes = self.short.get(number).copied().unwrap_or(NO_WORD);
            let bytes = usize::from(bytes);
            if bytes <= room.min(MAX_WORD_BYTES) {
                let word = self.spelled.get(number);
                let Some((word, place)) = word.zip(word_at(to, at)) else {
                    break;
                };
                *place = *word;
                rest = behind;
                at += bytes;
            } else {
                let (bytes, word, behind) = if u64::from(*code) < TOKEN {
                    // It may not be all behind it that is the word.
                    let bytes = usize::from(*code) + 1;
                    let behind = behind.first_chunk().zip(behind.get(bytes..));
                    let Some((word, behind)) = behind else { break };
                    (bytes, word, behind)
                } else {
                    let is_token = u64::from(*code) == TOKEN;
                    let Some((number, behind)) = behind.split_first().filter(|_| is_token) else {
                        break;
                    };
                    let Some((word, bytes)) = PADDED.get(usize::from(*number)) else {
                        break;
                    };
                    (usize::from(*bytes), word, behind)
                };
                let numbered = self.short.get_mut(next).zip(self.spelled.get_mut(next));
                let Some((length, spelling)) = numbered.filter(|_| bytes <= room) else {
                    break;
                };
                let Some(place) = word_at(to, at) else { break };
                *place = *word;
                *spelling = *word;
                *length = u8::try_from(bytes).unwrap_or(NO_WORD);
                next += 1;
                rest = behind;
                at += bytes;
            }
            taken += 1;
        }
        text.len = at;
        self.count = next - to_usize(OF_CHUNK);
        input.skip(start.len() - rest.len());
        taken
    }
}

/// The bytes of a word that begins there.
#[inline(always)]
fn word_at(text: &mut [u8], at: usize) -> Option<&mut [u8; MAX_WORD_BYTES]> {
    block_at(text, at)
}

/// So many bytes from there on.
#[inline(always)]
fn block_at<const BYTES: usize>(text: &mut [u8], at: usize) -> Option<&mut [u8; BYTES]> {
    text.get_mut(at..)?.first_chunk_mut()
}

/// The well-known words, each with zeros behind it and its length.
static PADDED: [([u8; MAX_WORD_BYTES], u8); TOKENS.len()] = padded();

const fn padded() -> [([u8; MAX_WORD_BYTES], u8); TOKENS.len()] {
    let mut padded = [([0; MAX_WORD_BYTES], 0); TOKENS.len()];
    let mut places = padded.as_mut_slice();
    let mut tokens = TOKENS.as_slice();
    while let (Some(((place, bytes), behind)), Some((token, others))) =
        (places.split_first_mut(), tokens.split_first())
    {
        let mut place = place.as_mut_slice();
        let mut token = token.as_bytes();
        while let (Some((to, left)), Some((byte, rest))) =
            (place.split_first_mut(), token.split_first())
        {
            *to = *byte;
            *bytes += 1;
            (place, token) = (left, rest);
        }
        assert!(token.is_empty(), "a word is longer than words may be");
        (places, tokens) = (behind, others);
    }
    padded
}

#[inline(never)]
fn read_word(
    cursor: &mut Cursor<'_>,
    text: &mut Text,
    words: &mut Words,
    reading: &'static str,
) -> Result<(), DecodeError> {
    let at = cursor.clone();
    let most = text.most;
    let full = |Full| at.over_limit(reading, to_u64(most) + 1, most);
    let invalid = |found| at.error(reading, DecodeErrorKind::Invalid { found });
    let code = cursor.varint(reading)?;
    if code >= OF_CHUNK {
        let repeated = words.repeat(code, text).ok_or_else(|| invalid(code))?;
        return repeated.map_err(full);
    }
    let from = text.len;
    if code == TOKEN {
        let number = cursor.u8(reading)?;
        let token = TOKENS.get(usize::from(number));
        let token = token.ok_or_else(|| invalid(number.into()))?;
        text.add(token.as_bytes()).map_err(full)?;
    } else {
        let spelled = cursor.take(to_usize(code) + 1, reading)?;
        text.add(spelled).map_err(full)?;
    }
    if words.count == MAX_NUMBERED {
        return Err(at.over_limit(reading, to_u64(MAX_NUMBERED) + 1, MAX_NUMBERED));
    }
    let word = word_at(&mut text.bytes, from).ok_or(Full).map_err(full)?;
    words.push(from, text.len - from, word);
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
    /// Makes room for so many bytes more, and says where.
    fn room(&mut self, bytes: usize) -> Result<usize, Full> {
        let at = self.len;
        if bytes > self.most - at {
            return Err(Full);
        }
        self.len = at + bytes;
        Ok(at)
    }

    fn add(&mut self, more: &[u8]) -> Result<(), Full> {
        let at = self.room(more.len())?;
        let to = self.bytes.get_mut(at..self.len).ok_or(Full)?;
        to.copy_from_slice(more);
        Ok(())
    }

    /// Adds what is there already.
    fn repeat(&mut self, mut from: usize, bytes: usize) -> Result<(), Full> {
        let mut at = self.room(bytes)?;
        while at < self.len {
            let block: [u8; BLOCK] = *block_at(&mut self.bytes, from).ok_or(Full)?;
            *block_at(&mut self.bytes, at).ok_or(Full)? = block;
            at += BLOCK;
            from += BLOCK;
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

#[cfg(test)]
mod tests;
