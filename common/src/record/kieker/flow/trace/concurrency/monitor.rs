//! What happens at the monitors of objects.
//!
//! Kieker's package `kieker.common.record.flow.trace.concurrency.monitor`.

use crate::record::Record;

/// A monitor was entered.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.monitor.MonitorEntryEvent",
    rename_all = "camelCase"
)]
pub struct MonitorEntryEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The identity of the lock.
    #[record(default)]
    pub lock_id: i32,
}

/// A monitor was left.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.monitor.MonitorExitEvent",
    rename_all = "camelCase"
)]
pub struct MonitorExitEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The identity of the lock.
    #[record(default)]
    pub lock_id: i32,
}

/// All that wait for a monitor were woken.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyAllEvent",
    rename_all = "camelCase"
)]
pub struct MonitorNotifyAllEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The identity of the lock.
    #[record(default)]
    pub lock_id: i32,
}

/// One that waits for a monitor was woken.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyEvent",
    rename_all = "camelCase"
)]
pub struct MonitorNotifyEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The identity of the lock.
    #[record(default)]
    pub lock_id: i32,
}

/// A monitor is asked for.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.monitor.MonitorRequestEvent",
    rename_all = "camelCase"
)]
pub struct MonitorRequestEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The identity of the lock.
    #[record(default)]
    pub lock_id: i32,
}

/// A thread waits for a monitor.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.flow.trace.concurrency.monitor.MonitorWaitEvent",
    rename_all = "camelCase"
)]
pub struct MonitorWaitEvent {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The trace: a random number per process above, a counter in the lower 32 bits.
    #[record(default = -1)]
    pub trace_id: i64,
    /// The number of the event in its trace, from 0.
    #[record(default = -1)]
    pub order_index: i32,
    /// The identity of the lock.
    #[record(default)]
    pub lock_id: i32,
}
