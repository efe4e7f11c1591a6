//! Values of fields: owned, for records whose type is known only at run time.

use bytes::Bytes;

use super::schema::FieldType;

/// An owned value of one field.
///
/// Integers of every width share two variants; the [`FieldType`] of the field defines the width.
/// Equality compares bits: a NaN equals itself, and `0.0` differs from `-0.0`.
#[derive(Debug, Clone)]
pub enum Value {
    /// Nothing: the absent value of an optional field.
    Null,
    /// True or false.
    Bool(bool),
    /// `i8` to `i64`.
    Signed(i64),
    /// `u8` to `u64`.
    Unsigned(u64),
    /// 32-bit floating point.
    F32(f32),
    /// 64-bit floating point.
    F64(f64),
    /// One Unicode scalar value.
    Char(char),
    /// Text.
    String(Box<str>),
    /// Bytes.
    Bytes(Bytes),
    /// The number of an enum's variant.
    Variant(u32),
    /// The values of a list, or the entries of a map: records of the key and the value.
    List(Vec<Self>),
    /// The fields of a nested record, in order.
    Record(Vec<Self>),
}

impl Value {
    /// The entries of a map ([`FieldType::Map`]). A key may come twice; the last one counts.
    pub fn map<K: Into<Box<str>>>(entries: impl IntoIterator<Item = (K, Self)>) -> Self {
        let entries = entries.into_iter();
        let entry = |(key, value): (K, Self)| Self::Record(vec![Self::String(key.into()), value]);
        Self::List(entries.map(entry).collect())
    }

    /// Whether the value has this type: right kind, integer in range, variant known.
    pub fn fits(&self, field_type: &FieldType) -> bool {
        match (self, field_type) {
            (Self::Null, FieldType::Optional(_)) => true,
            (value, FieldType::Optional(inner)) => value.fits(inner),
            (Self::Signed(value), FieldType::I8) => i8::try_from(*value).is_ok(),
            (Self::Signed(value), FieldType::I16) => i16::try_from(*value).is_ok(),
            (Self::Signed(value), FieldType::I32) => i32::try_from(*value).is_ok(),
            (Self::Unsigned(value), FieldType::U8) => u8::try_from(*value).is_ok(),
            (Self::Unsigned(value), FieldType::U16) => u16::try_from(*value).is_ok(),
            (Self::Unsigned(value), FieldType::U32) => u32::try_from(*value).is_ok(),
            (Self::Variant(number), FieldType::Enum(enum_type)) => {
                enum_type.variant(*number).is_some()
            }
            (Self::List(values), FieldType::List(inner) | FieldType::Map(inner)) => {
                values.iter().all(|value| value.fits(inner))
            }
            (Self::Record(values), FieldType::Record(schema)) => {
                values.len() == schema.fields().len()
                    && values
                        .iter()
                        .zip(schema.fields())
                        .all(|(value, field)| value.fits(field.field_type()))
            }
            (Self::Bool(_), FieldType::Bool)
            | (Self::Signed(_), FieldType::I64)
            | (Self::Unsigned(_), FieldType::U64)
            | (Self::F32(_), FieldType::F32)
            | (Self::F64(_), FieldType::F64)
            | (Self::Char(_), FieldType::Char)
            | (Self::String(_), FieldType::String)
            | (Self::Bytes(_), FieldType::Bytes) => true,
            _ => false,
        }
    }

    /// Returns the kind of the value, for messages.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "a bool",
            Self::Signed(_) => "a signed integer",
            Self::Unsigned(_) => "an unsigned integer",
            Self::F32(_) => "an f32",
            Self::F64(_) => "an f64",
            Self::Char(_) => "a char",
            Self::String(_) => "a string",
            Self::Bytes(_) => "bytes",
            Self::Variant(_) => "a variant",
            Self::List(_) => "a list",
            Self::Record(_) => "a record",
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(a), Self::Bool(b)) => a == b,
            (Self::Signed(a), Self::Signed(b)) => a == b,
            (Self::Unsigned(a), Self::Unsigned(b)) => a == b,
            (Self::F32(a), Self::F32(b)) => a.to_bits() == b.to_bits(),
            (Self::F64(a), Self::F64(b)) => a.to_bits() == b.to_bits(),
            (Self::Char(a), Self::Char(b)) => a == b,
            (Self::String(a), Self::String(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Variant(a), Self::Variant(b)) => a == b,
            (Self::List(a), Self::List(b)) | (Self::Record(a), Self::Record(b)) => a == b,
            _ => false,
        }
    }
}

macro_rules! value_from {
    ($($from:ty => $variant:ident),* $(,)?) => {$(
        impl From<$from> for Value {
            fn from(value: $from) -> Self {
                Self::$variant(value.into())
            }
        }
    )*};
}

value_from! {
    bool => Bool,
    i8 => Signed, i16 => Signed, i32 => Signed, i64 => Signed,
    u8 => Unsigned, u16 => Unsigned, u32 => Unsigned, u64 => Unsigned,
    f32 => F32, f64 => F64, char => Char,
    &str => String, String => String, Box<str> => String,
    Bytes => Bytes,
}
