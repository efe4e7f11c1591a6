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

/// So many words of a chunk have a number of one byte.
const SHORT_NUMBERS: usize = 128;

/// What is said again is copied by so many bytes: most beginnings in one go.
const BLOCK: usize = 64;

/// Instead of the length of a word that there is not: no text has as many bytes.
const NO_WORD: u32 = u32::MAX;

/// The words of a chunk by number: where each begins in the text, and its length.
struct Words {
    /// Those whose number, as it is written, has one byte; most are.
    short: [(u32, u32); SHORT_NUMBERS],
    /// Their bytes, and any behind them: a word that was just written, together with others, cannot
    /// be read back from the text in one go without waiting for all of them.
    spelled: Vec<[u8; MAX_WORD_BYTES]>,
    long: Vec<(u32, u32)>,
    count: usize,
}

impl Words {
    /// None; the memory has room for the short ones.
    fn new(spelled: Vec<[u8; MAX_WORD_BYTES]>) -> Self {
        Self {
            short: [(0, NO_WORD); SHORT_NUMBERS],
            spelled,
            long: Vec::new(),
            count: 0,
        }
    }

    fn get(&self, number: u64) -> Option<(u32, u32)> {
        let code = to_usize(number.saturating_add(OF_CHUNK));
        let word = match code.checked_sub(SHORT_NUMBERS) {
            None => self.short.get(code),
            Some(beyond) => self.long.get(beyond),
        };
        word.copied().filter(|(_, bytes)| *bytes != NO_WORD)
    }

    #[inline]
    fn push(&mut self, from: usize, bytes: usize, spelled: &[u8; MAX_WORD_BYTES]) {
        let word = (short(from), short(bytes));
        let code = to_usize(OF_CHUNK) + self.count;
        match self.short.get_mut(code).zip(self.spelled.get_mut(code)) {
            Some((place, spelling)) => (*place, *spelling) = (word, *spelled),
            None => self.long.push(word),
        }
        self.count += 1;
    }

    /// Takes words as long as they are as most are: those of this chunk by a number of one byte, and
    /// new ones which get such a number; up to so many. Returns how many it took.
    ///
    /// Words are copied with what is behind them: that is overwritten or cut off.
    #[inline(always)]
    fn take(&mut self, input: &mut Cursor<'_>, most: usize, text: &mut Text) -> usize {
        let start = input.rest();
        let mut rest = start;
        let to = text.bytes.as_mut_slice();
        let (mut at, mut taken) = (text.len, 0);
        while taken < most
            && let Some((code, behind)) = rest.split_first()
        {
            let room = text.most - at;
            let known = self.short.get(usize::from(*code));
            let (_, bytes) = known.copied().unwrap_or((0, NO_WORD));
            let bytes = to_usize(bytes.into());
            if bytes <= room {
                let word = self.spelled.get(usize::from(*code));
                let Some((word, place)) = word.zip(word_at(to, at)) else {
                    break;
                };
                *place = *word;
                rest = behind;
                at += bytes;
            } else {
                let full = to_usize(OF_CHUNK) + self.count >= SHORT_NUMBERS;
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
                if full || bytes > room {
                    break;
                }
                let Some(place) = word_at(to, at) else { break };
                *place = *word;
                self.push(at, bytes, word);
                rest = behind;
                at += bytes;
            }
            taken += 1;
        }
        text.len = at;
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
    if let Some(number) = code.checked_sub(OF_CHUNK) {
        let (from, bytes) = words.get(number).ok_or_else(|| invalid(code))?;
        let (from, bytes) = (to_usize(from.into()), to_usize(bytes.into()));
        return text.repeat(from, bytes).map_err(full);
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
