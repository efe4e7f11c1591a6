//! A record as plain bytes, in the order of its schema: the form in a queue.
//!
//! A row never leaves the process, so it has no version and no padding:
//!
//! | type | bytes |
//! |---|---|
//! | bool | 1 |
//! | integers, f32, f64 | their width, little-endian |
//! | char, enum | 4, little-endian |
//! | string | 4: length, or `0x8000_0000` + number of an [`Interned`] string; then the length's bytes |
//! | bytes | 4: length; then the bytes |
//! | optional | 1: 0 or 1; then the value if 1 |
//! | list | 4: count; then the values |
//! | record | its fields |
//! | map | 4: count; then each key and its value |

use super::intern::{INTERNED, Interned};
use super::schema::{FieldType, Schema};
use super::words::Width;

/// Appends the fields of one record to a buffer.
///
/// The calls must follow the schema's order; [`super::batch::BatchBuilder`] refuses rows that do
/// not.
#[derive(Debug)]
pub struct RowWriter<'a> {
    out: &'a mut Vec<u8>,
    too_large: bool,
}

macro_rules! write_number {
    ($($name:ident: $type:ty),* $(,)?) => {$(
        #[doc = concat!("Appends a value of type `", stringify!($type), "`.")]
        #[inline]
        pub fn $name(&mut self, value: $type) {
            self.out.extend_from_slice(&value.to_le_bytes());
        }
    )*};
}

impl<'a> RowWriter<'a> {
    /// A writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            too_large: false,
        }
    }

    write_number! {
        i8: i8, i16: i16, i32: i32, i64: i64,
        u8: u8, u16: u16, u32: u32, u64: u64,
        f32: f32, f64: f64,
    }

    /// Appends a bool.
    #[inline]
    pub fn bool(&mut self, value: bool) {
        self.u8(u8::from(value));
    }

    /// Appends a char.
    #[inline]
    pub fn char(&mut self, value: char) {
        self.u32(u32::from(value));
    }

    /// Appends the number of an enum's variant.
    #[inline]
    pub fn variant(&mut self, number: u32) {
        self.u32(number);
    }

    /// Appends text.
    #[inline]
    pub fn str(&mut self, value: &str) {
        if self.length(value.len()) {
            self.out.extend_from_slice(value.as_bytes());
        }
    }

    /// Appends text by its handle.
    #[inline]
    pub fn interned(&mut self, value: Interned) {
        self.u32(INTERNED | value.number());
    }

    /// Appends bytes.
    pub fn bytes(&mut self, value: &[u8]) {
        if self.length(value.len()) {
            self.out.extend_from_slice(value);
        }
    }

    /// Marks that an optional's value follows.
    pub fn some(&mut self) {
        self.u8(1);
    }

    /// Marks that an optional has no value.
    pub fn none(&mut self) {
        self.u8(0);
    }

    /// Marks that `len` values of a list follow, or `len` entries of a map: each its key, a text, and
    /// its value.
    pub fn list(&mut self, len: usize) {
        self.length(len);
    }

    /// Whether a value was too large for a row (2 GiB). The row is then useless.
    pub fn is_too_large(&self) -> bool {
        self.too_large
    }

    /// Appends the low bytes of an integer, as many as its type has.
    pub(super) fn integer(&mut self, bytes: [u8; 8], field_type: &FieldType) {
        let width = field_type.integer_bits().unwrap_or(64) / 8;
        let width = usize::try_from(width).unwrap_or(8);
        self.out.extend(bytes.iter().take(width));
    }

    fn length(&mut self, len: usize) -> bool {
        match u32::try_from(len) {
            Ok(len) if len < INTERNED => {
                self.u32(len);
                true
            }
            _ => {
                self.too_large = true;
                false
            }
        }
    }
}

/// Takes the values of a row apart again.
#[derive(Debug)]
pub(super) struct RowReader<'a> {
    rest: &'a [u8],
}

