//! A field of a record type, its type, and the role of its number.

use std::fmt;
use std::sync::Arc;

use super::{MAX_VARIANTS, Schema, SchemaError, check_name};

/// One named, typed field of a [`Schema`](super::Schema).
#[derive(Debug, Clone)]
pub struct Field {
    pub(super) name: Box<str>,
    pub(super) field_type: FieldType,
    pub(super) role: Role,
    aliases: Vec<Box<str>>,
}

impl Field {
    /// A field without a role or aliases.
    pub fn new(name: impl Into<Box<str>>, field_type: FieldType) -> Self {
        Self {
            name: name.into(),
            field_type,
            role: Role::Plain,
            aliases: Vec::new(),
        }
    }

    /// Sets the role of the field's number.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Adds a former name. A reader takes the value from a field with that name if there is none
    /// with the present name.
    #[must_use]
    pub fn with_alias(mut self, alias: impl Into<Box<str>>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// The field's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The field's type.
    pub fn field_type(&self) -> &FieldType {
        &self.field_type
    }

    /// Returns the role of the field's number.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Former names, tried in order.
    pub fn aliases(&self) -> &[Box<str>] {
        &self.aliases
    }
}

/// Compares name, type and role, which are in a chunk. Aliases concern only the reader.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.field_type == other.field_type && self.role == other.role
    }
}

/// The meaning of a field's number, so that tools can print it and encoders can predict it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// Nothing special.
    #[default]
    Plain,
    /// A point in time in nanoseconds since the Unix epoch.
    UnixNanos,
    /// A span of time in nanoseconds.
    Nanos,
}

impl Role {
    /// The role's number in the container.
    pub const fn code(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::UnixNanos => 1,
            Self::Nanos => 2,
        }
    }

    /// The role with this number in the container.
    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Plain),
            1 => Some(Self::UnixNanos),
            2 => Some(Self::Nanos),
            _ => None,
        }
    }
}

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
    /// UTF-8 text, stored once a chunk in its string table.
    String,
    /// Bytes without a meaning for Baler.
    Bytes,
    /// One of the named variants of an enum, without data.
    Enum(Arc<EnumType>),
    /// A value or nothing.
    Optional(Box<Self>),
    /// Any number of values of one type.
    List(Box<Self>),
    /// A record inside the record.
    Record(Arc<Schema>),
    /// Values by strings, in the writer's order. Inside is the type of the entries, which
    /// [`FieldType::map`] makes.
    Map(Box<Self>),
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

    /// A map from strings to values of this type.
    ///
    /// Its entries are stored like a list of records.
    #[must_use]
    pub fn map(self) -> Self {
        let entry = Schema::entry(self);
        Self::Map(Box::new(Self::Record(Arc::new(entry))))
    }

    /// The type of a map's values.
    pub fn map_value(&self) -> Option<&Self> {
        let Self::Map(entry) = self else { return None };
        match &**entry {
            Self::Record(entry) => Some(&entry.entry_value()?.field_type),
            _ => None,
        }
    }

    /// Returns how many levels of optional, list and record are nested in it, including itself. A
    /// map is two levels: a list of records.
    pub fn depth(&self) -> usize {
        match self {
            Self::Optional(inner) | Self::List(inner) | Self::Map(inner) => 1 + inner.depth(),
            Self::Record(schema) => 1 + schema.depth(),
            _ => 1,
        }
    }

    /// An absent optional directly inside an optional would look like an absent outer one.
    pub(super) fn has_nested_optional(&self) -> bool {
        match self {
            Self::Optional(inner) => {
                matches!(**inner, Self::Optional(_)) || inner.has_nested_optional()
            }
            Self::List(inner) => inner.has_nested_optional(),
            // Nothing has checked the type of the entries yet.
            Self::Map(_) => self.map_value().is_some_and(Self::has_nested_optional),
            // A nested schema was checked when it was built.
            _ => false,
        }
    }

    /// Whether there is a map in it that [`FieldType::map`] did not make.
    pub(super) fn has_wrong_map(&self) -> bool {
        match self {
            Self::Optional(inner) | Self::List(inner) => inner.has_wrong_map(),
            Self::Map(_) => self.map_value().is_none_or(Self::has_wrong_map),
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

/// The types without another type inside: each with its number in the container and its name.
static PLAIN: [(FieldType, u8, &str); 14] = [
    (FieldType::Bool, 0x01, "bool"),
    (FieldType::I8, 0x02, "i8"),
    (FieldType::I16, 0x03, "i16"),
    (FieldType::I32, 0x04, "i32"),
    (FieldType::I64, 0x05, "i64"),
    (FieldType::U8, 0x06, "u8"),
    (FieldType::U16, 0x07, "u16"),
    (FieldType::U32, 0x08, "u32"),
    (FieldType::U64, 0x09, "u64"),
    (FieldType::F32, 0x0a, "f32"),
    (FieldType::F64, 0x0b, "f64"),
    (FieldType::Char, 0x0c, "char"),
    (FieldType::String, 0x0d, "string"),
    (FieldType::Bytes, 0x0e, "bytes"),
];

impl FieldType {
    /// The type's number in the container; FORMAT.md, "Types".
    pub fn code(&self) -> u8 {
        match self {
            Self::Enum(_) => 0x0f,
            Self::Optional(_) => 0x10,
            Self::List(_) => 0x11,
            Self::Record(_) => 0x12,
            Self::Map(_) => 0x13,
            plain => PLAIN
                .iter()
                .find(|(known, ..)| known == plain)
                .map_or(0, |(_, code, _)| *code),
        }
    }

    /// Returns the type with this number, if it has no other type inside.
    pub(crate) fn plain(code: u8) -> Option<&'static Self> {
        let mut known = PLAIN.iter();
        let (plain, ..) = known.find(|(_, known, _)| *known == code)?;
        Some(plain)
    }
}

impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Enum(enum_type) => write!(f, "enum {}", enum_type.name()),
            Self::Optional(inner) => write!(f, "optional<{inner}>"),
            Self::List(inner) => write!(f, "list<{inner}>"),
            Self::Record(schema) => write!(f, "record {}", schema.name()),
            Self::Map(entry) => match self.map_value() {
                Some(value) => write!(f, "map<{value}>"),
                None => write!(f, "map of {entry}"),
            },
            plain => {
                let known = PLAIN.iter().find(|(known, ..)| known == plain);
                f.write_str(known.map_or("", |(.., name)| name))
            }
        }
    }
}

