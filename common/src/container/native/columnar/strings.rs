//! The string table in a body; FORMAT.md, "Strings".
//!
//! - `words`: writes strings as words. `tokens` defines where strings are cut, the well-known
//!   words, and how hexadecimal digits are packed.
//! - `reader`: reads strings of words.

mod reader;
mod tokens;
mod words;

use super::ints::{self, IntDecoder, IntEncoder, Sign, lengths};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::number::to_usize;
use crate::record::StringTable;

/// The lengths as a column, then the text.
const PLAIN: u8 = 0x00;
/// Words.
const WORDS: u8 = 0x01;

/// Writes string tables; keeps its memory from chunk to chunk.
#[derive(Debug, Default)]
pub(super) struct StringEncoder {
    words: words::Writer,
}

impl StringEncoder {
    /// Appends the string table of a batch with `records` records; an empty table takes no byte.
    pub(super) fn write(
        &mut self,
        strings: &StringTable,
        records: usize,
        ints: &mut IntEncoder,
        out: &mut Vec<u8>,
    ) {
        if strings.is_empty() {
            return;
        }
        let start = out.len();
        out.push(WORDS);
        // At least one byte for each length, plus the head of the column.
        let plain = strings.text_bytes() + 4;
        if self.words.write(strings, records, plain, out) {
            return;
        }
        out.truncate(start);
        write_plain(strings, ints, out);
    }
}

/// Appends the table without words; an empty one takes no byte.
fn write_plain(strings: &StringTable, ints: &mut IntEncoder, out: &mut Vec<u8>) {
    if strings.is_empty() {
        return;
    }
    out.push(PLAIN);
    ints.write(lengths(strings.ends()), Sign::Unsigned, out);
    out.extend_from_slice(strings.text().as_bytes());
}

/// Reads a table of `count` strings.
pub(super) fn read(
    cursor: &mut Cursor<'_>,
    count: usize,
    ints: &mut IntDecoder<'_>,
) -> Result<StringTable, DecodeError> {
    if count == 0 {
        return Ok(StringTable::new());
    }
    let at = cursor.clone();
    let encoding = cursor.u8("the strings' encoding")?;
    ints.charge(&at, count, size_of::<u32>(), "the strings")?;
    match encoding {
        PLAIN => read_plain(cursor, count, ints),
        WORDS => read_words(cursor, count, ints),
        _ => {
            let kind = DecodeErrorKind::Unknown {
                what: "encoding of strings",
                number: encoding.into(),
            };
            Err(at.error("the strings' encoding", kind))
        }
    }
}

fn read_words(
    cursor: &mut Cursor<'_>,
    count: usize,
    ints: &mut IntDecoder<'_>,
) -> Result<StringTable, DecodeError> {
    let reading = "the words of the strings";
    let at = cursor.clone();
    let bytes = reader::read_size(cursor, reading)?;
    ints.charge(&at, bytes, 1, reading)?;
    let (text, ends) = reader::read(cursor, count, bytes, reading)?;
    String::from_utf8(text)
        .ok()
        .and_then(|text| StringTable::from_parts(text, ends))
        .ok_or_else(|| at.error(reading, DecodeErrorKind::Utf8))
}

fn read_plain(
    cursor: &mut Cursor<'_>,
    count: usize,
    ints: &mut IntDecoder<'_>,
) -> Result<StringTable, DecodeError> {
    let scope = ints::Scope::plain(Sign::Unsigned);
    let lengths = ints.read(cursor, count, scope, "the lengths of the strings")?;
    let bytes = lengths
        .iter()
        .fold(0_u64, |sum, length| sum.saturating_add(*length));
    let at = cursor.clone();
    let reading = "the text of the strings";
    if bytes > u32::MAX.into() {
        return Err(at.over_limit(reading, bytes, to_usize(u32::MAX)));
    }
    let text = cursor.take(to_usize(bytes), reading)?;
    ints.charge(&at, text.len(), 1, reading)?;
    let mut strings = StringTable::with_capacity(count, text.len());
    std::str::from_utf8(text)
        .ok()
        .and_then(|text| fill(&mut strings, ints.integers(count), text))
        .ok_or_else(|| at.error(reading, DecodeErrorKind::Utf8))?;
    Ok(strings)
}

/// Cuts the text; `None` where a cut would split a character.
fn fill(strings: &mut StringTable, lengths: &[u64], mut text: &str) -> Option<()> {
    for length in lengths {
        let (string, rest) = text.split_at_checked(to_usize(*length))?;
        strings.push(string)?;
        text = rest;
    }
    Some(())
}
