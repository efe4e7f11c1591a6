//! What a record type looks like: its name and its named, typed fields.

use std::fmt;
use std::sync::Arc;

use super::value::Value;

/// How deep types may nest (optional, list, record), counted from a record's fields.
pub const MAX_DEPTH: usize = 16;

/// How many fields a record type may have.
pub const MAX_FIELDS: usize = 1_024;

/// How many variants an enum type may have.
pub const MAX_VARIANTS: usize = 65_536;

/// How many bytes of UTF-8 a type, field or variant name may have.
pub const MAX_NAME_BYTES: usize = 1_024;

/// The name and the fields of a record type.
///
/// A chunk carries the schemas of the types in it, so that a consumer that never saw a type still
/// decodes its records.
/// Schemas are compared by content; [`Schema::fingerprint`] is a short stand-in for caches.
#[derive(Clone, PartialEq)]
pub struct Schema {
    name: Box<str>,
    fields: Box<[Field]>,
    fingerprint: Fingerprint,
}

impl Schema {
    /// Checks and builds a schema.
    ///
    /// # Errors
    ///
    /// A [`SchemaError`] when a name is empty, too long or given twice, or when a limit of this
    /// module is passed.
    pub fn new(
        name: impl Into<Box<str>>,
        fields: impl Into<Vec<Field>>,
    ) -> Result<Self, SchemaError> {
        let name = name.into();
        let fields = fields.into().into_boxed_slice();
        check_name(&name, "the record type")?;
        if fields.len() > MAX_FIELDS {
            return Err(SchemaError::TooManyFields {
                name,
                found: fields.len(),
            });
        }
        // A set, because comparing all with all would make hostile schemas slow to refuse.
        let mut seen = std::collections::HashSet::with_capacity(fields.len());
        for field in &fields {
            check_name(&field.name, "a field")?;
            if !seen.insert(&field.name) {
                return Err(SchemaError::FieldTwice {
                    name,
                    field: field.name.clone(),
                });
            }
            if field.field_type.has_nested_optional() {
                return Err(SchemaError::NestedOptional {
                    name,
                    field: field.name.clone(),
                });
            }
            if field.field_type.depth() > MAX_DEPTH {
                return Err(SchemaError::TooDeep {
                    name,
                    field: field.name.clone(),
                });
            }
        }
        let fingerprint = Fingerprint::of(&name, &fields);
        Ok(Self {
            name,
            fields,
            fingerprint,
        })
    }

    /// A type without fields; the name is one that [`Schema::new`] would take.
    pub(super) fn without_fields(name: &str) -> Self {
        Self {
            name: name.into(),
            fields: Box::default(),
            fingerprint: Fingerprint::of(name, &[]),
        }
    }

    /// The type's name, for instance `kieker.common.record.misc.EmptyRecord`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields in wire order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// The position of the field with this name, aliases not considered.
    pub fn position(&self, field: &str) -> Option<usize> {
        self.fields
            .iter()
            .position(|candidate| &*candidate.name == field)
    }

    /// A hash of the canonical form: name, field names and field types, in order.
    ///
    /// Roles are part of it; aliases and defaults are not, because they concern the reader alone.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn depth(&self) -> usize {
        self.fields
            .iter()
            .map(|field| field.field_type.depth())
            .max()
            .unwrap_or(0)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {{", self.name)?;
        for (index, field) in self.fields.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma} {}: {}", field.name, field.field_type)?;
        }
        write!(f, " }}")
    }
}

/// One named, typed field of a [`Schema`].
#[derive(Debug, Clone)]
pub struct Field {
    name: Box<str>,
    field_type: FieldType,
    role: Role,
    aliases: Vec<Box<str>>,
    default: Option<Value>,
}

impl Field {
    /// A field without a role, aliases or a default.
    pub fn new(name: impl Into<Box<str>>, field_type: FieldType) -> Self {
        Self {
            name: name.into(),
            field_type,
            role: Role::Plain,
            aliases: Vec::new(),
            default: None,
        }
    }

    /// Says what the field's number means.
    #[must_use]
    pub fn with_role(mut self, role: Role) -> Self {
        self.role = role;
        self
    }

    /// Adds a former name: a reader takes the value from a field of that name when there is none
    /// of the present one.
    #[must_use]
    pub fn with_alias(mut self, alias: impl Into<Box<str>>) -> Self {
        self.aliases.push(alias.into());
        self
    }

    /// Sets the value that a reader takes when the writer did not know the field.
    #[must_use]
    pub fn with_default(mut self, default: Value) -> Self {
        self.default = Some(default);
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

    /// What the field's number means.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Former names, tried in order.
    pub fn aliases(&self) -> &[Box<str>] {
        &self.aliases
    }

    /// The value a reader takes when the writer did not know the field.
    pub fn default_value(&self) -> Option<&Value> {
        self.default.as_ref()
    }
}

/// Equality of what travels: name, type and role. Aliases and defaults are the reader's.
impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.field_type == other.field_type && self.role == other.role
    }
}

