//! Schemas by name, for formats that name types without describing them.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::kieker::KIEKER_TYPES;
use super::schema::Schema;

/// Former names of Kieker's record types and what they are called now, below
/// `kieker.common.record` (static block of `AbstractMonitoringRecord.java`).
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

/// Schemas by type name: what Kieker's formats need to be understood.
#[derive(Debug, Clone, Default)]
pub struct Catalog {
    schemas: HashMap<Box<str>, Arc<Schema>>,
    /// Former names and what they are called now.
    aliases: HashMap<Box<str>, Box<str>>,
}

impl Catalog {
    /// A catalog without any type.
    pub fn new() -> Self {
        Self::default()
    }

    /// A catalog with Kieker's 72 record types, which it knows by their former names too.
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

    /// The same catalog as [`Catalog::kieker`], made once in the life of the program.
    pub fn shared_kieker() -> Arc<Self> {
        static SHARED: LazyLock<Arc<Catalog>> = LazyLock::new(|| Arc::new(Catalog::kieker()));
        Arc::clone(&SHARED)
    }

    /// Adds a type; the one of the same name, if any, is replaced and returned.
    pub fn register(&mut self, schema: Arc<Schema>) -> Option<Arc<Schema>> {
        self.schemas.insert(schema.name().into(), schema)
    }

    /// Adds a former name of a type; a type of that very name goes before it.
    fn register_alias(&mut self, alias: impl Into<Box<str>>, name: impl Into<Box<str>>) {
        self.aliases.insert(alias.into(), name.into());
    }

    /// The type with this name, or that was called so formerly.
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
