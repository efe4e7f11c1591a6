//! Why a schema cannot be.

use super::{MAX_DEPTH, MAX_FIELDS, MAX_NAME_BYTES, MAX_VARIANTS};

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
