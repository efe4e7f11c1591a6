//! Strings as words: what begins like an earlier string is not said again, words that the chunk
//! has already are numbers, hexadecimal digits are packed; FORMAT.md, "Strings".

use super::hex;
use super::known::{Known, MAX_NEW, Seen};
use super::split::MAX_WORD_BYTES;
use super::tokens::TOKENS;
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;
use crate::record::StringTable;

/// Heads of strings: digits, bytes as they are, and from here on as many bytes less are those of
/// an earlier string.
const HEX: u64 = 0;
const RAW: u64 = 1;
const WORDS: u64 = 2;

/// Words: those below are spelled and have one byte more than their number says; then the one that
/// is among the well-known ones, and from here on those of this chunk.
const TOKEN: u64 = 32;
const OF_CHUNK: u64 = 33;

/// The most words that a chunk may number.
const MAX_NUMBERED: usize = 1 << 16;

/// So many strings are always cut, however few records share them.
const FEW: usize = 256;

/// Writes string tables; keeps what it knows of their strings.
#[derive(Debug, Default)]
pub(super) struct Writer {
    known: Known,
    /// Counts the chunks, so that nothing has to be wiped between them; 0 means never.
    chunk: u32,
}

impl Writer {
    /// Appends the strings of so many records; stops, and says `false`, as soon as they would take
    /// `limit` bytes.
    pub(super) fn write(
        &mut self,
        strings: &StringTable,
        records: usize,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> bool {
        let limit = out.len().saturating_add(limit);
        self.known.expect(strings.len());
        self.chunk = self.chunk.wrapping_add(1);
        if self.chunk == 0 {
            // After four billion chunks the numbers begin anew.
            self.known = Known::default();
            self.chunk = 1;
        }
        // Strings that nearly every record has its own of are not worth remembering.
        let cut = if strings.len() <= FEW.max(records / 4) {
            MAX_NEW
        } else {
            0
        };
        varint::write(out, to_u64(strings.text_bytes()));
        let keys = strings.keys();
        let text = strings.text().as_bytes();
        let (mut from, mut words) = (0, 0);
        for (number, end) in strings.ends().iter().enumerate() {
            let to = to_usize((*end).into());
            let string = text.get(from..to).unwrap_or_default();
            from = to;
            let key = keys.and_then(|keys| keys.get(number)).copied();
            let written = write_hex(string, out)
                || number < cut && self.write_words(number, string, key, &mut words, out);
            if !written {
                varint::write(out, RAW);
                varint::write(out, to_u64(string.len()));
                out.extend_from_slice(string);
            }
            if out.len() >= limit {
                return false;
            }
        }
        true
    }

    /// Appends a string as words, unless it is too long.
    fn write_words(
        &mut self,
        number: usize,
        string: &[u8],
        key: Option<u64>,
        words_of_chunk: &mut u32,
        out: &mut Vec<u8>,
    ) -> bool {
        let key = key.unwrap_or_else(|| self.known.key(string));
        let room = MAX_NUMBERED.saturating_sub(to_usize((*words_of_chunk).into()));
        let steps = self.known.steps(string, key);
        let Some(steps) = steps.filter(|(from, to)| to - from <= room) else {
            return false;
        };
        let chunk = self.chunk;
        let this = u32::try_from(number).unwrap_or(u32::MAX);
        let (steps, beginnings, words) = self.known.parts(steps);
        let mut shared = None;
        let mut new = steps;
        while let Some((step, rest)) = new.split_first() {
            match beginnings.get(to_usize(step.beginning.into())) {
                Some(seen) if seen.chunk == chunk => shared = Some((step.end, seen.number)),
                _ => break,
            }
            new = rest;
        }
        match shared {
            None => varint::write(out, WORDS),
            Some((bytes, earlier)) => {
                varint::write(out, WORDS + u64::from(bytes));
                varint::write(out, this.wrapping_sub(earlier).into());
            }
        }
        varint::write(out, to_u64(new.len()));
        for step in new {
            if let Some(seen) = beginnings.get_mut(to_usize(step.beginning.into())) {
                *seen = Seen {
                    chunk,
                    number: this,
                };
            }
            let Some(word) = words.get_mut(to_usize(step.word.into())) else {
                continue;
            };
            if word.seen.chunk == chunk {
                varint::write(out, OF_CHUNK + u64::from(word.seen.number));
                continue;
            }
            word.seen = Seen {
                chunk,
                number: *words_of_chunk,
            };
            *words_of_chunk = words_of_chunk.wrapping_add(1);
            match (word.token, word.bytes.get(..usize::from(word.len))) {
                (Some(token), _) => out.extend(u8::try_from(TOKEN).ok().into_iter().chain([token])),
                (None, text) => {
                    out.push(word.len.wrapping_sub(1));
                    out.extend_from_slice(text.unwrap_or_default());
                }
            }
        }
        true
    }
}

/// Appends a string of hexadecimal digits; `false` if it is none.
fn write_hex(string: &[u8], out: &mut Vec<u8>) -> bool {
    // Most strings are none by their first byte.
    let first = string.first();
    if !first.is_some_and(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(byte)) {
        return false;
    }
    let start = out.len();
    varint::write(out, HEX);
    varint::write(out, to_u64(string.len() / 2));
    let packed = hex::pack(string, out);
    if !packed {
        out.truncate(start);
    }
    packed
}

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
    let mut text = Text {
        // So that short words are copied in one go.
        bytes: vec![0; bytes + MAX_WORD_BYTES],
        len: 0,
        most: bytes,
    };
    let mut ends: Vec<u32> = Vec::with_capacity(count);
    let mut words: Vec<(u32, u32)> = Vec::new();
    for _ in 0..count {
        let at = cursor.clone();
        let full = |()| at.over_limit(reading, to_u64(bytes) + 1, bytes);
        match cursor.varint(reading)? {
            HEX => {
                let packed = cursor.section(reading)?.take_rest();
                text.hex(packed).map_err(full)?;
            }
            RAW => {
                let raw = cursor.section(reading)?.take_rest();
                text.add(raw).map_err(full)?;
            }
            head => {
                if let Some(shared) = head.checked_sub(WORDS).filter(|shared| *shared > 0) {
                    let distance = cursor.varint(reading)?;
                    let (from, to) = earlier(&ends, distance)
                        .filter(|(from, to)| to_u64(to - from) >= shared)
                        .ok_or_else(|| {
                            at.error(reading, DecodeErrorKind::Invalid { found: distance })
                        })?;
                    let shared = to_usize(shared).min(to - from);
                    text.repeat(from, shared).map_err(full)?;
                }
                for _ in 0..cursor.count(bytes, reading)? {
                    read_word(cursor, &mut text, &mut words, reading)?;
                }
            }
        }
        ends.push(short(text.len));
    }
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

#[inline]
fn read_word(
    cursor: &mut Cursor<'_>,
    text: &mut Text,
    words: &mut Vec<(u32, u32)>,
    reading: &'static str,
) -> Result<(), DecodeError> {
    let at = cursor.clone();
    let most = text.most;
    let full = |()| at.over_limit(reading, to_u64(most) + 1, most);
    let invalid = |found| at.error(reading, DecodeErrorKind::Invalid { found });
    let code = cursor.varint(reading)?;
    let from = text.len;
    match code {
        TOKEN => {
            let number = cursor.u8(reading)?;
            let token = TOKENS.get(usize::from(number));
            let token = token.ok_or_else(|| invalid(number.into()))?;
            text.add(token.as_bytes())
        }
        0..TOKEN => {
            let spelled = cursor.take(to_usize(code) + 1, reading)?;
            text.add(spelled)
        }
        _ => {
            let number = to_usize(code - OF_CHUNK);
            let (from, bytes) = words.get(number).ok_or_else(|| invalid(code))?;
            return text
                .repeat(to_usize((*from).into()), to_usize((*bytes).into()))
                .map_err(full);
        }
    }
    .map_err(full)?;
    if words.len() == MAX_NUMBERED {
        return Err(at.over_limit(reading, to_u64(MAX_NUMBERED) + 1, MAX_NUMBERED));
    }
    words.push((short(from), short(text.len - from)));
    Ok(())
}

/// Text that grows up to a size that was declared.
struct Text {
    bytes: Vec<u8>,
    len: usize,
    most: usize,
}

impl Text {
    fn room(&mut self, bytes: usize) -> Result<usize, ()> {
        let at = self.len;
        if bytes > self.most - at {
            return Err(());
        }
        self.len = at + bytes;
        Ok(at)
    }

    fn add(&mut self, more: &[u8]) -> Result<(), ()> {
        let at = self.room(more.len())?;
        let to = self.bytes.get_mut(at..at + more.len()).ok_or(())?;
        to.copy_from_slice(more);
        Ok(())
    }

    /// Adds what is there already.
    #[inline]
    fn repeat(&mut self, from: usize, bytes: usize) -> Result<(), ()> {
        let at = self.room(bytes)?;
        // What is copied too much is overwritten or cut off: there is room behind the end.
        if bytes <= 8 {
            self.bytes.copy_within(from..from + 8, at);
        } else if bytes <= 32 {
            self.bytes.copy_within(from..from + 32, at);
        } else {
            self.bytes.copy_within(from..from + bytes, at);
        }
        Ok(())
    }

    fn hex(&mut self, packed: &[u8]) -> Result<(), ()> {
        let at = self.room(packed.len().saturating_mul(2))?;
        let to = self.bytes.get_mut(at..self.len).ok_or(())?;
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
