//! Rust types that can be a field of a record, and their nesting.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;

use super::intern::{INTERNED, Interned};
use super::read::{Projection, ReadError};
use super::reference::ValueRef;
use super::row::RowWriter;
use super::schema::FieldType;
use super::words::Width;
use crate::number::to_u64;

/// A Rust type that can be a field of a record.
///
/// Implemented for bool, integers up to 64 bits, floats, `char`, `String`, `Box<str>`, [`Interned`],
/// [`Bytes`], `Option` and `Vec` of such types, and `HashMap` and `BTreeMap` from `String` to such
/// types; `#[derive(Record)]` implements it for a record (nested) and for an enum without data.
/// A value of a map that can have any type is an [`AnyValue`](super::AnyValue).
/// `Vec<u8>` is a list of numbers; [`Bytes`] is the type for byte strings.
/// An `Option` directly inside an `Option`, and a type that contains itself, cannot be fields.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be a field of a record",
    label = "not a type of a record's field",
    note = "fields are bool, i8 to i64, u8 to u64, f32, f64, char, String, Bytes, Option and Vec of such types, maps from String to such types, and types that derive `Record`",
    note = "usize and isize differ between machines: use u64 and i64"
)]
pub trait FieldValue: Sized {
    /// The nesting of the type. Only a type with other types inside sets this.
    const SHAPE: Shape = Shape::LEAF;

    /// The layout of the values in a row of words. If they have one width, [`bits`](Self::bits)
    /// and, for text, [`text`](Self::text) return the value.
    const WIDTH: Width = Width::Varies;

    /// The field's type.
    fn field_type() -> FieldType;

    /// Returns the value's bits, as many as its width; for a text its length in bytes.
    fn bits(&self) -> u64 {
        0
    }

    /// Returns the text, if the value is one.
    fn text(&self) -> &str {
        ""
    }

