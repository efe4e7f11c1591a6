//! A field of a record type, and what its number means.

use super::field_type::FieldType;

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
}

/// Equality of what travels: name, type and role. Aliases are the reader's.
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
