//! Kieker's types by name, also by their former names.

use std::sync::{Arc, LazyLock};

use baler_common::record::Catalog;

use super::KIEKER_TYPES;

/// Former names of Kieker's record types and their present names, below `kieker.common.record`
/// (static block of `AbstractMonitoringRecord.java`).
const FORMER_NAMES: [(&str, &str); 7] = [
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

/// Creates a catalog with Kieker's 72 record types and their former names.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    for schema in KIEKER_TYPES {
        catalog.register(Arc::clone(schema()));
    }
    for (former, name) in FORMER_NAMES {
        catalog.register_alias(former, format!("kieker.common.record.{name}"));
    }
    catalog
}

/// Returns the same catalog as [`catalog`]; made once in the life of the program.
pub fn shared_catalog() -> Arc<Catalog> {
    static SHARED: LazyLock<Arc<Catalog>> = LazyLock::new(|| Arc::new(catalog()));
    Arc::clone(&SHARED)
}

#[cfg(test)]
mod tests;
