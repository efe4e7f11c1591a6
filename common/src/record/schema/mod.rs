//! What a record type looks like: its name and its named, typed fields.

mod enum_type;
mod error;
mod field;
mod field_type;
mod fingerprint;

use std::fmt;

pub use enum_type::EnumType;
pub use error::SchemaError;
pub use field::{Field, Role};
pub use field_type::FieldType;
pub use fingerprint::Fingerprint;

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
    pub(in crate::record) fn without_fields(name: &str) -> Self {
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
    /// Roles are part of it; aliases are not, because they concern the reader alone.
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

fn check_name(name: &str, what: &'static str) -> Result<(), SchemaError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(SchemaError::Name {
            what,
            bytes: name.len(),
        });
    }
    Ok(())
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
