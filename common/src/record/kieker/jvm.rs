//! The state of Java virtual machines.
//!
//! Kieker's package `kieker.common.record.jvm`.

use crate::record::Record;

/// How many classes a Java virtual machine has loaded.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.jvm.ClassLoadingRecord",
    rename_all = "camelCase"
)]
pub struct ClassLoadingRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The virtual machine.
    #[record(default)]
    pub vm_name: String,
    /// Classes loaded since the start.
    pub total_loaded_class_count: i64,
    /// Classes that are loaded now.
    pub loaded_class_count: i32,
    /// Classes unloaded since the start.
    pub unloaded_class_count: i64,
}

/// How long the compiler of a Java virtual machine ran.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.jvm.CompilationRecord",
    rename_all = "camelCase"
)]
pub struct CompilationRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The virtual machine.
    #[record(default)]
    pub vm_name: String,
    /// The compiler.
    #[record(default)]
    pub jit_compiler_name: String,
    /// Time spent compiling since the start, in milliseconds.
    #[record(rename = "totalCompilationTimeMS")]
    pub total_compilation_time_ms: i64,
}

/// How often and how long a garbage collector ran.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "kieker.common.record.jvm.GCRecord", rename_all = "camelCase")]
pub struct GCRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The virtual machine.
    #[record(default)]
    pub vm_name: String,
    /// The collector.
    #[record(default)]
    pub gc_name: String,
    /// Collections since the start.
    pub collection_count: i64,
    /// Time spent collecting since the start, in milliseconds.
    #[record(rename = "collectionTimeMS")]
    pub collection_time_ms: i64,
}

/// How much memory a Java virtual machine uses.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.jvm.MemoryRecord",
    rename_all = "camelCase"
)]
pub struct MemoryRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The virtual machine.
    #[record(default)]
    pub vm_name: String,
    /// What the heap may grow to, in bytes.
    pub heap_max_bytes: i64,
    /// What the heap holds, in bytes.
    pub heap_used_bytes: i64,
    /// What the heap has, in bytes.
    pub heap_committed_bytes: i64,
    /// What the heap began with, in bytes.
    pub heap_init_bytes: i64,
    /// What other memory may grow to, in bytes.
    pub non_heap_max_bytes: i64,
    /// What other memory holds, in bytes.
    pub non_heap_used_bytes: i64,
    /// What there is of other memory, in bytes.
    pub non_heap_committed_bytes: i64,
    /// What other memory began with, in bytes.
    pub non_heap_init_bytes: i64,
    /// Objects that wait to be finalised.
    pub object_pending_finalization_count: i32,
}

/// How many threads a Java virtual machine has.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.jvm.ThreadsStatusRecord",
    rename_all = "camelCase"
)]
pub struct ThreadsStatusRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The virtual machine.
    #[record(default)]
    pub vm_name: String,
    /// Threads now.
    pub thread_count: i64,
    /// Daemon threads now.
    pub daemon_thread_count: i64,
    /// The most threads since the start.
    pub peak_thread_count: i64,
    /// Threads started since the start.
    pub total_started_thread_count: i64,
}

/// How long a Java virtual machine has been running.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.jvm.UptimeRecord",
    rename_all = "camelCase"
)]
pub struct UptimeRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The virtual machine.
    #[record(default)]
    pub vm_name: String,
    /// Time since the start, in milliseconds.
    #[record(rename = "uptimeMS")]
    pub uptime_ms: i64,
}
