//! Strings of words, read.

use super::numbered::{SHORT_NUMBERS, TWO_BYTES, Words};
use super::text::{BLOCK, Full, Text, short, word_at};
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
    let mut strings = Strings {
        text: Text {
            bytes: spare.text(bytes + BLOCK),
            len: 0,
            most: bytes,
        },
        ends: spare.narrow(count),
        done: 0,
        words: Words::new(spare.words(SHORT_NUMBERS)),
    };
    // How many words the string still has that was begun.
    let mut left = None;
    loop {
        left = strings.run(cursor, left);
        // What is next is not as most are, or wrong, or there is nothing.
        left = match left {
            Some(left) => {
                read_word(cursor, &mut strings.text, &mut strings.words, reading)?;
                Some(left - 1)
            }
            None if strings.done == count => break,
            None => strings.begin(cursor, reading)?,
        };
    }
    let Strings {
        mut text,
        ends,
        words,
        ..
    } = strings;
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

/// The strings that were read so far.
struct Strings {
    text: Text,
    /// Where each ends, of those that are done.
    ends: Vec<u32>,
    done: usize,
    words: Words,
}

impl Strings {
    /// Reads strings as long as they and their words are as most are; first so many words of a
    /// string that was begun. Returns how many there are still of such a one.
    ///
    /// Nothing here is left half done: whatever is not as most are stays where it is, for
    /// [`Self::begin`] and [`read_word`], which say what is wrong with it.
    #[inline(never)]
    fn run(&mut self, cursor: &mut Cursor<'_>, mut left: Option<usize>) -> Option<usize> {
        let input = cursor.rest();
        let mut at = 0;
        loop {
            let mut words = match left {
                Some(words) => words,
                None => match self.begin_soon(input, &mut at) {
                    Some(words) => words,
                    None => break,
                },
            };
            let start = self.text.len.min(self.text.bytes.len());
            let (_, mut to) = self.text.bytes.split_at_mut(start);
            let room = to.len();
            words -= self.words.take(input, &mut at, words, &mut to);
            self.text.len += room - to.len();
            if words > 0 {
                left = Some(words);
                break;
            }
            left = None;
            self.end();
        }
        cursor.skip(at);
        left
    }

    /// Ends a string.
    #[inline(always)]
    fn end(&mut self) {
        if let Some(end) = self.ends.get_mut(self.done) {
            *end = short(self.text.len);
            self.done += 1;
        }
    }

    /// Begins a string, and returns how many words it has; `None`, and nothing, if it is not as most
    /// are.
    #[inline(always)]
    fn begin_soon(&mut self, input: &[u8], at: &mut usize) -> Option<usize> {
        let rest = input.get(*at..)?;
        if self.done == self.ends.len() {
            return None;
        }
        let (head, mut rest) = rest.split_first()?;
        match *head {
            HEX_HEAD => {
                let (bytes, rest) = rest.split_first()?;
                let bytes = usize::from(*bytes);
                if bytes >= TWO_BYTES {
                    return None;
                }
                self.text.hex(rest.get(..bytes)?).ok()?;
                *at += 2 + bytes;
                return Some(0);
            }
            NO_HEAD.. | RAW_HEAD => return None,
            WORDS_HEAD => {}
            _ => {
                let (distance, behind) = rest.split_first()?;
                let shared = usize::from(*head - WORDS_HEAD);
                let done = self.ends.get(..self.done)?;
                let (from, to) = earlier(done, (*distance).into())?;
                if usize::from(*distance) >= TWO_BYTES || to - from < shared {
                    return None;
                }
                // Words that cannot be told are seen before anything is done.
                behind
                    .first()
                    .filter(|words| usize::from(**words) < TWO_BYTES)?;
                self.text.repeat(from, shared).ok()?;
                rest = behind;
                *at += 1;
            }
        }
        let words = usize::from(*rest.first()?);
        if words >= TWO_BYTES {
            return None;
        }
        *at += 2;
        Some(words)
    }

    /// Begins any string, and returns how many words it has; `None` if it has none, and is done.
    #[cold]
    #[inline(never)]
    fn begin(
        &mut self,
        cursor: &mut Cursor<'_>,
        reading: &'static str,
    ) -> Result<Option<usize>, DecodeError> {
        let at = cursor.clone();
        let most = self.text.most;
        let full = |Full| at.over_limit(reading, to_u64(most) + 1, most);
        match cursor.varint(reading)? {
            HEX => {
                let packed = cursor.section(reading)?.take_rest();
                self.text.hex(packed).map_err(full)?;
            }
            RAW => {
                let raw = cursor.section(reading)?.take_rest();
                self.text.add(raw).map_err(full)?;
            }
            head => {
                if let Some(shared) = head.checked_sub(WORDS).filter(|shared| *shared > 0) {
                    let distance = cursor.varint(reading)?;
                    let done = self.ends.get(..self.done).unwrap_or_default();
                    let (from, to) = earlier(done, distance)
                        .filter(|(from, to)| to_u64(to - from) >= shared)
                        .ok_or_else(|| {
                            at.error(reading, DecodeErrorKind::Invalid { found: distance })
                        })?;
                    let shared = to_usize(shared).min(to - from);
                    self.text.repeat(from, shared).map_err(full)?;
                }
                return cursor.count(most, reading).map(Some);
            }
        }
        self.end();
        Ok(None)
    }
}

/// Heads of strings in a byte, as most are written.
const HEX_HEAD: u8 = 0;
const RAW_HEAD: u8 = 1;
const WORDS_HEAD: u8 = 2;

/// The first byte that is none of a number's only one.
const NO_HEAD: u8 = 0x80;

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

#[cfg(test)]
mod tests;
