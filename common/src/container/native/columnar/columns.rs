//! Reads columns of any type into memory.

use super::BYTES_PLAIN;
use super::ints::{IntDecoder, Scope, Sign};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::number::{to_u64, to_usize};
use crate::record::{BytesColumn, Column, FieldType, ListColumn, OptionalColumn, RecordColumn};

/// The least cost of a value in the budget, even if it takes no memory of its own. A record without
/// fields in a list must not be repeated four billion times.
const LEAST_VALUE_BYTES: usize = 1;

/// Reads the columns of one body.
#[derive(Debug)]
pub(super) struct ColumnDecoder<'a> {
    pub(super) ints: IntDecoder<'a>,
    /// The number of strings in the string table.
    pub(super) strings: usize,
}

impl ColumnDecoder<'_> {
    /// Reads a column of `count` values. `earlier` are the columns of the same table to which it
    /// may refer. The checked depth of the schema limits the recursion.
    pub(super) fn column(
        &mut self,
        cursor: &mut Cursor<'_>,
        field_type: &FieldType,
        count: usize,
        earlier: &[Column],
    ) -> Result<Column, DecodeError> {
        self.ints
            .charge(cursor, count, LEAST_VALUE_BYTES, "a column")?;
        Ok(match field_type {
            FieldType::Bool => {
                let integers = self.ints.narrow(cursor, count, 1, "a column of bools")?;
                Column::Bool(integers.iter().map(|integer| *integer != 0).collect())
            }
            FieldType::I8 => self.signed(cursor, count, i8::MIN.into(), i8::MAX.into())?,
            FieldType::I16 => self.signed(cursor, count, i16::MIN.into(), i16::MAX.into())?,
            FieldType::I32 => self.signed(cursor, count, i32::MIN.into(), i32::MAX.into())?,
            FieldType::I64 => {
                let integers = self.wide(cursor, count, Sign::Signed, earlier)?;
                Column::Signed(signed(integers))
            }
            FieldType::U8 => self.unsigned(cursor, count, u8::MAX.into())?,
            FieldType::U16 => self.unsigned(cursor, count, u16::MAX.into())?,
            FieldType::U32 => self.unsigned(cursor, count, u32::MAX.into())?,
            FieldType::U64 => {
                Column::Unsigned(self.wide(cursor, count, Sign::Unsigned, earlier)?)
            }
            FieldType::F32 => {
                let largest = u32::MAX.into();
                Column::F32(
                    self.ints
                        .narrow(cursor, count, largest, "a column of f32")?,
                )
            }
            FieldType::F64 => {
                Column::F64(self.integers(cursor, count, u64::MAX, "a column of f64")?)
            }
            FieldType::Char => self.chars(cursor, count)?,
            FieldType::String => Column::String(self.string_ids(cursor, count)?),
            FieldType::Enum(enum_type) => {
                let largest = to_u64(enum_type.variants().len()) - 1;
                Column::Enum(
                    self.ints
                        .narrow(cursor, count, largest, "a column of variants")?,
                )
            }
            FieldType::Bytes => Column::Bytes(self.bytes(cursor, count)?),
            FieldType::Optional(inner) => self.optional(cursor, inner, count)?,
            FieldType::List(inner) | FieldType::Map(inner) => {
                let (ends, total) = self.ends(cursor, count, "the lengths of lists")?;
                let items = self.column(cursor, inner, total, &[])?;
                Column::List(Box::new(ListColumn { ends, items }))
            }
            FieldType::Record(schema) => {
                let mut fields = Vec::with_capacity(schema.fields().len());
                for field in schema.fields() {
                    fields.push(self.column(cursor, field.field_type(), count, &[])?);
                }
                Column::Record(RecordColumn { len: count, fields })
            }
        })
    }

    /// Positions in the string table.
    pub(super) fn string_ids(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
    ) -> Result<Vec<u32>, DecodeError> {
        let reading = "a column of strings";
        match to_u64(self.strings).checked_sub(1) {
            Some(largest) => self.ints.narrow(cursor, count, largest, reading),
            None if count == 0 => Ok(Vec::new()),
            None => {
                // A column cannot name a string if there is none.
                let kind = DecodeErrorKind::Invalid { found: 0 };
                Err(cursor.error(reading, kind))
            }
        }
    }

    /// Values from 0 to `largest`.
    fn integers(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
        reading: &'static str,
    ) -> Result<Vec<u64>, DecodeError> {
        let at = cursor.clone();
        let scope = Scope::plain(Sign::Unsigned);
        let integers = self.ints.wide(cursor, count, scope, reading)?;
        match integers.iter().find(|integer| **integer > largest) {
            None => Ok(integers),
            Some(found) => Err(at.error(reading, DecodeErrorKind::Invalid { found: *found })),
        }
    }

    fn unsigned(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        largest: u64,
    ) -> Result<Column, DecodeError> {
        let reading = "a column of unsigned integers";
        let integers = self.integers(cursor, count, largest, reading)?;
        Ok(Column::Unsigned(integers))
    }

    fn signed(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        smallest: i64,
        largest: i64,
    ) -> Result<Column, DecodeError> {
        let reading = "a column of signed integers";
        let at = cursor.clone();
        let scope = Scope::plain(Sign::Signed);
        let integers = self.ints.wide(cursor, count, scope, reading)?;
        let values = signed(integers);
        match outside(&values, smallest, largest) {
            None => Ok(Column::Signed(values)),
            Some(found) => Err(at.error(reading, DecodeErrorKind::Invalid { found })),
        }
    }

    /// Integers of 64 bits, which may be ticks or equal to an earlier column.
    fn wide(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        sign: Sign,
        earlier: &[Column],
    ) -> Result<Vec<u64>, DecodeError> {
        let scope = Scope {
            sign,
            ticks: true,
            earlier,
        };
        self.ints.wide(cursor, count, scope, "a column of integers")
    }

    fn chars(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Result<Column, DecodeError> {
        let reading = "a column of chars";
        let at = cursor.clone();
        let codes = self
            .ints
            .narrow(cursor, count, u32::from(char::MAX).into(), reading)?;
        let mut chars = Vec::with_capacity(codes.len());
        for code in codes {
            chars.push(char::from_u32(code).ok_or_else(|| {
                let found = code.into();
                at.error(reading, DecodeErrorKind::Invalid { found })
            })?);
        }
        Ok(Column::Char(chars))
    }

    /// Reads lengths. Returns their running sums (the ends), and the last end.
    fn ends(
        &mut self,
        cursor: &mut Cursor<'_>,
        count: usize,
        reading: &'static str,
    ) -> Result<(Vec<u32>, usize), DecodeError> {
        let at = cursor.clone();
        let largest = u32::MAX.into();
        let mut ends = self.ints.narrow(cursor, count, largest, reading)?;
        let mut total = 0_u32;
        for end in &mut ends {
            let sum = total.checked_add(*end).ok_or_else(|| {
                let found = u64::from(total) + u64::from(*end);
                at.over_limit(reading, found, to_usize(largest))
            })?;
            *end = sum;
            total = sum;
        }
        Ok((ends, to_usize(total)))
    }

    fn bytes(&mut self, cursor: &mut Cursor<'_>, count: usize) -> Result<BytesColumn, DecodeError> {
        let reading = "a column of bytes";
        let (ends, total) = self.ends(cursor, count, reading)?;
        if total == 0 {
            let data = Vec::new();
            return Ok(BytesColumn { ends, data });
        }
        let at = cursor.clone();
        let encoding = cursor.u8(reading)?;
        if encoding != BYTES_PLAIN {
            let kind = DecodeErrorKind::Unknown {
                what: "encoding of bytes",
                number: encoding.into(),
            };
            return Err(at.error(reading, kind));
        }
        self.ints.note("plain");
        let mut section = cursor.section(reading)?;
        if section.left() != total {
            let kind = DecodeErrorKind::Length {
                declared: to_u64(total),
                found: to_u64(section.left()),
            };
            return Err(at.error(reading, kind));
        }
        self.ints.charge(&at, total, 1, reading)?;
        let data = section.take_rest().to_vec();
        Ok(BytesColumn { ends, data })
    }

    fn optional(
        &mut self,
        cursor: &mut Cursor<'_>,
        inner: &FieldType,
        count: usize,
    ) -> Result<Column, DecodeError> {
        let reading = "the presence of values";
        let mut positions = self.ints.narrow(cursor, count, 1, reading)?;
        let mut present = 0;
        for position in &mut positions {
            if *position == 0 {
                *position = OptionalColumn::ABSENT;
            } else {
                *position = present;
                present += 1;
            }
        }
        let present = self.column(cursor, inner, to_usize(present), &[])?;
        Ok(Column::Optional(Box::new(OptionalColumn {
            positions,
            present,
        })))
    }
}

/// Converts the integers to signed numbers, in the same memory.
pub(super) fn signed(integers: Vec<u64>) -> Vec<i64> {
    integers.into_iter().map(|bits| bits as i64).collect()
}

/// Returns the first value outside the range of a type. It needs no branch for each value.
pub(super) fn outside(values: &[i64], smallest: i64, largest: i64) -> Option<u64> {
    let range = largest.wrapping_sub(smallest) as u64;
    let above = |value: &i64| value.wrapping_sub(smallest) as u64;
    // All bits of the range are set, so a larger value has another bit.
    if values.iter().fold(0, |seen, value| seen | above(value)) <= range {
        return None;
    }
    let found = values.iter().find(|value| above(value) > range);
    found.map(|value| *value as u64)
}
