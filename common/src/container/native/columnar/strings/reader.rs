//! Strings of words, read.

use super::numbered::{Numbered, SHORT_NUMBERS, TWO_BYTES, Words};
use super::text::{BLOCK, Full, Text, word_at};
use super::tokens::TOKENS;
use super::words::short;
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
    let mut text = spare.text(bytes + BLOCK);
    let mut strings = Strings {
        text: Text {
            bytes: &mut text,
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
    let found = strings.text.len;
    let ends = strings.ends;
    spare.add_words(strings.words.spelled);
    if found != bytes {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(bytes),
            found: to_u64(found),
        };
        return Err(cursor.error(reading, kind));
    }
    text.truncate(bytes);
    Ok((text, ends))
}

/// The strings that were read so far.
struct Strings<'a> {
    text: Text<'a>,
    /// Where each ends, of those that are done.
    ends: Vec<u32>,
    done: usize,
    words: Words,
}

impl Strings<'_> {
    /// Reads strings as long as they and their words are as most are; first so many words of a
    /// string that was begun. Returns how many there are still of such a one.
    ///
    /// Nothing here is left half done: whatever is not as most are stays where it is, for
    /// [`Self::begin`] and [`read_word`], which say what is wrong with it.
    #[inline(never)]
    fn run(&mut self, cursor: &mut Cursor<'_>, mut left: Option<usize>) -> Option<usize> {
        let input = cursor.rest();
        let Some(words) = self.words.numbered() else {
            return left;
        };
        // By themselves, so that they are in registers.
        let mut run = Run {
            rest: input,
            text: Text {
                bytes: &mut *self.text.bytes,
                ..self.text
            },
            ends: &mut self.ends,
            done: self.done,
            words,
        };
        loop {
            let words = match left {
                Some(words) => words,
                None => match run.begin() {
                    Some(words) => words,
                    None => break,
                },
            };
            let words = run.take(words);
            if words > 0 {
                left = Some(words);
                break;
            }
            left = None;
            run.end();
        }
        cursor.skip(input.len() - run.rest.len());
        let (len, done, next) = (run.text.len, run.done, run.words.next);
        (self.text.len, self.done) = (len, done);
        self.words.set_next(next);
        left
    }

    /// Ends a string.
    fn end(&mut self) {
        if let Some(end) = self.ends.get_mut(self.done) {
            *end = short(self.text.len);
            self.done += 1;
        }
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

/// Strings that are as most are, read one after the other.
struct Run<'a> {
    rest: &'a [u8],
    text: Text<'a>,
    ends: &'a mut [u32],
    done: usize,
    words: Numbered<'a>,
}

impl Run<'_> {
    /// Begins a string, and returns how many words it has; `None`, and nothing, if it is not as most
    /// are.
    #[inline(always)]
    fn begin(&mut self) -> Option<usize> {
        if self.done == self.ends.len() {
            return None;
        }
        let words = match self.rest {
            [HEX_HEAD, bytes, rest @ ..] if is_short(*bytes) => {
                let (packed, rest) = rest.split_at_checked((*bytes).into())?;
                self.text.hex(packed).ok()?;
                self.rest = rest;
                0
            }
            [WORDS_HEAD, words, rest @ ..] if is_short(*words) => {
                self.rest = rest;
                *words
            }
            [head, distance, words, rest @ ..] if is_short(head | distance | words) => {
                let shared = usize::from(head.checked_sub(WORDS_HEAD)?);
                let done = self.ends.get(..self.done)?;
                let (from, to) = earlier(done, (*distance).into())?;
                if shared == 0 || to - from < shared {
                    return None;
                }
                self.text.repeat(from, shared).ok()?;
                self.rest = rest;
                *words
            }
            _ => return None,
        };
        Some(words.into())
    }

    /// Takes so many words; returns how many are left of which the first one is not as most are.
    #[inline(always)]
    fn take(&mut self, words: usize) -> usize {
        let Some(mut to) = self.text.bytes.get_mut(self.text.len..) else {
            return words;
        };
        let room = to.len();
        let left = self.words.take(&mut self.rest, words, &mut to);
        self.text.len += room - to.len();
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
}

/// Whether it is all of a number.
fn is_short(byte: u8) -> bool {
    usize::from(byte) < TWO_BYTES
}

/// Heads of strings in a byte, as most are written.
const HEX_HEAD: u8 = 0;
const WORDS_HEAD: u8 = 2;

#[inline(never)]
fn read_word(
    cursor: &mut Cursor<'_>,
    text: &mut Text<'_>,
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
    let word = word_at(text.bytes, from).ok_or(Full).map_err(full)?;
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
