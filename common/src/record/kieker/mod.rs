//! Kieker's 72 record types, as its generated Java classes have them: names, fields, order.
//!
//! The modules are Kieker's packages below `kieker.common.record`, and [`opad`] for
//! `kieker.tools.opad.record`.
//! The defaults are those of Kieker's constructors; a reader takes them for fields that a writer
//! did not know.
//!
//! Every record of Kieker has a *logging timestamp* beside its fields.
//! It is the timestamp of the record's envelope, set by whoever emits the record; a field called
//! `timestamp` is data of its own.
//!
//! Source: the record definitions (IRL) of Kieker 2.0.4-SNAPSHOT, commit e48b35c1.

pub mod controlflow;
pub mod database;
pub mod flow;
pub mod jvm;
pub mod misc;
pub mod opad;
pub mod remotecontrol;
pub mod session;
pub mod system;

use std::sync::Arc;

use super::{Record, Schema};

use controlflow::{BranchingRecord, OperationExecutionRecord};
use database::{AfterDatabaseEvent, BeforeDatabaseEvent, DatabaseFailedEvent};
use flow::thread::{AfterFailedThreadBasedEvent, AfterThreadBasedEvent, BeforeThreadBasedEvent};
use flow::trace::concurrency::monitor::{
    MonitorEntryEvent, MonitorExitEvent, MonitorNotifyAllEvent, MonitorNotifyEvent,
    MonitorRequestEvent, MonitorWaitEvent,
};
use flow::trace::concurrency::{JoinEvent, SplitEvent};
use flow::trace::operation::constructor::object::{
    AfterConstructorFailedObjectEvent, AfterConstructorObjectEvent, BeforeConstructorObjectEvent,
    BeforeConstructorObjectInterfaceEvent, CallConstructorObjectEvent,
};
use flow::trace::operation::constructor::{
    AfterConstructorEvent, AfterConstructorFailedEvent, BeforeConstructorEvent,
    CallConstructorEvent,
};
use flow::trace::operation::object::{
    AfterOperationFailedObjectEvent, AfterOperationObjectEvent, BeforeOperationObjectEvent,
    BeforeOperationObjectInterfaceEvent, CallOperationObjectEvent,
    EntryLevelBeforeOperationObjectEvent,
};
use flow::trace::operation::{
    AfterOperationEvent, AfterOperationFailedEvent, BeforeOperationEvent, CallOperationEvent,
    EntryLevelBeforeOperationEvent,
};
use flow::trace::{
    ApplicationTraceMetadata, BeforeReceivedRemoteEvent, BeforeSentRemoteEvent, ConstructionEvent,
    TraceMetadata,
};
use jvm::{
    ClassLoadingRecord, CompilationRecord, GCRecord, MemoryRecord, ThreadsStatusRecord,
    UptimeRecord,
};
use misc::{
    EmptyRecord, HostApplicationMetaData, KiekerMetadataRecord, OperationCallEvent, ThreadMetaData,
    TimestampRecord,
};
use opad::{
    AggregationWindow, ExtendedStorableDetectionResult, NamedDoubleRecord, NamedTSPoint,
    StorableDetectionResult,
};
use remotecontrol::{
    ActivationEvent, ActivationParameterEvent, AddParameterValueEvent, DeactivationEvent,
    RemoveParameterValueEvent, UpdateParameterEvent,
};
use session::{SessionEndEvent, SessionStartEvent};
use system::{
    CPUUtilizationRecord, DiskUsageRecord, LoadAverageRecord, MemSwapUsageRecord,
    NetworkUtilizationRecord, ResourceUtilizationRecord,
};

/// The schemas of Kieker's record types, sorted by class name.
///
/// The native container has them by number: the type at position n of this list is number n + 1.
/// A type that Kieker adds later goes to the end, lest numbers change.
pub const KIEKER_TYPES: [fn() -> &'static Arc<Schema>; 72] = [
    BranchingRecord::schema,
    OperationExecutionRecord::schema,
    AfterDatabaseEvent::schema,
    BeforeDatabaseEvent::schema,
    DatabaseFailedEvent::schema,
    AfterFailedThreadBasedEvent::schema,
    AfterThreadBasedEvent::schema,
    BeforeThreadBasedEvent::schema,
    ApplicationTraceMetadata::schema,
    BeforeReceivedRemoteEvent::schema,
    BeforeSentRemoteEvent::schema,
    ConstructionEvent::schema,
    TraceMetadata::schema,
    JoinEvent::schema,
    SplitEvent::schema,
    MonitorEntryEvent::schema,
    MonitorExitEvent::schema,
    MonitorNotifyAllEvent::schema,
    MonitorNotifyEvent::schema,
    MonitorRequestEvent::schema,
    MonitorWaitEvent::schema,
    AfterOperationEvent::schema,
    AfterOperationFailedEvent::schema,
    BeforeOperationEvent::schema,
    CallOperationEvent::schema,
    EntryLevelBeforeOperationEvent::schema,
    AfterConstructorEvent::schema,
    AfterConstructorFailedEvent::schema,
    BeforeConstructorEvent::schema,
    CallConstructorEvent::schema,
    AfterConstructorFailedObjectEvent::schema,
    AfterConstructorObjectEvent::schema,
    BeforeConstructorObjectEvent::schema,
    BeforeConstructorObjectInterfaceEvent::schema,
    CallConstructorObjectEvent::schema,
    AfterOperationFailedObjectEvent::schema,
    AfterOperationObjectEvent::schema,
    BeforeOperationObjectEvent::schema,
    BeforeOperationObjectInterfaceEvent::schema,
    CallOperationObjectEvent::schema,
    EntryLevelBeforeOperationObjectEvent::schema,
    ClassLoadingRecord::schema,
    CompilationRecord::schema,
    GCRecord::schema,
    MemoryRecord::schema,
    ThreadsStatusRecord::schema,
    UptimeRecord::schema,
    EmptyRecord::schema,
    HostApplicationMetaData::schema,
    KiekerMetadataRecord::schema,
    OperationCallEvent::schema,
    ThreadMetaData::schema,
    TimestampRecord::schema,
    ActivationEvent::schema,
    ActivationParameterEvent::schema,
    AddParameterValueEvent::schema,
    DeactivationEvent::schema,
    RemoveParameterValueEvent::schema,
    UpdateParameterEvent::schema,
    SessionEndEvent::schema,
    SessionStartEvent::schema,
    CPUUtilizationRecord::schema,
    DiskUsageRecord::schema,
    LoadAverageRecord::schema,
    MemSwapUsageRecord::schema,
    NetworkUtilizationRecord::schema,
    ResourceUtilizationRecord::schema,
    AggregationWindow::schema,
    ExtendedStorableDetectionResult::schema,
    NamedDoubleRecord::schema,
    NamedTSPoint::schema,
    StorableDetectionResult::schema,
];
