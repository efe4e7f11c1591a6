//! Metadata, and records of general use.
//!
//! Kieker's package `kieker.common.record.misc`.

use crate::record::Record;

/// Nothing but a logging timestamp.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "kieker.common.record.misc.EmptyRecord")]
pub struct EmptyRecord {}

/// Which application runs on which host.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.misc.HostApplicationMetaData",
    rename_all = "camelCase"
)]
pub struct HostApplicationMetaData {
    /// The system.
    #[record(default)]
    pub system_name: String,
    /// The address of the host.
    #[record(default)]
    pub ip_address: String,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The application.
    #[record(default)]
    pub application_name: String,
}

/// Who monitors; sent each time monitoring is enabled.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.misc.KiekerMetadataRecord",
    rename_all = "camelCase"
)]
pub struct KiekerMetadataRecord {
    /// The version of the monitoring software.
    #[record(default)]
    pub version: String,
    /// The controller's name.
    #[record(default = "<no-controller-name>".into())]
    pub controller_name: String,
    /// The host.
    #[record(default = "<no-hostname>".into())]
    pub hostname: String,
    /// The number of the experiment.
    #[record(default)]
    pub experiment_id: i32,
    /// Whether the monitoring software runs in its debug mode.
    #[record(default)]
    pub debug_mode: bool,
    /// What is to be added to timestamps, in `timeUnit`; 0 means since the Unix epoch.
    #[record(default)]
    pub time_offset: i64,
    /// The unit of timestamps, a constant's name of Java's `TimeUnit`.
    #[record(default = "NANOSECONDS".into())]
    pub time_unit: String,
    /// Always 0 since Kieker 1.13.
    #[record(default)]
    pub number_of_records: i64,
}

/// One component called an operation of another.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.misc.OperationCallEvent",
    rename_all = "camelCase"
)]
pub struct OperationCallEvent {
    /// The calling component.
    #[record(default)]
    pub source_component: String,
    /// The calling operation.
    #[record(default)]
    pub source_operation: String,
    /// The called component.
    #[record(default)]
    pub target_component: String,
    /// The called operation.
    #[record(default)]
    pub target_operation: String,
}

/// On which host a thread runs.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.misc.ThreadMetaData",
    rename_all = "camelCase"
)]
pub struct ThreadMetaData {
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The thread.
    pub thread_id: i64,
}

/// A point in time.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.misc.TimestampRecord",
    rename_all = "camelCase"
)]
pub struct TimestampRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
}
