//! Kieker's 72 record types with the names, fields and order of its generated Java classes.
//!
//! The defaults come from Kieker's constructors. A reader uses them for fields that a writer did
//! not have.
//!
//! Every record of Kieker has a *logging timestamp* beside its fields. It is the timestamp of the
//! record's envelope. The emitter of the record sets it. A field with the name `timestamp` is
//! separate data.
//!
//! Source: the record definitions (IRL) of Kieker 2.0.4-SNAPSHOT, commit e48b35c1.

mod catalog;

use std::sync::Arc;

use baler_common::container::WellKnownTypes;
use baler_common::record::{Record, Schema};

pub use catalog::{catalog, shared_catalog};

/// The types that native chunks name by number: Kieker's. The document of the format, `FORMAT.md` in
/// `baler-common`, has the same table.
pub static WELL_KNOWN_TYPES: WellKnownTypes = WellKnownTypes::new(&KIEKER_TYPES).with_calls(2);

/// Defines a struct for each line of a table, and lists the schemas of all.
///
/// A line has the name of the struct, the name of the Java class, a template of `kieker_type!`
/// whose fields come first, and the fields with their defaults.
macro_rules! kieker_types {
    ($(
        $(#[$doc:meta])*
        $type:ident($name:literal) $(: $template:ident)? { $($field:tt)* }
    )*) => {
        $(
            kieker_type! {
                [$(#[$doc])* #[record(name = $name, rename_all = "camelCase")] pub struct $type]
                $($template)? { $($field)* }
            }
        )*

        /// The schemas of Kieker's record types, sorted by class name.
        ///
        /// Native chunks name them by number ([`WELL_KNOWN_TYPES`]): the type at position n of this
        /// list has number n + 1. A type that Kieker adds later goes to the end, so that the numbers
        /// do not change.
        pub const KIEKER_TYPES: [fn() -> &'static Arc<Schema>; 72] = [$($type::schema),*];
    };
}

/// Defines one struct: its own fields after those of its template.
macro_rules! kieker_type {
    ([$($head:tt)*] {
        $($(#[$attribute:meta])* $field:ident: $type:ty $(= $default:expr)?,)*
    }) => {
        #[derive(Debug, Clone, PartialEq, Record)]
        $($head)* {
            $(
                $(#[$attribute])*
                $(#[record(default = <$type>::from($default))])?
                pub $field: $type,
            )*
        }
    };
    ($head:tt event { $($field:tt)* }) => {
        kieker_type! { $head {
            /// When it happened, in nanoseconds since the Unix epoch.
            #[record(unix_nanos)] timestamp: i64 = 0,
            $($field)*
        } }
    };
    ($head:tt host_event { $($field:tt)* }) => {
        kieker_type! { $head event {
            /// The host.
            hostname: String = "",
            $($field)*
        } }
    };
    ($head:tt trace_event { $($field:tt)* }) => {
        kieker_type! { $head event {
            /// The trace: a random number per process above, a counter in the lower 32 bits.
            trace_id: i64 = -1,
            /// The number of the event in its trace, from 0.
            order_index: i32 = -1,
            $($field)*
        } }
    };
    ($head:tt monitor_event { $($field:tt)* }) => {
        kieker_type! { $head trace_event {
            /// The identity of the lock.
            lock_id: i32 = 0,
            $($field)*
        } }
    };
    ($head:tt operation_event { $($field:tt)* }) => {
        kieker_type! { $head trace_event {
            /// The operation with its parameters.
            operation_signature: String = "",
            /// The class of the operation.
            class_signature: String = "",
            $($field)*
        } }
    };
    ($head:tt object_event { $($field:tt)* }) => {
        kieker_type! { $head operation_event {
            /// The identity of the object; 0 for none.
            object_id: i32 = 0,
            $($field)*
        } }
    };
    ($head:tt call_event { $($field:tt)* }) => {
        kieker_type! { $head operation_event {
            /// The called operation with its parameters.
            callee_operation_signature: String = "",
            /// The class of the called operation.
            callee_class_signature: String = "",
            $($field)*
        } }
    };
    ($head:tt thread_event { $($field:tt)* }) => {
        kieker_type! { $head event {
            /// The thread.
            thread_id: i64 = -1,
            /// The number of the event in its thread, from 0.
            order_index: i32 = -1,
            /// The operation with its parameters.
            operation_signature: String = "",
            /// The class of the operation.
            class_signature: String = "",
            $($field)*
        } }
    };
    ($head:tt database_event { $($field:tt)* }) => {
        kieker_type! { $head event {
            /// The class of the operation.
            class_signature: String = "",
            /// The trace: a random number per process above, a counter in the lower 32 bits.
            trace_id: i64 = -1,
            /// The number of the event in its trace, from 0.
            order_index: i32 = -1,
            $($field)*
        } }
    };
    ($head:tt java_vm { $($field:tt)* }) => {
        kieker_type! { $head {
            /// When it happened, in nanoseconds since the Unix epoch.
            #[record(unix_nanos)] timestamp: i64,
            /// The host.
            hostname: String = "",
            /// The virtual machine.
            vm_name: String = "",
            $($field)*
        } }
    };
    ($head:tt trace { $($field:tt)* }) => {
        kieker_type! { $head {
            /// The trace: a random number per process above, a counter in the lower 32 bits.
            trace_id: i64 = 0,
            /// The thread.
            thread_id: i64 = 0,
            /// The session, or `<no-session-id>`.
            session_id: String = "<no-session-id>",
            /// The host.
            hostname: String = "<default-host>",
            /// The trace that started this one; the trace's own id when there is none.
            parent_trace_id: i64 = -1,
            /// The number of the event that started this trace; -1 when there is none.
            parent_order_id: i32 = -1,
            $($field)*
        } }
    };
    ($head:tt pattern { $($field:tt)* }) => {
        kieker_type! { $head {
            /// The pattern.
            pattern: String = "",
            $($field)*
        } }
    };
    ($head:tt parameter { $($field:tt)* }) => {
        kieker_type! { $head pattern {
            /// The name of the parameter.
            name: String = "",
            $($field)*
        } }
    };
    ($head:tt detection { $($field:tt)* }) => {
        kieker_type! { $head {
            /// The application.
            application_name: String,
            /// The value.
            value: f64,
            /// When it was measured; the unit is the sender's.
            timestamp: i64,
            /// The value that was forecast.
            forecast: f64,
            /// How anomalous the value is.
            score: f64,
            $($field)*
        } }
    };
}

kieker_types! {
    // kieker.common.record.controlflow: executions of operations, each in a single record.

    /// A branch was taken.
    BranchingRecord("kieker.common.record.controlflow.BranchingRecord"): event {
        /// The number of the branching.
        #[record(rename = "branchID")] branch_id: i32 = 0,
        /// The way that was taken.
        branching_outcome: i32 = 0,
    }
    /// One execution of an operation, from entry to end.
    OperationExecutionRecord("kieker.common.record.controlflow.OperationExecutionRecord") {
        /// The operation with its parameters.
        operation_signature: String = "noOperation",
        /// The session, or `<no-session-id>`.
        session_id: String = "<no-session-id>",
        /// The trace: a random number per process above, a counter in the lower 32 bits; -1 without one.
        trace_id: i64 = -1,
        /// Entered at, in nanoseconds since the Unix epoch.
        #[record(unix_nanos)] tin: i64 = -1,
        /// Ended at, in nanoseconds since the Unix epoch.
        #[record(unix_nanos)] tout: i64 = -1,
        /// The host.
        hostname: String = "<default-host>",
        /// Execution order index: the number of the execution in its trace, from 0; -1 without a trace.
        eoi: i32 = -1,
        /// Execution stack size: how deep the execution is nested, from 0; -1 without a trace.
        ess: i32 = -1,
    }

    // kieker.common.record.database: calls to databases.

    /// A call to a database returned.
    AfterDatabaseEvent("kieker.common.record.database.AfterDatabaseEvent"): database_event {
        /// The type of the result.
        return_type: String = "",
        /// The result, as text.
        return_value: String = "",
    }
    /// A call to a database begins.
    BeforeDatabaseEvent("kieker.common.record.database.BeforeDatabaseEvent"): database_event {
        /// The statement or its parameters, as text.
        parameters: String = "",
        /// The database technology.
        technology: String = "",
    }
    /// A call to a database failed.
    DatabaseFailedEvent("kieker.common.record.database.DatabaseFailedEvent"): database_event {
        /// The exception, as text.
        cause: String = "",
    }

    // kieker.common.record.flow.thread: events numbered per thread instead of per trace.

    /// An operation of a thread ended with an exception.
    AfterFailedThreadBasedEvent("kieker.common.record.flow.thread.AfterFailedThreadBasedEvent"): thread_event {
        /// The exception, as text.
        cause: String = "",
    }
    /// An operation of a thread returned.
    AfterThreadBasedEvent("kieker.common.record.flow.thread.AfterThreadBasedEvent"): thread_event {}
    /// An operation of a thread is entered.
    BeforeThreadBasedEvent("kieker.common.record.flow.thread.BeforeThreadBasedEvent"): thread_event {}

    // kieker.common.record.flow.trace: traces, their places, and calls from one to another.

    /// The place of a trace, with the name of its application.
    ApplicationTraceMetadata("kieker.common.record.flow.trace.ApplicationTraceMetadata"): trace {
        /// The application.
        application_name: String = "<no-application-name>",
    }
    /// A call from another process came in.
    BeforeReceivedRemoteEvent("kieker.common.record.flow.trace.BeforeReceivedRemoteEvent") {
        /// When it happened, in nanoseconds since the Unix epoch.
        #[record(unix_nanos)] timestamp: i64 = -1,
        /// The trace of the caller.
        caller_trace_id: i64 = -1,
        /// The number of the call in the caller's trace.
        caller_order_index: i32 = -1,
        /// The trace: a random number per process above, a counter in the lower 32 bits.
        trace_id: i64 = -1,
        /// The number of the event in its trace, from 0.
        order_index: i32 = -1,
    }
    /// A call to another process goes out.
    BeforeSentRemoteEvent("kieker.common.record.flow.trace.BeforeSentRemoteEvent") {
        /// When it happened, in nanoseconds since the Unix epoch.
        #[record(unix_nanos)] timestamp: i64 = -1,
        /// The trace: a random number per process above, a counter in the lower 32 bits.
        trace_id: i64 = -1,
        /// The number of the event in its trace, from 0.
        order_index: i32 = -1,
        /// The technology of the call, or `<default-technology>`.
        technology: String = "<default-technology>",
    }
    /// An object was made.
    ConstructionEvent("kieker.common.record.flow.trace.ConstructionEvent"): trace_event {
        /// The class of the operation.
        class_signature: String = "",
        /// The identity of the object; 0 for none.
        object_id: i32 = 0,
    }
    /// The place of a trace.
    TraceMetadata("kieker.common.record.flow.trace.TraceMetadata"): trace {}

    // kieker.common.record.flow.trace.concurrency: traces that start and await each other.

    /// A trace waits for the end of another.
    JoinEvent("kieker.common.record.flow.trace.concurrency.JoinEvent"): trace_event {
        /// The trace whose end is awaited.
        joined_trace_id: i64 = 0,
    }
    /// A trace starts others.
    SplitEvent("kieker.common.record.flow.trace.concurrency.SplitEvent"): trace_event {}

    // kieker.common.record.flow.trace.concurrency.monitor: events at the monitors of objects.

    /// A monitor was entered.
    MonitorEntryEvent("kieker.common.record.flow.trace.concurrency.monitor.MonitorEntryEvent"): monitor_event {}
    /// A monitor was left.
    MonitorExitEvent("kieker.common.record.flow.trace.concurrency.monitor.MonitorExitEvent"): monitor_event {}
    /// All threads that wait for a monitor were woken.
    MonitorNotifyAllEvent("kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyAllEvent"): monitor_event {}
    /// One thread that waits for a monitor was woken.
    MonitorNotifyEvent("kieker.common.record.flow.trace.concurrency.monitor.MonitorNotifyEvent"): monitor_event {}
    /// A monitor is asked for.
    MonitorRequestEvent("kieker.common.record.flow.trace.concurrency.monitor.MonitorRequestEvent"): monitor_event {}
    /// A thread waits for a monitor.
    MonitorWaitEvent("kieker.common.record.flow.trace.concurrency.monitor.MonitorWaitEvent"): monitor_event {}

    // kieker.common.record.flow.trace.operation: entries to and exits from operations.

    /// An operation returned.
    AfterOperationEvent("kieker.common.record.flow.trace.operation.AfterOperationEvent"): operation_event {}
    /// An operation ended with an exception.
    AfterOperationFailedEvent("kieker.common.record.flow.trace.operation.AfterOperationFailedEvent"): operation_event {
        /// The exception, as text.
        cause: String = "",
    }
    /// An operation is entered.
    BeforeOperationEvent("kieker.common.record.flow.trace.operation.BeforeOperationEvent"): operation_event {}
    /// An operation calls another.
    CallOperationEvent("kieker.common.record.flow.trace.operation.CallOperationEvent"): call_event {}
    /// An operation that a user called is entered, with the values of its parameters.
    EntryLevelBeforeOperationEvent("kieker.common.record.flow.trace.operation.EntryLevelBeforeOperationEvent"): operation_event {
        /// The parameters' names.
        parameters: Vec<String>,
        /// The parameters' values, as text.
        values: Vec<String>,
        /// The kind of request.
        request_type: i32,
    }

    // kieker.common.record.flow.trace.operation.constructor: entries to and exits from constructors.

    /// A constructor returned.
    AfterConstructorEvent("kieker.common.record.flow.trace.operation.constructor.AfterConstructorEvent"): operation_event {}
    /// A constructor ended with an exception.
    AfterConstructorFailedEvent("kieker.common.record.flow.trace.operation.constructor.AfterConstructorFailedEvent"): operation_event {
        /// The exception, as text.
        cause: String = "",
    }
    /// A constructor is entered.
    BeforeConstructorEvent("kieker.common.record.flow.trace.operation.constructor.BeforeConstructorEvent"): operation_event {}
    /// An operation calls a constructor.
    CallConstructorEvent("kieker.common.record.flow.trace.operation.constructor.CallConstructorEvent"): call_event {}

    // kieker.common.record.flow.trace.operation.constructor.object: entries to and exits from constructors, with the object.

    /// A constructor ended with an exception; the object is known.
    AfterConstructorFailedObjectEvent("kieker.common.record.flow.trace.operation.constructor.object.AfterConstructorFailedObjectEvent"): operation_event {
        /// The exception, as text.
        cause: String = "",
        /// The identity of the object; 0 for none.
        object_id: i32 = 0,
    }
    /// A constructor returned; the object is known.
    AfterConstructorObjectEvent("kieker.common.record.flow.trace.operation.constructor.object.AfterConstructorObjectEvent"): object_event {}
    /// A constructor is entered; the object is known.
    BeforeConstructorObjectEvent("kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectEvent"): object_event {}
    /// A constructor is entered; the object and its interface are known.
    BeforeConstructorObjectInterfaceEvent("kieker.common.record.flow.trace.operation.constructor.object.BeforeConstructorObjectInterfaceEvent"): object_event {
        /// The interface.
        interface: String = "",
    }
    /// An operation calls a constructor; both objects are known.
    CallConstructorObjectEvent("kieker.common.record.flow.trace.operation.constructor.object.CallConstructorObjectEvent"): call_event {
        /// The identity of the object; 0 for none.
        object_id: i32 = 0,
        /// The identity of the called object; 0 for none.
        callee_object_id: i32 = 0,
    }

    // kieker.common.record.flow.trace.operation.object: entries to and exits from operations, with the object.

    /// An operation of a known object ended with an exception.
    AfterOperationFailedObjectEvent("kieker.common.record.flow.trace.operation.object.AfterOperationFailedObjectEvent"): operation_event {
        /// The exception, as text.
        cause: String = "",
        /// The identity of the object; 0 for none.
        object_id: i32 = 0,
    }
    /// An operation of a known object returned.
    AfterOperationObjectEvent("kieker.common.record.flow.trace.operation.object.AfterOperationObjectEvent"): object_event {}
    /// An operation of a known object is entered.
    BeforeOperationObjectEvent("kieker.common.record.flow.trace.operation.object.BeforeOperationObjectEvent"): object_event {}
    /// An operation of a known object is entered by an interface.
    BeforeOperationObjectInterfaceEvent("kieker.common.record.flow.trace.operation.object.BeforeOperationObjectInterfaceEvent"): object_event {
        /// The interface.
        interface: String = "",
    }
    /// An operation calls another; both objects are known.
    CallOperationObjectEvent("kieker.common.record.flow.trace.operation.object.CallOperationObjectEvent"): call_event {
        /// The identity of the object; 0 for none.
        object_id: i32 = 0,
        /// The identity of the called object; 0 for none.
        callee_object_id: i32 = 0,
    }
    /// An operation of a known object that a user called is entered, with the values of its parameters.
    EntryLevelBeforeOperationObjectEvent("kieker.common.record.flow.trace.operation.object.EntryLevelBeforeOperationObjectEvent"): object_event {
        /// The parameters' names.
        parameters: Vec<String>,
        /// The parameters' values, as text.
        values: Vec<String>,
        /// The kind of request.
        request_type: i32,
    }

    // kieker.common.record.jvm: the state of Java virtual machines.

    /// How many classes a Java virtual machine has loaded.
    ClassLoadingRecord("kieker.common.record.jvm.ClassLoadingRecord"): java_vm {
        /// Classes loaded since the start.
        total_loaded_class_count: i64,
        /// Classes that are loaded now.
        loaded_class_count: i32,
        /// Classes unloaded since the start.
        unloaded_class_count: i64,
    }
    /// How long the compiler of a Java virtual machine ran.
    CompilationRecord("kieker.common.record.jvm.CompilationRecord"): java_vm {
        /// The compiler.
        jit_compiler_name: String = "",
        /// Time spent compiling since the start, in milliseconds.
        #[record(rename = "totalCompilationTimeMS")] total_compilation_time_ms: i64,
    }
    /// How often and how long a garbage collector ran.
    GCRecord("kieker.common.record.jvm.GCRecord"): java_vm {
        /// The collector.
        gc_name: String = "",
        /// Collections since the start.
        collection_count: i64,
        /// Time spent collecting since the start, in milliseconds.
        #[record(rename = "collectionTimeMS")] collection_time_ms: i64,
    }
    /// How much memory a Java virtual machine uses.
    MemoryRecord("kieker.common.record.jvm.MemoryRecord"): java_vm {
        /// The heap's limit, in bytes.
        heap_max_bytes: i64,
        /// The heap's used memory, in bytes.
        heap_used_bytes: i64,
        /// The heap's committed memory, in bytes.
        heap_committed_bytes: i64,
        /// The heap's initial memory, in bytes.
        heap_init_bytes: i64,
        /// The limit of other memory, in bytes.
        non_heap_max_bytes: i64,
        /// The used other memory, in bytes.
        non_heap_used_bytes: i64,
        /// The committed other memory, in bytes.
        non_heap_committed_bytes: i64,
        /// The initial other memory, in bytes.
        non_heap_init_bytes: i64,
        /// Objects that wait to be finalised.
        object_pending_finalization_count: i32,
    }
    /// How many threads a Java virtual machine has.
    ThreadsStatusRecord("kieker.common.record.jvm.ThreadsStatusRecord"): java_vm {
        /// Threads now.
        thread_count: i64,
        /// Daemon threads now.
        daemon_thread_count: i64,
        /// The most threads since the start.
        peak_thread_count: i64,
        /// Threads started since the start.
        total_started_thread_count: i64,
    }
    /// How long a Java virtual machine has been running.
    UptimeRecord("kieker.common.record.jvm.UptimeRecord"): java_vm {
        /// Time since the start, in milliseconds.
        #[record(rename = "uptimeMS")] uptime_ms: i64,
    }

    // kieker.common.record.misc: metadata, and records of general use.

    /// A record with only a logging timestamp.
    EmptyRecord("kieker.common.record.misc.EmptyRecord") {}
    /// The host of an application.
    HostApplicationMetaData("kieker.common.record.misc.HostApplicationMetaData") {
        /// The system.
        system_name: String = "",
        /// The address of the host.
        ip_address: String = "",
        /// The host.
        hostname: String = "",
        /// The application.
        application_name: String = "",
    }
    /// The monitoring process; sent each time monitoring is enabled.
    KiekerMetadataRecord("kieker.common.record.misc.KiekerMetadataRecord") {
        /// The version of the monitoring software.
        version: String = "",
        /// The controller's name.
        controller_name: String = "<no-controller-name>",
        /// The host.
        hostname: String = "<no-hostname>",
        /// The number of the experiment.
        experiment_id: i32 = 0,
        /// Whether the monitoring software runs in its debug mode.
        debug_mode: bool = false,
        /// The offset of timestamps, in `timeUnit`; 0 means that they count from the Unix epoch.
        time_offset: i64 = 0,
        /// The unit of timestamps, a constant's name of Java's `TimeUnit`.
        time_unit: String = "NANOSECONDS",
        /// Always 0 since Kieker 1.13.
        number_of_records: i64 = 0,
    }
    /// One component called an operation of another.
    OperationCallEvent("kieker.common.record.misc.OperationCallEvent") {
        /// The calling component.
        source_component: String = "",
        /// The calling operation.
        source_operation: String = "",
        /// The called component.
        target_component: String = "",
        /// The called operation.
        target_operation: String = "",
    }
    /// The host of a thread.
    ThreadMetaData("kieker.common.record.misc.ThreadMetaData") {
        /// The host.
        hostname: String = "",
        /// The thread.
        thread_id: i64,
    }
    /// A point in time.
    TimestampRecord("kieker.common.record.misc.TimestampRecord"): event {}

    // kieker.common.record.remotecontrol: remote switching of probes.

    /// Switches on the probes that match a pattern.
    ActivationEvent("kieker.common.record.remotecontrol.ActivationEvent"): pattern {}
    /// Switches on the probes that match a pattern, for some values of a parameter.
    ActivationParameterEvent("kieker.common.record.remotecontrol.ActivationParameterEvent"): parameter {
        /// The values, as text.
        values: Vec<String>,
    }
    /// Adds a value to a parameter of the probes that match a pattern.
    AddParameterValueEvent("kieker.common.record.remotecontrol.AddParameterValueEvent"): parameter {
        /// The value.
        value: String = "",
    }
    /// Switches off the probes that match a pattern.
    DeactivationEvent("kieker.common.record.remotecontrol.DeactivationEvent"): pattern {}
    /// Removes a value from a parameter of the probes that match a pattern.
    RemoveParameterValueEvent("kieker.common.record.remotecontrol.RemoveParameterValueEvent"): parameter {
        /// The value.
        value: String = "",
    }
    /// Replaces the values of a parameter of the probes that match a pattern.
    UpdateParameterEvent("kieker.common.record.remotecontrol.UpdateParameterEvent"): parameter {
        /// The values, as text.
        values: Vec<String>,
    }

    // kieker.common.record.session: users' sessions.

    /// A session ended.
    SessionEndEvent("kieker.common.record.session.SessionEndEvent"): host_event {
        /// The session.
        session_id: String = "",
    }
    /// A session began.
    SessionStartEvent("kieker.common.record.session.SessionStartEvent"): host_event {
        /// The session.
        session_id: String = "",
    }

    // kieker.common.record.system: the load of hosts and their parts.

    /// The load of a processor, as fractions from 0 to 1.
    CPUUtilizationRecord("kieker.common.record.system.CPUUtilizationRecord"): host_event {
        /// The processor.
        #[record(rename = "cpuID")] cpu_id: String = "",
        /// Time for programs.
        user: f64 = 0.0,
        /// Time for the system.
        system: f64 = 0.0,
        /// Time waiting for input and output.
        wait: f64 = 0.0,
        /// Time for programs of low priority.
        nice: f64 = 0.0,
        /// Time for interrupts.
        irq: f64 = 0.0,
        /// Time not idle.
        total_utilization: f64 = 0.0,
        /// Time idle.
        idle: f64 = 0.0,
    }
    /// The load of a disk.
    DiskUsageRecord("kieker.common.record.system.DiskUsageRecord"): host_event {
        /// The disk.
        device_name: String = "",
        /// Requests in the queue.
        queue: f64 = 0.0,
        /// Bytes read per second.
        read_bytes_per_second: f64 = 0.0,
        /// Reads per second.
        reads_per_second: f64 = 0.0,
        /// Time of a request.
        service_time: f64 = 0.0,
        /// Bytes written per second.
        write_bytes_per_second: f64 = 0.0,
        /// Writes per second.
        writes_per_second: f64 = 0.0,
    }
    /// The load averages of a host.
    LoadAverageRecord("kieker.common.record.system.LoadAverageRecord"): host_event {
        /// Over one minute.
        one_min_load_average: f64 = 0.0,
        /// Over five minutes.
        five_min_load_average: f64 = 0.0,
        /// Over fifteen minutes.
        fifteen_min_load_average: f64 = 0.0,
    }
    /// How much memory and swap space a host uses.
    MemSwapUsageRecord("kieker.common.record.system.MemSwapUsageRecord"): host_event {
        /// Memory, in bytes.
        mem_total: i64 = 0,
        /// Memory in use, in bytes.
        mem_used: i64 = 0,
        /// Memory that is free, in bytes.
        mem_free: i64 = 0,
        /// Swap space, in bytes.
        swap_total: i64 = 0,
        /// Swap space in use, in bytes.
        swap_used: i64 = 0,
        /// Swap space that is free, in bytes.
        swap_free: i64 = 0,
    }
    /// The load of a network interface.
    NetworkUtilizationRecord("kieker.common.record.system.NetworkUtilizationRecord"): host_event {
        /// The network interface.
        interface_name: String = "",
        /// Its speed, in bits per second.
        speed: i64 = 0,
        /// Bytes sent per second.
        tx_bytes_per_second: f64 = 0.0,
        /// Losses of the carrier per second.
        tx_carrier_per_second: f64 = 0.0,
        /// Collisions per second.
        tx_collisions_per_second: f64 = 0.0,
        /// Sent packets dropped per second.
        tx_dropped_per_second: f64 = 0.0,
        /// Errors of sent packets per second.
        tx_errors_per_second: f64 = 0.0,
        /// Overruns of sent packets per second.
        tx_overruns_per_second: f64 = 0.0,
        /// Packets sent per second.
        tx_packets_per_second: f64 = 0.0,
        /// Bytes received per second.
        rx_bytes_per_second: f64 = 0.0,
        /// Received packets dropped per second.
        rx_dropped_per_second: f64 = 0.0,
        /// Errors of received packets per second.
        rx_errors_per_second: f64 = 0.0,
        /// Framing errors per second.
        rx_frame_per_second: f64 = 0.0,
        /// Overruns of received packets per second.
        rx_overruns_per_second: f64 = 0.0,
        /// Packets received per second.
        rx_packets_per_second: f64 = 0.0,
    }
    /// The load of a resource, as a fraction from 0 to 1.
    ResourceUtilizationRecord("kieker.common.record.system.ResourceUtilizationRecord"): host_event {
        /// The resource.
        resource_name: String = "",
        /// Its load.
        utilization: f64 = 0.0,
    }

    // kieker.tools.opad.record: online anomaly detection.

    /// A window of time over which values are aggregated.
    AggregationWindow("kieker.tools.opad.record.AggregationWindow") {
        /// Its start; the unit is the sender's.
        window_start: i64,
        /// Its end; the unit is the sender's.
        window_end: i64,
    }
    /// A value, its forecast, its anomaly score, and the threshold of the score.
    ExtendedStorableDetectionResult("kieker.tools.opad.record.ExtendedStorableDetectionResult"): detection {
        /// A value with at least this score counts as anomalous.
        anomaly_threshold: f64,
    }
    /// A response time of an application.
    NamedDoubleRecord("kieker.tools.opad.record.NamedDoubleRecord") {
        /// The application.
        application_name: String,
        /// When it was measured; the unit is the sender's.
        timestamp: i64,
        /// The response time; the unit is the sender's.
        response_time: f64,
    }
    /// A point of a named time series.
    NamedTSPoint("kieker.tools.opad.record.NamedTSPoint") {
        /// When it was measured; the unit is the sender's.
        timestamp: i64,
        /// The value.
        value: f64,
        /// The series.
        name: String,
    }
    /// A value, its forecast and its anomaly score.
    StorableDetectionResult("kieker.tools.opad.record.StorableDetectionResult"): detection {}
}
