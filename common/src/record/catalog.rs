//! Schemas by name, for formats that name types without describing them.

use std::collections::HashMap;
use std::sync::Arc;

use super::schema::Schema;

/// Schemas by type name. They are necessary to read Kieker's formats.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    schemas: HashMap<Box<str>, Arc<Schema>>,
    /// Former names and the present ones.
    aliases: HashMap<Box<str>, Box<str>>,
}

impl Catalog {
    /// A catalog without any type.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a type. A type with the same name is replaced and returned.
    pub fn register(&mut self, schema: Arc<Schema>) -> Option<Arc<Schema>> {
        self.schemas.insert(schema.name().into(), schema)
    }

    /// Adds a former name of a type. A type with exactly this name takes precedence.
    pub fn register_alias(&mut self, alias: impl Into<Box<str>>, name: impl Into<Box<str>>) {
        self.aliases.insert(alias.into(), name.into());
    }

    /// Returns the type with this present or former name.
    pub fn get(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas
            .get(name)
            .or_else(|| self.schemas.get(self.aliases.get(name)?))
    }

    /// The types, sorted by name.
    pub fn schemas(&self) -> Vec<&Arc<Schema>> {
        let mut schemas: Vec<_> = self.schemas.values().collect();
        schemas.sort_by_key(|schema| schema.name());
        schemas
    }
}

#[cfg(test)]
mod tests;