/// What the number in a field means, so that tools can print it and encoders can predict it.
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
    fn has_nested_optional(&self) -> bool {
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
    /// A [`SchemaError`] when there is no variant, a name is empty, too long or given twice, or
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

    /// Builds an enum type from names that [`EnumType::new`] would take.
    pub(super) fn checked(name: &str, variants: &[&str]) -> Self {
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

/// A 128-bit FNV-1a hash of a schema's canonical form.
///
/// It is good enough to find a cached projection, not to resist somebody who wants a collision:
/// caches compare the schemas too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

impl Fingerprint {
    fn of(name: &str, fields: &[Field]) -> Self {
        let mut hash = Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        hash.name(name);
        for field in fields {
            hash.name(&field.name);
            hash.byte(field.role.code());
            hash.field_type(&field.field_type);
        }
        hash
    }

    /// The hash as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
    }

    /// Names end in a byte that UTF-8 never contains, so that `ab`, `c` differs from `a`, `bc`.
    fn name(&mut self, name: &str) {
        name.bytes().for_each(|byte| self.byte(byte));
        self.byte(0xff);
    }

    fn field_type(&mut self, field_type: &FieldType) {
        self.byte(field_type.code());
        match field_type {
            FieldType::Enum(enum_type) => {
                self.name(enum_type.name());
                enum_type
                    .variants()
                    .iter()
                    .for_each(|variant| self.name(variant));
                self.byte(0xfe);
            }
            FieldType::Optional(inner) | FieldType::List(inner) => self.field_type(inner),
            FieldType::Record(schema) => {
                schema
                    .fingerprint
                    .0
                    .to_le_bytes()
                    .into_iter()
                    .for_each(|byte| self.byte(byte));
            }
            _ => {}
        }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
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

fn check_name(name: &str, what: &'static str) -> Result<(), SchemaError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(SchemaError::Name {
            what,
            bytes: name.len(),
        });
    }
    Ok(())
}

/// Why a schema cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaError {
    /// Two fields have the same name.
    #[error("the record type {name} has the field {field} twice")]
    FieldTwice {
        /// The record type.
        name: Box<str>,
        /// The field.
        field: Box<str>,
    },
    /// A name is empty or above [`MAX_NAME_BYTES`].
    #[error("the name of {what} has {bytes} bytes; it must have 1 to {MAX_NAME_BYTES}")]
    Name {
        /// Whose name it is.
        what: &'static str,
        /// Its length.
        bytes: usize,
    },
    /// An optional directly inside an optional.
    #[error("the type of {name}.{field} has an optional directly inside an optional")]
    NestedOptional {
        /// The record type.
        name: Box<str>,
        /// The field.
        field: Box<str>,
    },
    /// A field's type nests deeper than [`MAX_DEPTH`].
    #[error("the type of {name}.{field} nests deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// The record type.
        name: Box<str>,
        /// The field.
        field: Box<str>,
    },
    /// More than [`MAX_FIELDS`] fields.
    #[error("the record type {name} has {found} fields; at most {MAX_FIELDS} are allowed")]
    TooManyFields {
        /// The record type.
        name: Box<str>,
        /// How many it has.
        found: usize,
    },
    /// No variant, or more than [`MAX_VARIANTS`].
    #[error("the enum {name} has {found} variants; it must have 1 to {MAX_VARIANTS}")]
    VariantCount {
        /// The enum type.
        name: Box<str>,
        /// How many it has.
        found: usize,
    },
    /// Two variants have the same name.
    #[error("the enum {name} has the variant {variant} twice")]
    VariantTwice {
        /// The enum type.
        name: Box<str>,
        /// The variant.
        variant: Box<str>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(name: &str, fields: &[(&str, FieldType)]) -> Schema {
        let fields: Vec<Field> = fields
            .iter()
            .map(|(name, kind)| Field::new(*name, kind.clone()))
            .collect();
        Schema::new(name, fields).unwrap()
    }

    #[test]
    fn fingerprints_tell_names_types_and_order_apart() {
        let base = schema("t", &[("ab", FieldType::I32), ("c", FieldType::I32)]);
        let same = schema("t", &[("ab", FieldType::I32), ("c", FieldType::I32)]);
        assert_eq!(base.fingerprint(), same.fingerprint());
        for other in [
            schema("t", &[("a", FieldType::I32), ("bc", FieldType::I32)]),
            schema("t", &[("c", FieldType::I32), ("ab", FieldType::I32)]),
            schema("t", &[("ab", FieldType::U32), ("c", FieldType::I32)]),
            schema("u", &[("ab", FieldType::I32), ("c", FieldType::I32)]),
        ] {
            assert_ne!(base.fingerprint(), other.fingerprint(), "{other:?}");
        }
    }

    #[test]
    fn a_field_given_twice_is_named() {
        let fields = vec![
            Field::new("a", FieldType::Bool),
            Field::new("a", FieldType::I8),
        ];
        assert_eq!(
            Schema::new("t", fields).unwrap_err().to_string(),
            "the record type t has the field a twice"
        );
    }

    #[test]
    fn nesting_is_bounded() {
        let mut deep = FieldType::Bool;
        for _ in 1..MAX_DEPTH {
            deep = deep.list();
        }
        assert!(Schema::new("t", vec![Field::new("a", deep.clone())]).is_ok());
        let error = Schema::new("t", vec![Field::new("a", deep.list())]).unwrap_err();
        assert!(matches!(error, SchemaError::TooDeep { .. }));
    }
}
