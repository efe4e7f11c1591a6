//! How a sender counts the length of a string: in bytes, or in UTF-16 units.
//!
//! Nothing in the stream says it. Both agree on ASCII. At the first other string, the bytes that
//! have arrived are read in both ways, and the reading that explains them counts.

use std::collections::HashMap;

use baler_common::container::cursor::Cursor;
use baler_common::container::{DecodeError, DecodeErrorKind};
use baler_common::number::{to_u64, to_usize};
use baler_common::record::{Catalog, FieldType};

use super::class::MAX_RECORD_BYTES;
use super::decode::{CLASS, invalid};
use super::registry::{NumberedStrings, REGISTRATION, STRING, STRING_ID, bits, head};
use super::{least_bytes, list_bytes};

/// How a sender counts the length of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// Unknown: every string was ASCII so far.
    Undecided,
    /// In bytes, as readers expect.
    Bytes,
    /// In UTF-16 units, as Kieker's socket writers do (`String.length()`).
    Units,
}

impl Lengths {
    /// Reads a string of this length.
    pub(super) fn text<'a>(
        self,
        length: usize,
        input: &mut Cursor<'a>,
    ) -> Result<&'a str, DecodeError> {
        if self == Self::Units {
            return units(length, input);
        }
        let at = input.clone();
        let text = std::str::from_utf8(input.take(length, STRING)?);
        text.map_err(|_| at.error(STRING, DecodeErrorKind::Utf8))
    }
}

/// Decides by the string with this id and length, and by what comes after it. A string in ASCII
/// decides nothing.
///
/// # Errors
///
/// More bytes are needed. After the last ones (`is_ended`) they decide.
pub(super) fn decide(
    known: (&NumberedStrings, &Catalog),
    string: (i32, usize),
    input: &Cursor<'_>,
    is_ended: bool,
) -> Result<Lengths, DecodeError> {
    let read = input.clone().take(string.1, STRING)?;
    if read.is_ascii() {
        return Ok(Lengths::Undecided);
    }
    let reading = |lengths| Reading::of(lengths, known, string, input.clone());
    let (bytes, units) = (reading(Lengths::Bytes), reading(Lengths::Units));
    Ok(match (bytes.is_broken(), units.is_broken()) {
        (false, true) => Lengths::Bytes,
        (true, false) => Lengths::Units,
        (true, true) if bytes.offset > units.offset => Lengths::Bytes,
        (true, true) => Lengths::Units,
        (false, false) => {
            let early = [&bytes, &units].into_iter().find(|it| it.items == 0);
            if let (false, Some(Err(error))) = (is_ended, early.map(|it| &it.end)) {
                return Err(error.clone());
            }
            // In a reading that begins too early, small ids become 0, which are ids as well. So the
            // reading in bytes is often possible although it is wrong, but then it ends elsewhere.
            match (&bytes.end, &units.end) {
                (Ok(()), Err(_)) => Lengths::Bytes,
                _ => Lengths::Units,
            }
        }
    })
}

/// A string and the items after it, read in one of the two ways.
struct Reading {
    /// The number of complete items after the string.
    items: usize,
    /// Where the first item begins that is not complete.
    offset: usize,
    /// The end of the last item is the end of the bytes, or why not.
    end: Result<(), DecodeError>,
}

impl Reading {
    fn of(
        lengths: Lengths,
        (strings, catalog): (&NumberedStrings, &Catalog),
        (id, length): (i32, usize),
        mut input: Cursor<'_>,
    ) -> Self {
        let mut look = Lookahead {
            lengths,
            strings,
            catalog,
            new: HashMap::new(),
        };
        let mut reading = Self {
            items: 0,
            offset: input.offset(),
            end: look.string(id, length, &mut input),
        };
        while reading.end.is_ok() {
            reading.offset = input.offset();
            if reading.items > 0 && input.left() == 0 {
                break;
            }
            reading.end = look.item(&mut input);
            reading.items += usize::from(reading.end.is_ok());
        }
        reading
    }

    /// Whether the bytes are wrong, and not only incomplete.
    fn is_broken(&self) -> bool {
        let error = self.end.as_ref().err();
        error.is_some_and(|error| !matches!(error.kind, DecodeErrorKind::Ends { .. }))
    }
}

/// A look at items that are not taken.
struct Lookahead<'a, 'b> {
    lengths: Lengths,
    strings: &'a NumberedStrings,
    catalog: &'a Catalog,
    /// The strings that are registered on the way.
    new: HashMap<i32, &'b str>,
}

impl<'b> Lookahead<'_, 'b> {
    fn string(
        &mut self,
        id: i32,
        length: usize,
        input: &mut Cursor<'b>,
    ) -> Result<(), DecodeError> {
        let text = self.lengths.text(length, input)?;
        self.new.insert(id, text);
        Ok(())
    }

    fn find(&self, id: i32) -> Option<&str> {
        let new = self.new.get(&id).copied();
        new.or_else(|| self.strings.text(id))
    }

    fn item(&mut self, input: &mut Cursor<'b>) -> Result<(), DecodeError> {
        let at = input.clone();
        let first = i32::from_be_bytes(input.array(CLASS)?);
        if first == REGISTRATION {
            let (id, length) = head(input)?;
            return self.string(id, length, input);
        }
        let class = self.find(first).and_then(|name| self.catalog.get(name));
        let Some(class) = class else {
            return Err(at.error(CLASS, invalid(bits(first))));
        };
        input.take(8, "a logging timestamp")?;
        let mut fields = class.fields().iter();
        fields.try_for_each(|field| self.field(field.field_type(), input))
    }

    fn field(&self, field_type: &FieldType, input: &mut Cursor<'b>) -> Result<(), DecodeError> {
        const LIST: &str = "the length of a list";
        let at = input.clone();
        let Some(least) = least_bytes(field_type) else {
            // Such a record is refused when it is taken.
            return Ok(());
        };
        let bytes = input.take(least, "a field")?;
        let word = bytes.first_chunk().map_or(0, |it| i32::from_be_bytes(*it));
        match field_type {
            FieldType::Bool if !matches!(bytes, [0 | 1]) => {
                Err(at.error("a bool", invalid(bits(word))))
            }
            FieldType::String if self.find(word).is_none() => {
                Err(at.error(STRING_ID, invalid(bits(word))))
            }
            FieldType::List(inner) => {
                let items = to_usize(bits(word));
                let needed = list_bytes(inner, items);
                if needed > MAX_RECORD_BYTES {
                    return Err(at.over_limit(LIST, to_u64(needed), MAX_RECORD_BYTES));
                }
                // All items must be there. Otherwise pieces of a list are read again and again.
                input.clone().take(needed, LIST)?;
                (0..items).try_for_each(|_| self.field(inner, input))
            }
            _ => Ok(()),
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
                // A unit takes at least one byte.
                let needed = bytes + (length - units);
                let left = rest.len();
                return Err(input.error(STRING, DecodeErrorKind::Ends { needed, left }));
            }
        };
        bytes += size;
        units += wide;
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