/// A row does not fit its schema: a hand-written [`super::Record`] is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RowEnds;

macro_rules! read_number {
    ($($name:ident: $type:ty),* $(,)?) => {$(
        pub(super) fn $name(&mut self) -> Result<$type, RowEnds> {
            Ok(<$type>::from_le_bytes(self.array()?))
        }
    )*};
}

impl<'a> RowReader<'a> {
    pub(super) fn new(row: &'a [u8]) -> Self {
        Self { rest: row }
    }

    read_number! {
        i8: i8, i16: i16, i32: i32, i64: i64,
        u8: u8, u16: u16, u32: u32, u64: u64,
    }

    pub(super) fn take(&mut self, len: u32) -> Result<&'a [u8], RowEnds> {
        self.take_bytes(usize::try_from(len).map_err(|_| RowEnds)?)
    }

    pub(super) fn take_bytes(&mut self, len: usize) -> Result<&'a [u8], RowEnds> {
        let (head, rest) = self.rest.split_at_checked(len).ok_or(RowEnds)?;
        self.rest = rest;
        Ok(head)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], RowEnds> {
        let (head, rest) = self.rest.split_first_chunk::<N>().ok_or(RowEnds)?;
        self.rest = rest;
        Ok(*head)
    }
}

/// The position of an integer field in the rows of one type. For sorting rows before they become
/// columns.
#[derive(Debug, Clone)]
pub struct RowNumber {
    /// The fields before it.
    before: Box<[FieldType]>,
    field_type: FieldType,
}

impl RowNumber {
    /// Finds the first integer field with one of these names, if the type has one.
    pub fn find(schema: &Schema, names: &[&str]) -> Option<Self> {
        let fields = schema.fields();
        let at = fields.iter().position(|field| {
            names.contains(&field.name()) && field.field_type().integer_bits().is_some()
        })?;
        let (before, rest) = fields.split_at_checked(at)?;
        Some(Self {
            before: before
                .iter()
                .map(|field| field.field_type().clone())
                .collect(),
            field_type: rest.first()?.field_type().clone(),
        })
    }

    /// Returns the field's bits in this row, sign-extended for narrower signed numbers; `None` if
    /// the row does not follow its schema.
    pub fn read(&self, row: &[u8]) -> Option<u64> {
        let mut row = RowReader::new(row);
        for field in &self.before {
            skip(field, &mut row).ok()?;
        }
        let bits = self.field_type.integer_bits()?;
        let mut number = [0; 8];
        let bytes = row.take(bits / 8).ok()?;
        number
            .iter_mut()
            .zip(bytes)
            .for_each(|(to, from)| *to = *from);
        let number = u64::from_le_bytes(number);
        let unused = 64 - bits;
        Some(match self.field_type {
            FieldType::U8 | FieldType::U16 | FieldType::U32 => number,
            _ => (((number << unused) as i64) >> unused) as u64,
        })
    }
}

/// Skips one value. Schemas limit the depth.
fn skip(field_type: &FieldType, row: &mut RowReader<'_>) -> Result<(), RowEnds> {
    let bytes = match field_type {
        FieldType::String => match row.u32()? {
            interned if interned & INTERNED != 0 => 0,
            length => length,
        },
        FieldType::Bytes => row.u32()?,
        FieldType::Optional(inner) => {
            if row.u8()? != 0 {
                skip(inner, row)?;
            }
            0
        }
        FieldType::List(inner) | FieldType::Map(inner) => {
            for _ in 0..row.u32()? {
                skip(inner, row)?;
            }
            0
        }
        FieldType::Record(schema) => {
            for field in schema.fields() {
                skip(field.field_type(), row)?;
            }
            0
        }
        flat => u32::try_from(Width::of(flat).bytes()).map_err(|_| RowEnds)?,
    };
    row.take(bytes).map(drop)
}

#[cfg(test)]
mod tests;
