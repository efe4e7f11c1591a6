//! The values of one field of many records, stored together.

use super::schema::{FieldType, Schema};
use super::words::low_half;
use crate::number::to_usize;

/// The values of one field, one after the other.
///
/// Integers of every width are kept in 64 bits: the field's type has the width.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Column {
    /// `bool`.
    Bool(Vec<bool>),
    /// `bytes`.
    Bytes(BytesColumn),
    /// `char`.
    Char(Vec<char>),
    /// Numbers of variants.
    Enum(Vec<u32>),
    /// `f32`, as bits, so that every pattern survives.
    F32(Vec<u32>),
    /// `f64`, as bits, so that every pattern survives.
    F64(Vec<u64>),
    /// Any number of values, or of entries of a map, for each row.
    List(Box<ListColumn>),
    /// Values that may be missing.
    Optional(Box<OptionalColumn>),
    /// Nested records.
    Record(RecordColumn),
    /// `i8` to `i64`.
    Signed(Vec<i64>),
    /// Positions in the batch's [`StringTable`](super::StringTable).
    String(Vec<u32>),
    /// `u8` to `u64`.
    Unsigned(Vec<u64>),
}

/// Byte strings, joined.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BytesColumn {
    /// The end of each value in `data`; it starts at the end of the value before.
    pub ends: Vec<u32>,
    /// All values.
    pub data: Vec<u8>,
}

/// Lists, joined; the items of maps are their entries.
#[derive(Debug, Clone, PartialEq)]
pub struct ListColumn {
    /// The end of each list in `items`; it starts at the end of the list before.
    pub ends: Vec<u32>,
    /// The values of all lists.
    pub items: Column,
}

impl ListColumn {
    /// Returns the start and the end of this row's list in `items`.
    pub fn span(&self, row: usize) -> Option<(usize, usize)> {
        span(&self.ends, row)
    }
}

/// Values that may be missing. The present values are dense.
#[derive(Debug, Clone, PartialEq)]
pub struct OptionalColumn {
    /// For each row, the position in `present`, or [`OptionalColumn::ABSENT`].
    pub positions: Vec<u32>,
    /// The present values.
    pub present: Column,
}

impl OptionalColumn {
    /// The position of a missing value.
    pub const ABSENT: u32 = u32::MAX;
}

/// Nested records: one column a field.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RecordColumn {
    /// The number of records.
    pub len: usize,
    /// Their fields.
    pub fields: Vec<Column>,
}

impl Column {
    /// An empty column for values of this type.
    pub fn new(field_type: &FieldType) -> Self {
        match field_type {
            FieldType::Bool => Self::Bool(Vec::new()),
            FieldType::I8 | FieldType::I16 | FieldType::I32 | FieldType::I64 => {
                Self::Signed(Vec::new())
            }
            FieldType::U8 | FieldType::U16 | FieldType::U32 | FieldType::U64 => {
                Self::Unsigned(Vec::new())
            }
            FieldType::F32 => Self::F32(Vec::new()),
            FieldType::F64 => Self::F64(Vec::new()),
            FieldType::Char => Self::Char(Vec::new()),
            FieldType::String => Self::String(Vec::new()),
            FieldType::Bytes => Self::Bytes(BytesColumn::default()),
            FieldType::Enum(_) => Self::Enum(Vec::new()),
            FieldType::Optional(inner) => Self::Optional(Box::new(OptionalColumn {
                positions: Vec::new(),
                present: Self::new(inner),
            })),
            FieldType::List(inner) | FieldType::Map(inner) => Self::List(Box::new(ListColumn {
                ends: Vec::new(),
                items: Self::new(inner),
            })),
            FieldType::Record(schema) => Self::Record(RecordColumn {
                len: 0,
                fields: Self::for_fields(schema),
            }),
        }
    }

    /// Empty columns for the fields of a record type.
    pub fn for_fields(schema: &Schema) -> Vec<Self> {
        schema
            .fields()
            .iter()
            .map(|field| Self::new(field.field_type()))
            .collect()
    }

