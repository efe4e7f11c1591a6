//! How busy hosts and their parts are.
//!
//! Kieker's package `kieker.common.record.system`.

use crate::record::Record;

/// How busy a processor is, as fractions from 0 to 1.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.system.CPUUtilizationRecord",
    rename_all = "camelCase"
)]
pub struct CPUUtilizationRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The processor.
    #[record(rename = "cpuID", default)]
    pub cpu_id: String,
    /// Time for programs.
    #[record(default)]
    pub user: f64,
    /// Time for the system.
    #[record(default)]
    pub system: f64,
    /// Time waiting for input and output.
    #[record(default)]
    pub wait: f64,
    /// Time for programs of low priority.
    #[record(default)]
    pub nice: f64,
    /// Time for interrupts.
    #[record(default)]
    pub irq: f64,
    /// Time not idle.
    #[record(default)]
    pub total_utilization: f64,
    /// Time idle.
    #[record(default)]
    pub idle: f64,
}

/// How busy a disk is.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.system.DiskUsageRecord",
    rename_all = "camelCase"
)]
pub struct DiskUsageRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The disk.
    #[record(default)]
    pub device_name: String,
    /// Requests in the queue.
    #[record(default)]
    pub queue: f64,
    /// Bytes read per second.
    #[record(default)]
    pub read_bytes_per_second: f64,
    /// Reads per second.
    #[record(default)]
    pub reads_per_second: f64,
    /// Time a request takes.
    #[record(default)]
    pub service_time: f64,
    /// Bytes written per second.
    #[record(default)]
    pub write_bytes_per_second: f64,
    /// Writes per second.
    #[record(default)]
    pub writes_per_second: f64,
}

/// The load averages of a host.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.system.LoadAverageRecord",
    rename_all = "camelCase"
)]
pub struct LoadAverageRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// Over one minute.
    #[record(default)]
    pub one_min_load_average: f64,
    /// Over five minutes.
    #[record(default)]
    pub five_min_load_average: f64,
    /// Over fifteen minutes.
    #[record(default)]
    pub fifteen_min_load_average: f64,
}

/// How much memory and swap space a host uses.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.system.MemSwapUsageRecord",
    rename_all = "camelCase"
)]
pub struct MemSwapUsageRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// Memory, in bytes.
    #[record(default)]
    pub mem_total: i64,
    /// Memory in use, in bytes.
    #[record(default)]
    pub mem_used: i64,
    /// Memory that is free, in bytes.
    #[record(default)]
    pub mem_free: i64,
    /// Swap space, in bytes.
    #[record(default)]
    pub swap_total: i64,
    /// Swap space in use, in bytes.
    #[record(default)]
    pub swap_used: i64,
    /// Swap space that is free, in bytes.
    #[record(default)]
    pub swap_free: i64,
}

/// How busy a network interface is.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.system.NetworkUtilizationRecord",
    rename_all = "camelCase"
)]
pub struct NetworkUtilizationRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The network interface.
    #[record(default)]
    pub interface_name: String,
    /// Its speed, in bits per second.
    #[record(default)]
    pub speed: i64,
    /// Bytes sent per second.
    #[record(default)]
    pub tx_bytes_per_second: f64,
    /// Losses of the carrier per second.
    #[record(default)]
    pub tx_carrier_per_second: f64,
    /// Collisions per second.
    #[record(default)]
    pub tx_collisions_per_second: f64,
    /// Packets dropped per second, of those sent.
    #[record(default)]
    pub tx_dropped_per_second: f64,
    /// Errors per second, of packets sent.
    #[record(default)]
    pub tx_errors_per_second: f64,
    /// Overruns per second, of packets sent.
    #[record(default)]
    pub tx_overruns_per_second: f64,
    /// Packets sent per second.
    #[record(default)]
    pub tx_packets_per_second: f64,
    /// Bytes received per second.
    #[record(default)]
    pub rx_bytes_per_second: f64,
    /// Packets dropped per second, of those received.
    #[record(default)]
    pub rx_dropped_per_second: f64,
    /// Errors per second, of packets received.
    #[record(default)]
    pub rx_errors_per_second: f64,
    /// Framing errors per second.
    #[record(default)]
    pub rx_frame_per_second: f64,
    /// Overruns per second, of packets received.
    #[record(default)]
    pub rx_overruns_per_second: f64,
    /// Packets received per second.
    #[record(default)]
    pub rx_packets_per_second: f64,
}

/// How busy a resource is, as a fraction from 0 to 1.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.common.record.system.ResourceUtilizationRecord",
    rename_all = "camelCase"
)]
pub struct ResourceUtilizationRecord {
    /// When it happened, in nanoseconds since the Unix epoch.
    #[record(unix_nanos, default)]
    pub timestamp: i64,
    /// The host.
    #[record(default)]
    pub hostname: String,
    /// The resource.
    #[record(default)]
    pub resource_name: String,
    /// How busy it is.
    #[record(default)]
    pub utilization: f64,
}