    /// Appends the value to a row.
    fn write(&self, row: &mut RowWriter<'_>);

    /// Reads the value from a record, and widens it where [`super::can_read`] allows that.
    ///
    /// The projection, if there is one, reads the records inside the value. Types with other types
    /// inside pass the projection on; other types do not need one.
    ///
    /// # Errors
    ///
    /// [`ReadError::Value`] when the type cannot hold the value.
    fn read(value: ValueRef<'_>, projection: Option<&Projection>) -> Result<Self, ReadError>;

    /// Returns the value of a field that the writer did not have, if the type has a natural one.
    fn missing() -> Option<Self> {
        None
    }
}

/// Returns the error that a value does not belong to the type.
pub fn refuse<T: FieldValue>(value: ValueRef<'_>) -> ReadError {
    let found = match value {
        ValueRef::Signed(number) => format!("{} ({number})", value.kind()),
        ValueRef::Unsigned(number) => format!("{} ({number})", value.kind()),
        ValueRef::Enum(variant) => format!(
            "the variant {} of the enum {}",
            variant.name().unwrap_or("without a name"),
            variant.enum_type.name()
        ),
        _ => value.kind().to_owned(),
    };
    ReadError::Value {
        found: found.into(),
        wanted: T::field_type().to_string().into(),
    }
}

/// Implements [`FieldValue`] for types of one width.
///
/// A line has the Rust type, its [`FieldType`], its [`Width`], the call of [`RowWriter`], the
/// value's bits, and the conversion from a [`ValueRef`].
macro_rules! scalar_field {
    ($($type:ty: $kind:ident, $width:ident, $write:ident, $bits:expr, $read:expr;)*) => {$(
        impl FieldValue for $type {
            const WIDTH: Width = Width::$width;

            fn field_type() -> FieldType {
                FieldType::$kind
            }

            #[inline(always)]
            fn bits(&self) -> u64 {
                $bits(*self).into()
            }

            fn write(&self, row: &mut RowWriter<'_>) {
                row.$write(*self);
            }

            fn read(value: ValueRef<'_>, _: Option<&Projection>) -> Result<Self, ReadError> {
                let read: fn(ValueRef<'_>) -> Option<Self> = $read;
                read(value).ok_or_else(|| refuse::<Self>(value))
            }
        }
    )*};
}

scalar_field! {
    bool: Bool, One, bool, u64::from, |value| match value {
        ValueRef::Bool(value) => Some(value),
        _ => None,
    };
    i8: I8, One, i8, |value| value as u8, integer;
    i16: I16, Two, i16, |value| value as u16, integer;
    i32: I32, Four, i32, |value| value as u32, integer;
    i64: I64, Eight, i64, |value| value as u64, integer;
    u8: U8, One, u8, Self::from, integer;
    u16: U16, Two, u16, Self::from, integer;
    u32: U32, Four, u32, Self::from, integer;
    u64: U64, Eight, u64, Self::from, integer;
    f32: F32, Four, f32, Self::to_bits, |value| match value {
        ValueRef::F32(value) => Some(value),
        value => integer::<i16>(value).map(Self::from).or_else(|| integer::<u16>(value).map(Self::from)),
    };
    f64: F64, Eight, f64, Self::to_bits, |value| match value {
        ValueRef::F64(value) => Some(value),
        ValueRef::F32(value) => Some(value.into()),
        value => integer::<i32>(value).map(Self::from).or_else(|| integer::<u32>(value).map(Self::from)),
    };
    char: Char, Four, char, u32::from, |value| match value {
        ValueRef::Char(value) => Some(value),
        _ => None,
    };
}

/// Returns the integer, if the value is one that fits.
fn integer<T: TryFrom<i64> + TryFrom<u64>>(value: ValueRef<'_>) -> Option<T> {
    match value {
        ValueRef::Signed(number) => number.try_into().ok(),
        ValueRef::Unsigned(number) => number.try_into().ok(),
        _ => None,
    }
}

macro_rules! string_field {
    ($($type:ty),*) => {$(
        impl FieldValue for $type {
            const WIDTH: Width = Width::Text;

            #[inline(always)]
            fn bits(&self) -> u64 {
                to_u64(self.len())
            }

            #[inline(always)]
            fn text(&self) -> &str {
                self
            }

            fn field_type() -> FieldType {
                FieldType::String
            }

            fn write(&self, row: &mut RowWriter<'_>) {
                row.str(self);
            }

            fn read(value: ValueRef<'_>, _: Option<&Projection>) -> Result<Self, ReadError> {
                match value {
                    ValueRef::String(value) => Ok(value.into()),
                    _ => Err(refuse::<Self>(value)),
                }
            }
        }
    )*};
}

string_field!(String, Box<str>, std::sync::Arc<str>);

/// Written by its number. It cannot be read: strings of dynamic records are not interned, so a
/// reader needs another string type.
impl FieldValue for Interned {
    const WIDTH: Width = Width::Interned;

    #[inline(always)]
    fn bits(&self) -> u64 {
        u64::from(INTERNED | self.number())
    }

    fn field_type() -> FieldType {
        FieldType::String
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        row.interned(*self);
    }

    fn read(value: ValueRef<'_>, _: Option<&Projection>) -> Result<Self, ReadError> {
        Err(ReadError::Value {
            found: value.kind().into(),
            wanted: "an interned string, which can only be written".into(),
        })
    }
}

impl FieldValue for Bytes {
    fn field_type() -> FieldType {
        FieldType::Bytes
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        row.bytes(self);
    }

    fn read(value: ValueRef<'_>, _: Option<&Projection>) -> Result<Self, ReadError> {
        match value {
            ValueRef::Bytes(value) => Ok(Self::copy_from_slice(value)),
            _ => Err(refuse::<Self>(value)),
        }
    }
}

impl<T: FieldValue> FieldValue for Option<T> {
    const SHAPE: Shape = T::SHAPE.optional();

    fn field_type() -> FieldType {
        T::field_type().optional()
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        match self {
            None => row.none(),
            Some(value) => {
                row.some();
                value.write(row);
            }
        }
    }

    fn read(value: ValueRef<'_>, projection: Option<&Projection>) -> Result<Self, ReadError> {
        match value {
            ValueRef::Null => Ok(None),
            _ => T::read(value, projection).map(Some),
        }
    }

    fn missing() -> Option<Self> {
        Some(None)
    }
}

impl<T: FieldValue> FieldValue for Vec<T> {
    const SHAPE: Shape = T::SHAPE.list();

    fn field_type() -> FieldType {
        T::field_type().list()
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        row.list(self.len());
        self.iter().for_each(|item| item.write(row));
    }

    fn read(value: ValueRef<'_>, projection: Option<&Projection>) -> Result<Self, ReadError> {
        match value {
            ValueRef::List(list) => list.iter().map(|item| T::read(item, projection)).collect(),
            _ => Err(refuse::<Self>(value)),
        }
    }
}

macro_rules! map_field {
    ($($map:ident),*) => {$(
        /// A key that comes twice is read with its last value.
        impl<T: FieldValue> FieldValue for $map<String, T> {
            const SHAPE: Shape = T::SHAPE.map();

            fn field_type() -> FieldType {
                T::field_type().map()
            }

            fn write(&self, row: &mut RowWriter<'_>) {
                row.list(self.len());
                for (key, value) in self {
                    row.str(key);
                    value.write(row);
                }
            }

            fn read(
                value: ValueRef<'_>,
                projection: Option<&Projection>,
            ) -> Result<Self, ReadError> {
                match value {
                    ValueRef::Map(map) => map
                        .iter()
                        .map(|(key, value)| Ok((key.to_owned(), T::read(value, projection)?)))
                        .collect(),
                    _ => Err(refuse::<Self>(value)),
                }
            }
        }
    )*};
}

map_field!(HashMap, BTreeMap);

/// The nesting of a field's type. With it `#[derive(Record)]` refuses at compile time everything
/// that [`super::Schema::new`] refuses at run time.
///
/// A type that contains itself has no shape: the compiler reports a cycle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    depth: usize,
    optional: bool,
    nested_optional: bool,
}

impl Shape {
    /// A type without types in it.
    pub const LEAF: Self = Self {
        depth: 1,
        optional: false,
        nested_optional: false,
    };

    /// An optional of the type.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self {
            depth: self.depth + 1,
            optional: true,
            nested_optional: self.optional || self.nested_optional,
        }
    }

    /// A list of the type.
    #[must_use]
    pub const fn list(self) -> Self {
        Self {
            depth: self.depth + 1,
            optional: false,
            nested_optional: self.nested_optional,
        }
    }

    /// A map from strings to the type: a list of records.
    #[must_use]
    pub const fn map(self) -> Self {
        Self {
            depth: self.depth + 2,
            ..self.list()
        }
    }

    /// A record with fields of these types.
    #[must_use]
    pub const fn record(fields: &[Self]) -> Self {
        let mut deepest = 0;
        let mut rest = fields;
        while let Some((field, others)) = rest.split_first() {
            if field.depth > deepest {
                deepest = field.depth;
            }
            rest = others;
        }
        Self {
            depth: deepest + 1,
            optional: false,
            // A nested type was checked where it was derived.
            nested_optional: false,
        }
    }

    /// Returns how many levels of optional, list and record are nested in the type, including
    /// itself; see [`super::FieldType::depth`].
    pub const fn depth(self) -> usize {
        self.depth
    }

    /// Whether there is an optional directly inside an optional.
    pub const fn has_nested_optional(self) -> bool {
        self.nested_optional
    }
}