    /// Returns the number of its values.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Bytes(column) => column.ends.len(),
            Self::Char(values) => values.len(),
            Self::Enum(values) | Self::F32(values) | Self::String(values) => values.len(),
            Self::F64(values) | Self::Unsigned(values) => values.len(),
            Self::List(column) => column.ends.len(),
            Self::Optional(column) => column.positions.len(),
            Self::Record(column) => column.len,
            Self::Signed(values) => values.len(),
        }
    }

    /// Whether it has no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The values, row by row, of a column of `i8` to `i64`.
    pub fn signed(&self) -> Option<&[i64]> {
        match self {
            Self::Signed(values) => Some(values),
            _ => None,
        }
    }

    /// The values, row by row, of a column of `u8` to `u64`.
    pub fn unsigned(&self) -> Option<&[u64]> {
        match self {
            Self::Unsigned(values) => Some(values),
            _ => None,
        }
    }

    /// The positions in the batch's [`StringTable`](super::StringTable), row by row, of a column of
    /// strings.
    pub fn string_ids(&self) -> Option<&[u32]> {
        match self {
            Self::String(ids) => Some(ids),
            _ => None,
        }
    }

    /// Returns the bytes of its values in rows, with 8 for an integer of any width.
    pub(super) fn row_bytes(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Bytes(column) => column.ends.len() * 4 + column.data.len(),
            Self::Char(values) => values.len() * 4,
            Self::Enum(values) | Self::F32(values) | Self::String(values) => values.len() * 4,
            Self::F64(values) | Self::Unsigned(values) => values.len() * 8,
            Self::List(column) => column.ends.len() * 4 + column.items.row_bytes(),
            Self::Optional(column) => column.positions.len() + column.present.row_bytes(),
            Self::Record(column) => column.fields.iter().map(Self::row_bytes).sum(),
            Self::Signed(values) => values.len() * 8,
        }
    }

    /// Removes every value, keeping the memory.
    pub(super) fn clear(&mut self) {
        self.truncate(0);
    }

    /// Keeps the first `len` values.
    pub fn truncate(&mut self, len: usize) {
        match self {
            Self::Bool(values) => values.truncate(len),
            Self::Bytes(column) => {
                column.ends.truncate(len);
                column.data.truncate(end(&column.ends));
            }
            Self::Char(values) => values.truncate(len),
            Self::Enum(values) | Self::F32(values) | Self::String(values) => values.truncate(len),
            Self::F64(values) | Self::Unsigned(values) => values.truncate(len),
            Self::List(column) => {
                column.ends.truncate(len);
                column.items.truncate(end(&column.ends));
            }
            Self::Optional(column) => {
                column.positions.truncate(len);
                let present = column
                    .positions
                    .iter()
                    .filter(|at| **at != OptionalColumn::ABSENT)
                    .count();
                column.present.truncate(present);
            }
            Self::Record(column) => {
                column.len = column.len.min(len);
                column
                    .fields
                    .iter_mut()
                    .for_each(|field| field.truncate(len));
            }
            Self::Signed(values) => values.truncate(len),
        }
    }

    /// Adds values of a type of fixed width, given as bits.
    ///
    /// Bits above the width of the type are ignored.
    #[inline(always)]
    pub(super) fn extend_from_bits(
        &mut self,
        field_type: &FieldType,
        bits: impl Iterator<Item = u64>,
    ) {
        let unused = 64 - field_type.integer_bits().unwrap_or(64);
        match (self, field_type) {
            (Self::Bool(values), _) => values.extend(bits.map(|bits| bits & 1 != 0)),
            (Self::Char(values), _) => {
                // Callers have checked the bits. Otherwise readers see that a character is missing.
                let chars = bits.map(|bits| char::from_u32(low_half(bits)));
                values.extend(chars.map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER)));
            }
            (Self::Enum(values) | Self::F32(values) | Self::String(values), _) => {
                values.extend(bits.map(low_half));
            }
            (Self::Signed(values), FieldType::I32) => {
                values.extend(bits.map(|bits| i64::from(low_half(bits) as i32)));
            }
            (Self::Signed(values), FieldType::I64) => values.extend(bits.map(|bits| bits as i64)),
            (Self::Signed(values), _) => {
                values.extend(bits.map(|bits| ((bits << unused) as i64) >> unused));
            }
            (Self::F64(values), _) | (Self::Unsigned(values), FieldType::U64) => {
                values.extend(bits);
            }
            (Self::Unsigned(values), _) => {
                values.extend(bits.map(|bits| bits << unused >> unused));
            }
            // Values of these types have no fixed width.
            (Self::Bytes(_) | Self::List(_) | Self::Optional(_) | Self::Record(_), _) => {}
        }
    }
}

fn end(ends: &[u32]) -> usize {
    ends.last().map_or(0, |end| to_usize(*end))
}

/// Returns the start and the end of a value, from the ends of all values.
#[inline]
pub(super) fn span(ends: &[u32], row: usize) -> Option<(usize, usize)> {
    let to = to_usize(*ends.get(row)?);
    let from = match row.checked_sub(1) {
        Some(before) => to_usize(*ends.get(before)?),
        None => 0,
    };
    Some((from, to))
}
