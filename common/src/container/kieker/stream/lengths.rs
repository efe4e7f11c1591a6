//! Strings of a sender that counts their length in bytes or in UTF-16 units.

use super::{KiekerStream, REGISTRATION};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::kieker::decode::CLASS;
use crate::container::kieker::registry::{STRING, head};

/// How a sender counts the length of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// Unknown: every string was ASCII so far.
    Undecided,
    /// In bytes, as readers expect it.
    Bytes,
    /// In UTF-16 units, as Kieker's socket writers do (`String.length()`).
    Units,
}

impl KiekerStream {
    /// Reads a string of a length that the sender counts in bytes or in UTF-16 units.
    ///
    /// Both agree on ASCII. At the first other string the reading in bytes counts if the next item
    /// makes sense after it, and otherwise the reading in units.
    pub(super) fn text<'a>(
        &mut self,
        length: usize,
        input: &mut Cursor<'a>,
    ) -> Result<&'a str, DecodeError> {
        if self.lengths == Lengths::Units {
            return units(length, input);
        }
        let at = input.clone();
        let mut after = input.clone();
        let read = std::str::from_utf8(after.take(length, STRING)?);
        if self.lengths == Lengths::Undecided && !read.is_ok_and(str::is_ascii) {
            if read.is_err() || !self.makes_sense(after.clone())? {
                self.lengths = Lengths::Units;
                return units(length, input);
            }
            self.lengths = Lengths::Bytes;
        }
        let text = read.map_err(|_| at.error(STRING, DecodeErrorKind::Utf8))?;
        *input = after;
        Ok(text)
    }

    /// Whether an item may begin here.
    fn makes_sense(&self, mut next: Cursor<'_>) -> Result<bool, DecodeError> {
        let first = i32::from_be_bytes(next.array(CLASS)?);
        if first != REGISTRATION {
            let class = self.registry.strings.text(first);
            return Ok(class.is_some_and(|class| self.catalog.get(class).is_some()));
        }
        match head(&mut next) {
            Ok(_) => Ok(true),
            Err(error) if matches!(error.kind, DecodeErrorKind::Ends { .. }) => Err(error),
            Err(_) => Ok(false),
        }
    }
}

/// Reads a string whose length is counted in UTF-16 units.
fn units<'a>(length: usize, input: &mut Cursor<'a>) -> Result<&'a str, DecodeError> {
    let utf8 = |at: &Cursor<'_>| at.error(STRING, DecodeErrorKind::Utf8);
    let rest = input.clone().take_rest();
    let (mut bytes, mut units) = (0_usize, 0_usize);
    while units < length {
        let (size, wide) = match rest.get(bytes) {
            Some(0x00..=0x7f) => (1, 1),
            Some(0xc2..=0xdf) => (2, 1),
            Some(0xe0..=0xef) => (3, 1),
            Some(0xf0..=0xf4) => (4, 2),
            Some(_) => return Err(utf8(input)),
            None => {
                // A unit takes a byte at least.
                let left = length.saturating_sub(units);
                let needed = bytes.saturating_add(left);
                let left = rest.len();
                return Err(input.error(STRING, DecodeErrorKind::Ends { needed, left }));
            }
        };
        bytes = bytes.saturating_add(size);
        units = units.saturating_add(wide);
    }
    let mut after = input.clone();
    let text = std::str::from_utf8(after.take(bytes, STRING)?);
    let text = text.map_err(|_| utf8(input))?;
    if units != length {
        return Err(utf8(input));
    }
    *input = after;
    Ok(text)
}
