//! How the type of a field nests, known at compile time.

/// How deep a field's type nests, so that `#[derive(Record)]` refuses at compile time what
/// [`super::Schema::new`] refuses when it is called.
///
/// A type that contains itself has no shape: the compiler says that it found a cycle.
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
            depth: self.depth.saturating_add(1),
            optional: true,
            nested_optional: self.optional || self.nested_optional,
        }
    }

    /// A list of the type.
    #[must_use]
    pub const fn list(self) -> Self {
        Self {
            depth: self.depth.saturating_add(1),
            optional: false,
            nested_optional: self.nested_optional,
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
            depth: deepest.saturating_add(1),
            optional: false,
            // A nested type was checked where it was derived.
            nested_optional: false,
        }
    }

    /// How many levels of optional, list and record are nested in the type, itself included; see
    /// [`super::FieldType::depth`].
    pub const fn depth(self) -> usize {
        self.depth
    }

    /// Whether there is an optional directly inside an optional.
    pub const fn has_nested_optional(self) -> bool {
        self.nested_optional
    }
}
