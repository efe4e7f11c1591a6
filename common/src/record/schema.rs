//! The schema of a record type: its name and its named, typed fields.

mod field;

use std::fmt;

pub use field::{EnumType, Field, FieldType, Role};

/// The deepest nesting of types (optional, list, record; a map counts twice), counted from a record's
/// fields.
pub const MAX_DEPTH: usize = 16;

/// The most fields of a record type.
pub const MAX_FIELDS: usize = 1_024;

/// The most variants of an enum type.
pub const MAX_VARIANTS: usize = 65_536;

/// The most bytes of UTF-8 in the name of a type, field or variant.
pub const MAX_NAME_BYTES: usize = 1_024;

/// The name and the fields of a record type.
///
/// A chunk carries the schemas of its types, so that a consumer that never saw a type still decodes
/// its records. Schemas are compared by content; [`Schema::fingerprint`] is a short key for caches.
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
    /// A [`SchemaError`] when a name is empty, too long or a duplicate, or when a limit of this
    /// module is exceeded.
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
        // A set: comparing all names with all others would make hostile schemas slow to refuse.
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
            if field.field_type.has_wrong_map() {
                return Err(SchemaError::WrongMap {
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

    /// Returns a type without fields; the name must be one that [`Schema::new`] would accept.
    pub(in crate::record) fn without_fields(name: &str) -> Self {
        Self {
            name: name.into(),
            fields: Box::default(),
            fingerprint: Fingerprint::of(name, &[]),
        }
    }

    /// The type of a map's entries. The schema around the map checks the type of the values.
    fn entry(value: FieldType) -> Self {
        let fields = [
            Field::new("key", FieldType::String),
            Field::new("value", value),
        ];
        Self {
            fingerprint: Fingerprint::of("entry", &fields),
            name: "entry".into(),
            fields: fields.into(),
        }
    }

    /// Returns the field with the value, if this is the type of a map's entries.
    fn entry_value(&self) -> Option<&Field> {
        match (&*self.name, &*self.fields) {
            ("entry", [key, value]) => {
                let is_key = &*key.name == "key" && key.field_type == FieldType::String;
                (is_key && &*value.name == "value").then_some(value)
            }
            _ => None,
        }
    }

    /// Returns the type with only the fields that `keep` accepts, in the same order.
    #[must_use]
    pub fn narrowed(&self, mut keep: impl FnMut(&Field) -> bool) -> Self {
        let fields = self.fields.iter().filter(|field| keep(field));
        let fields: Box<[Field]> = fields.cloned().collect();
        Self {
            name: self.name.clone(),
            fingerprint: Fingerprint::of(&self.name, &fields),
            fields,
        }
    }

    /// Returns the type's name, for example `kieker.common.record.misc.EmptyRecord`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The fields in wire order.
    pub fn fields(&self) -> &[Field] {
        &self.fields
    }

    /// Returns the position of the field with this name; aliases do not count.
    pub fn position(&self, field: &str) -> Option<usize> {
        self.fields
            .iter()
            .position(|candidate| &*candidate.name == field)
    }

    /// Returns a hash of the canonical form: name, field names and field types, in order.
    ///
    /// It includes roles, but not aliases, because they concern only the reader.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    fn depth(&self) -> usize {
        self.fields
            .iter()
            .map(|field| field.field_type.depth())
            .fold(0, usize::max)
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

fn check_name(name: &str, what: &'static str) -> Result<(), SchemaError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(SchemaError::Name {
            what,
            bytes: name.len(),
        });
    }
    Ok(())
}

/// Why a schema is not possible.
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
        /// The owner of the name.
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
        /// The number of its fields.
        found: usize,
    },
    /// No variant, or more than [`MAX_VARIANTS`].
    #[error("the enum {name} has {found} variants; it must have 1 to {MAX_VARIANTS}")]
    VariantCount {
        /// The enum type.
        name: Box<str>,
        /// The number of its variants.
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
    /// A map whose entries are not those of [`FieldType::map`].
    #[error("the type of {name}.{field} has a map whose entries are not a key and a value")]
    WrongMap {
        /// The record type.
        name: Box<str>,
        /// The field.
        field: Box<str>,
    },
}

/// A 128-bit FNV-1a hash of a schema's canonical form.
///
/// It is good enough to find a cached projection, but does not resist an attacker who wants a
/// collision: caches also compare the schemas.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Fingerprint(u128);

const FNV_OFFSET_BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
const FNV_PRIME: u128 = 0x0100_0000_0000_0000_0000_013b;

impl Fingerprint {
    pub(super) fn of(name: &str, fields: &[Field]) -> Self {
        let mut hash = Self(FNV_OFFSET_BASIS);
        hash.add_name(name);
        for field in fields {
            hash.add_name(&field.name);
            hash.add_byte(field.role.code());
            hash.add_type(&field.field_type);
        }
        hash
    }

    /// The hash as a number.
    pub const fn as_u128(self) -> u128 {
        self.0
    }

    fn add_byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u128::from(byte)).wrapping_mul(FNV_PRIME);
    }

    /// Names end in a byte that UTF-8 never contains, so `ab`, `c` differs from `a`, `bc`.
    fn add_name(&mut self, name: &str) {
        name.bytes().for_each(|byte| self.add_byte(byte));
        self.add_byte(0xff);
    }

    fn add_type(&mut self, field_type: &FieldType) {
        self.add_byte(field_type.code());
        match field_type {
            FieldType::Enum(enum_type) => {
                self.add_name(enum_type.name());
                enum_type
                    .variants()
                    .iter()
                    .for_each(|variant| self.add_name(variant));
                self.add_byte(0xfe);
            }
            FieldType::Optional(inner) | FieldType::List(inner) | FieldType::Map(inner) => {
                self.add_type(inner);
            }
            FieldType::Record(schema) => {
                schema
                    .fingerprint
                    .0
                    .to_le_bytes()
                    .into_iter()
                    .for_each(|byte| self.add_byte(byte));
            }
            FieldType::Bool
            | FieldType::I8
            | FieldType::I16
            | FieldType::I32
            | FieldType::I64
            | FieldType::U8
            | FieldType::U16
            | FieldType::U32
            | FieldType::U64
            | FieldType::F32
            | FieldType::F64
            | FieldType::Char
            | FieldType::String
            | FieldType::Bytes => {}
        }
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests;
