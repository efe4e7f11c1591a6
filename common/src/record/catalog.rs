//! Schemas by name, for formats that name types without describing them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::kieker::KIEKER_TYPES;
use super::schema::Schema;

/// Former names of Kieker's record types and their present names, below `kieker.common.record`
/// (static block of `AbstractMonitoringRecord.java`).
const KIEKER_ALIASES: [(&str, &str); 7] = [
    (
        "kieker.tpmon.monitoringRecord.executions.KiekerExecutionRecord",
        "controlflow.OperationExecutionRecord",
    ),
    (
        "kieker.common.record.OperationExecutionRecord",
        "controlflow.OperationExecutionRecord",
    ),
    (
        "kieker.common.record.BranchingRecord",
        "controlflow.BranchingRecord",
    ),
    (
        "kieker.common.record.CPUUtilizationRecord",
        "system.CPUUtilizationRecord",
    ),
    (
        "kieker.common.record.MemSwapUsageRecord",
        "system.MemSwapUsageRecord",
    ),
    (
        "kieker.common.record.ResourceUtilizationRecord",
        "system.ResourceUtilizationRecord",
    ),
    (
        "kieker.common.record.flow.trace.Trace",
        "flow.trace.TraceMetadata",
    ),
];

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

    /// Creates a catalog with Kieker's 72 record types and their former names.
    pub fn kieker() -> Self {
        let mut catalog = Self::new();
        for schema in KIEKER_TYPES {
            catalog.register(Arc::clone(schema()));
        }
        for (alias, name) in KIEKER_ALIASES {
            catalog.register_alias(alias, format!("kieker.common.record.{name}"));
        }
        catalog
    }

    /// Returns the same catalog as [`Catalog::kieker`]; made once in the life of the program.
    pub fn shared_kieker() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Catalog>> = LazyLock::new(|| Arc::new(Catalog::kieker()));
        Arc::clone(&SHARED)
    }

    /// Adds a type. A type with the same name is replaced and returned.
    pub fn register(&mut self, schema: Arc<Schema>) -> Option<Arc<Schema>> {
        self.schemas.insert(schema.name().into(), schema)
    }

    /// Adds a former name of a type. A type with exactly this name takes precedence.
    fn register_alias(&mut self, alias: impl Into<Box<str>>, name: impl Into<Box<str>>) {
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
