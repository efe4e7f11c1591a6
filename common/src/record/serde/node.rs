//! The results of tracing a type so far.

use std::sync::Arc;

use super::error::SerdeError;
use super::opaque;
use crate::record::{EnumType, Field, FieldType, MAX_FIELDS, Schema};

/// The number of sample values that are tried for a field whose type refuses the first ones.
pub(super) const ATTEMPTS: u8 = 5;

/// A type, as far as it is known.
#[derive(Debug)]
pub(super) enum Node {
    /// Not requested yet.
    Unknown,
    /// A type without types inside.
    Leaf(FieldType),
    /// A type that a schema cannot hold.
    Opaque,
    Option(Box<Self>),
    List(Box<Self>),
    Map(Box<Entry>),
    Tuple(Vec<Self>),
    Struct(Vec<Member>),
    Enum {
        name: &'static str,
        variants: &'static [&'static str],
        /// How many variants, from the first on, are known to have no data.
        plain: usize,
    },
}

/// The entries of a map.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) key: Node,
    pub(super) value: Node,
}

/// A field of a struct.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) struct_name: &'static str,
    pub(super) name: &'static str,
    pub(super) node: Node,
    /// The number of sample values that the field has refused.
    pub(super) attempts: u8,
    /// Whether it was checked, as far as possible, that the name is not an alias of another field.
    pub(super) settled: bool,
}

impl Member {
    pub(super) fn is_complete(&self) -> bool {
        self.settled && self.node.is_complete()
    }
}

impl Entry {
    pub(super) fn is_complete(&self) -> bool {
        self.key.is_complete() && self.value.is_complete()
    }

    /// Whether the keys are known and are not text.
    pub(super) fn has_other_key(&self) -> bool {
        !matches!(self.key, Node::Unknown | Node::Leaf(FieldType::String))
    }
}

impl Node {
    pub(super) fn is_complete(&self) -> bool {
        match self {
            Self::Unknown => false,
            Self::Leaf(_) | Self::Opaque => true,
            Self::Option(inner) | Self::List(inner) => inner.is_complete(),
            Self::Map(entry) => entry.is_complete(),
            Self::Tuple(items) => items.iter().all(Self::is_complete),
            Self::Struct(members) => members.iter().all(Member::is_complete),
            Self::Enum {
                variants, plain, ..
            } => *plain == variants.len(),
        }
    }

    /// Returns the type of the whole; a struct gets the user's name.
    pub(super) fn into_root(self, name: &str) -> Result<FieldType, SerdeError> {
        match self {
            Self::Struct(members) => record(name, members),
            other => other.into_type(),
        }
    }

    fn into_type(self) -> Result<FieldType, SerdeError> {
        Ok(match self {
            Self::Leaf(field_type) => field_type,
            Self::Unknown | Self::Opaque => opaque::field_type(),
            Self::Option(inner) => match inner.into_type()? {
                FieldType::Optional(_) => opaque::field_type(),
                // The content of an opaque field may also be an option: one of them suffices.
                FieldType::Record(schema) if opaque::is_opaque(&schema) => opaque::field_type(),
                inner => inner.optional(),
            },
            Self::List(inner) => inner.into_type()?.list(),
            Self::Map(entry) => entry.value.into_type()?.map(),
            Self::Tuple(items) => tuple(items)?,
            // Lists of values without bytes could claim any length.
            Self::Struct(members) if members.is_empty() => opaque::field_type(),
            Self::Struct(members) => {
                let name = members.first().map_or("", |member| member.struct_name);
                record(name, members)?
            }
            Self::Enum { name, variants, .. } => EnumType::new(name, variants.iter().copied())
                .map_or_else(
                    |_| opaque::field_type(),
                    |enum_type| FieldType::Enum(Arc::new(enum_type)),
                ),
        })
    }
}

fn record(name: &str, members: Vec<Member>) -> Result<FieldType, SerdeError> {
    let fields = members.into_iter().map(|member| {
        let field_type = member.node.into_type();
        Ok(Field::new(
            member.name,
            field_type.map_err(|error| error.inside(member.name))?,
        ))
    });
    let fields = fields.collect::<Result<Vec<_>, SerdeError>>()?;
    Ok(FieldType::Record(Arc::new(Schema::new(name, fields)?)))
}

/// A list if all items have the same type.
fn tuple(items: Vec<Node>) -> Result<FieldType, SerdeError> {
    if items.is_empty() || items.len() > MAX_FIELDS {
        return Ok(opaque::field_type());
    }
    let types = items
        .into_iter()
        .map(Node::into_type)
        .collect::<Result<Vec<_>, _>>()?;
    if let Some(first) = types.first() {
        if types.iter().all(|item| item == first) {
            return Ok(first.clone().list());
        }
    }
    let fields = types.into_iter().enumerate();
    let fields: Vec<_> = fields
        .map(|(index, item)| Field::new(index.to_string(), item))
        .collect();
    Ok(FieldType::Record(Arc::new(Schema::new("tuple", fields)?)))
}
