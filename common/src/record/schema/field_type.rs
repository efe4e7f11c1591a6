//! The type of a field.

use std::fmt;
use std::sync::Arc;

use super::Schema;
use super::enum_type::EnumType;

/// The type of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldType {
    /// True or false.
    Bool,
    /// Signed, 8 bits.
    I8,
    /// Signed, 16 bits.
    I16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 64 bits.
    I64,
    /// Unsigned, 8 bits.
    U8,
    /// Unsigned, 16 bits.
    U16,
    /// Unsigned, 32 bits.
    U32,
    /// Unsigned, 64 bits.
    U64,
    /// IEEE 754, 32 bits; every bit pattern is kept.
    F32,
    /// IEEE 754, 64 bits; every bit pattern is kept.
    F64,
    /// One Unicode scalar value.
    Char,
    /// UTF-8 text, kept once a chunk in its string table.
    String,
    /// Bytes without a meaning to Baler.
    Bytes,
    /// One of the named variants of an enum, without data.
    Enum(Arc<EnumType>),
    /// A value or nothing.
    Optional(Box<Self>),
    /// Any number of values of one type.
    List(Box<Self>),
    /// A record inside the record.
    Record(Arc<Schema>),
}

impl FieldType {
    /// An optional of this type.
    #[must_use]
    pub fn optional(self) -> Self {
        Self::Optional(Box::new(self))
    }

    /// A list of this type.
    #[must_use]
    pub fn list(self) -> Self {
        Self::List(Box::new(self))
    }

    /// How many levels of optional, list and record are nested in it, itself included.
    pub fn depth(&self) -> usize {
        match self {
            Self::Optional(inner) | Self::List(inner) => 1 + inner.depth(),
            Self::Record(schema) => 1 + schema.depth(),
            _ => 1,
        }
    }

    /// An optional directly inside an optional could not be told from its absence.
    pub(super) fn has_nested_optional(&self) -> bool {
        match self {
            Self::Optional(inner) => {
                matches!(**inner, Self::Optional(_)) || inner.has_nested_optional()
            }
            Self::List(inner) => inner.has_nested_optional(),
            // A nested schema was checked when it was built.
            _ => false,
        }
    }

    /// The number of bits of a signed or unsigned integer type.
    pub const fn integer_bits(&self) -> Option<u32> {
        match self {
            Self::I8 | Self::U8 => Some(8),
            Self::I16 | Self::U16 => Some(16),
            Self::I32 | Self::U32 => Some(32),
            Self::I64 | Self::U64 => Some(64),
            _ => None,
        }
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plain = match self {
            Self::Bool => "bool",
            Self::I8 => "i8",
            Self::I16 => "i16",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::F32 => "f32",
            Self::F64 => "f64",
            Self::Char => "char",
            Self::String => "string",
            Self::Bytes => "bytes",
            Self::Enum(enum_type) => return write!(f, "enum {}", enum_type.name()),
            Self::Optional(inner) => return write!(f, "optional<{inner}>"),
            Self::List(inner) => return write!(f, "list<{inner}>"),
            Self::Record(schema) => return write!(f, "record {}", schema.name()),
        };
        f.write_str(plain)
    }
}

impl FieldType {
    /// The type's number in the container; FORMAT.md, "Types".
    pub const fn code(&self) -> u8 {
        match self {
            Self::Bool => 0x01,
            Self::I8 => 0x02,
            Self::I16 => 0x03,
            Self::I32 => 0x04,
            Self::I64 => 0x05,
            Self::U8 => 0x06,
            Self::U16 => 0x07,
            Self::U32 => 0x08,
            Self::U64 => 0x09,
            Self::F32 => 0x0a,
            Self::F64 => 0x0b,
            Self::Char => 0x0c,
            Self::String => 0x0d,
            Self::Bytes => 0x0e,
            Self::Enum(_) => 0x0f,
            Self::Optional(_) => 0x10,
            Self::List(_) => 0x11,
            Self::Record(_) => 0x12,
        }
    }
}
