//! Kieker's types by name, also by their former names.

use std::sync::{Arc, LazyLock};

use baler_common::record::Catalog;

use super::KIEKER_TYPES;

/// Former names of Kieker's record types and their present names, below `kieker.common.record`
/// (static block of `AbstractMonitoringRecord.java`).
const FORMER_NAMES: [(&str, &str); 6] = [
    (
        "OperationExecutionRecord",
        "controlflow.OperationExecutionRecord",
    ),
    ("BranchingRecord", "controlflow.BranchingRecord"),
    ("CPUUtilizationRecord", "system.CPUUtilizationRecord"),
    ("MemSwapUsageRecord", "system.MemSwapUsageRecord"),
    (
        "ResourceUtilizationRecord",
        "system.ResourceUtilizationRecord",
    ),
    ("flow.trace.Trace", "flow.trace.TraceMetadata"),
];

/// The name of executions before Kieker had its present name.
const TPMON_EXECUTION: &str = "kieker.tpmon.monitoringRecord.executions.KiekerExecutionRecord";

/// Creates a catalog with Kieker's 72 record types and their former names.
pub fn catalog() -> Catalog {
    let mut catalog = Catalog::new();
    for schema in KIEKER_TYPES {
        catalog.register(Arc::clone(schema()));
    }
    let present = |name| format!("kieker.common.record.{name}");
    for (former, name) in FORMER_NAMES {
        catalog.register_alias(present(former), present(name));
    }
    let execution = present("controlflow.OperationExecutionRecord");
    catalog.register_alias(TPMON_EXECUTION, execution);
    catalog
}

/// Returns the same catalog as [`catalog`]; made once in the life of the program.
pub fn shared_catalog() -> Arc<Catalog> {
    static SHARED: LazyLock<Arc<Catalog>> = LazyLock::new(|| Arc::new(catalog()));
    Arc::clone(&SHARED)
}

#[cfg(test)]
mod tests;