/// An enum type: named variants without data, numbered from 0 in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumType {
    name: Box<str>,
    variants: Box<[Box<str>]>,
}

impl EnumType {
    /// Checks and builds an enum type.
    ///
    /// # Errors
    ///
    /// A [`SchemaError`] when there is no variant, a name is empty, too long or a duplicate, or
    /// there are more than [`MAX_VARIANTS`].
    pub fn new<S: Into<Box<str>>>(
        name: impl Into<Box<str>>,
        variants: impl IntoIterator<Item = S>,
    ) -> Result<Self, SchemaError> {
        let name = name.into();
        let variants: Box<[Box<str>]> = variants.into_iter().map(Into::into).collect();
        check_name(&name, "an enum type")?;
        if variants.is_empty() || variants.len() > MAX_VARIANTS {
            return Err(SchemaError::VariantCount {
                name,
                found: variants.len(),
            });
        }
        let mut seen = std::collections::HashSet::with_capacity(variants.len());
        for variant in &variants {
            check_name(variant, "a variant")?;
            if !seen.insert(variant) {
                return Err(SchemaError::VariantTwice {
                    name,
                    variant: variant.clone(),
                });
            }
        }
        Ok(Self { name, variants })
    }

    /// Builds an enum type from names that [`EnumType::new`] would accept.
    pub(in crate::record) fn checked(name: &str, variants: &[&str]) -> Self {
        Self {
            name: name.into(),
            variants: variants.iter().map(|variant| (*variant).into()).collect(),
        }
    }

    /// The enum's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The variants' names in the order of their numbers.
    pub fn variants(&self) -> &[Box<str>] {
        &self.variants
    }

    /// The name of the variant with this number.
    pub fn variant(&self, number: u32) -> Option<&str> {
        self.variants
            .get(usize::try_from(number).ok()?)
            .map(AsRef::as_ref)
    }
}
