//! Record types that a chunk names by number instead of describing them: Kieker's.
//!
//! FORMAT.md, "Well-known types", holds the same table.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use crate::container::num::to_usize;
use crate::record::{Catalog, Fingerprint, Schema};

/// Kieker's record types, sorted by name; the first has the number 1.
///
/// The numbers are part of the format: types are only ever appended.
const NAMES: [&str; 72] = [
    "kieker.common.record.controlflow.BranchingRecord",
    "kieker.common.record.controlflow.OperationExecutionRecord",
    "kieker.common.record.database.AfterDatabaseEvent",
    "kieker.common.record.database.BeforeDatabaseEvent",
    "kieker.common.record.database.DatabaseFailedEvent",
    "kieker.common.record.flow.thread.AfterFailedThreadBasedEvent",
    "kieker.common.record.flow.thread.AfterThreadBasedEvent",
    "kieker.common.record.flow.thread.BeforeThreadBasedEvent",
    "kieker.common.record.flow.trace.ApplicationTraceMetadata",
    "kieker.common.record.flow.trace.BeforeReceivedRemoteEvent",
    "kieker.common.record.flow.trace.BeforeSentRemoteEvent",
    "kieker.common.record.flow.trace.ConstructionEvent",
    "kieker.common.record.flow.trace.TraceMetadata",
    "kieker.common.record.flow.trace.concurrency.JoinEvent",
    "kieker.common.record.flow.trace.concurrency.SplitEvent",
    "kieker.common.record.flow.trace.concurrency.monitor.MonitorEntryEvent",
    "kieker.common.record.flow.trace.concurrency.monitor.MonitorExitEvent",
    "kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyAllEvent",
    "kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyEvent",
    "kieker.common.record.flow.trace.concurrency.monitor.MonitorRequestEvent",
    "kieker.common.record.flow.trace.concurrency.monitor.MonitorWaitEvent",
    "kieker.common.record.flow.trace.operation.AfterOperationEvent",
    "kieker.common.record.flow.trace.operation.AfterOperationFailedEvent",
    "kieker.common.record.flow.trace.operation.BeforeOperationEvent",
    "kieker.common.record.flow.trace.operation.CallOperationEvent",
    "kieker.common.record.flow.trace.operation.EntryLevelBeforeOperationEvent",
    "kieker.common.record.flow.trace.operation.constructor.AfterConstructorEvent",
    "kieker.common.record.flow.trace.operation.constructor.AfterConstructorFailedEvent",
    "kieker.common.record.flow.trace.operation.constructor.BeforeConstructorEvent",
    "kieker.common.record.flow.trace.operation.constructor.CallConstructorEvent",
    "kieker.common.record.flow.trace.operation.constructor.object.AfterConstructorFailedObjectEvent",
    "kieker.common.record.flow.trace.operation.constructor.object.AfterConstructorObjectEvent",
    "kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectEvent",
    "kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectInterfaceEvent",
    "kieker.common.record.flow.trace.operation.constructor.object.CallConstructorObjectEvent",
    "kieker.common.record.flow.trace.operation.object.AfterOperationFailedObjectEvent",
    "kieker.common.record.flow.trace.operation.object.AfterOperationObjectEvent",
    "kieker.common.record.flow.trace.operation.object.BeforeOperationObjectEvent",
    "kieker.common.record.flow.trace.operation.object.BeforeOperationObjectInterfaceEvent",
    "kieker.common.record.flow.trace.operation.object.CallOperationObjectEvent",
    "kieker.common.record.flow.trace.operation.object.EntryLevelBeforeOperationObjectEvent",
    "kieker.common.record.jvm.ClassLoadingRecord",
    "kieker.common.record.jvm.CompilationRecord",
    "kieker.common.record.jvm.GCRecord",
    "kieker.common.record.jvm.MemoryRecord",
    "kieker.common.record.jvm.ThreadsStatusRecord",
    "kieker.common.record.jvm.UptimeRecord",
    "kieker.common.record.misc.EmptyRecord",
    "kieker.common.record.misc.HostApplicationMetaData",
    "kieker.common.record.misc.KiekerMetadataRecord",
    "kieker.common.record.misc.OperationCallEvent",
    "kieker.common.record.misc.ThreadMetaData",
    "kieker.common.record.misc.TimestampRecord",
    "kieker.common.record.remotecontrol.ActivationEvent",
    "kieker.common.record.remotecontrol.ActivationParameterEvent",
    "kieker.common.record.remotecontrol.AddParameterValueEvent",
    "kieker.common.record.remotecontrol.DeactivationEvent",
    "kieker.common.record.remotecontrol.RemoveParameterValueEvent",
    "kieker.common.record.remotecontrol.UpdateParameterEvent",
    "kieker.common.record.session.SessionEndEvent",
    "kieker.common.record.session.SessionStartEvent",
    "kieker.common.record.system.CPUUtilizationRecord",
    "kieker.common.record.system.DiskUsageRecord",
    "kieker.common.record.system.LoadAverageRecord",
    "kieker.common.record.system.MemSwapUsageRecord",
    "kieker.common.record.system.NetworkUtilizationRecord",
    "kieker.common.record.system.ResourceUtilizationRecord",
    "kieker.tools.opad.record.AggregationWindow",
    "kieker.tools.opad.record.ExtendedStorableDetectionResult",
    "kieker.tools.opad.record.NamedDoubleRecord",
    "kieker.tools.opad.record.NamedTSPoint",
    "kieker.tools.opad.record.StorableDetectionResult",
];

struct WellKnown {
    schemas: Vec<Option<Arc<Schema>>>,
    numbers: HashMap<Fingerprint, u64>,
}

static WELL_KNOWN: LazyLock<WellKnown> = LazyLock::new(|| {
    let catalog = Catalog::kieker();
    let schemas: Vec<_> = NAMES.map(|name| catalog.get(name).cloned()).into();
    let numbers = (1..)
        .zip(&schemas)
        .filter_map(|(number, schema)| Some((schema.as_ref()?.fingerprint(), number)))
        .collect();
    WellKnown { schemas, numbers }
});

/// The type with this number.
pub(super) fn schema(number: u64) -> Option<&'static Arc<Schema>> {
    let index = to_usize(number.checked_sub(1)?);
    WELL_KNOWN.schemas.get(index)?.as_ref()
}

/// The number of a type, if it is equal to a well-known one in name, fields and roles.
pub(super) fn number(of: &Schema) -> Option<u64> {
    let number = *WELL_KNOWN.numbers.get(&of.fingerprint())?;
    schema(number)
        .filter(|schema| ***schema == *of)
        .map(|_| number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::container::num::to_u64;

    #[test]
    fn every_number_finds_its_schema_and_back() {
        assert!(NAMES.is_sorted());
        for (number, name) in (1..).zip(NAMES) {
            let schema = schema(number).unwrap();
            assert_eq!(schema.name(), name);
            assert_eq!(super::number(schema), Some(number));
        }
        assert_eq!(schema(0), None);
        assert_eq!(schema(to_u64(NAMES.len()) + 1), None);
    }
}
