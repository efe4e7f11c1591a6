//! Sensors, their environment and their records.

use std::io;
#[cfg(feature = "sampling")]
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use baler_common::record::Record;
#[cfg(feature = "sampling")]
use baler_common::record::sampling::PartTimeRecord;
use baler_connector_kieker::pattern::PatternList;
use baler_connector_kieker::types::{
    CPUUtilizationRecord, DiskUsageRecord, LoadAverageRecord, MemSwapUsageRecord,
    NetworkUtilizationRecord, ResourceUtilizationRecord, UptimeRecord,
};

use super::proc::Root;
use crate::Controller;
#[cfg(feature = "sampling")]
use crate::sampling::ThreadSample;

/// Makes records of the kernel's data, or of the process's threads.
pub(crate) trait Sensor: Send {
    /// Appends the current records.
    fn sample(&mut self, context: &Context<'_>, out: &mut Vec<Sample>) -> io::Result<()>;

    /// The time until it wants the next sample, if not that of its schedule.
    fn wait(&self) -> Option<Duration> {
        None
    }
}

/// The environment of a sensor.
pub(crate) struct Context<'a> {
    pub(super) root: &'a Root,
    /// By a clock that never jumps.
    pub(crate) at: Instant,
    pub(crate) unix_ns: i64,
    pub(crate) hostname: &'a str,
    pub(super) patterns: &'a PatternList,
    /// Whether probes record for this controller.
    #[cfg(feature = "sampling")]
    pub(crate) is_installed: bool,
    /// The CPU time of the collector's thread so far.
    #[cfg(feature = "sampling")]
    pub(crate) collector_ns: u64,
    /// The number of this point in time of the sampler, from 1.
    #[cfg(feature = "sampling")]
    pub(crate) round: u64,
    /// Counts torn reads of stacks.
    #[cfg(feature = "sampling")]
    pub(crate) torn: &'a AtomicU64,
}

impl Context<'_> {
    pub(crate) fn is_active(&self, signature: &str) -> bool {
        self.patterns.is_active(signature)
    }
}

/// A record of any sampler.
#[derive(Debug)]
pub(crate) enum Sample {
    Cpu(CPUUtilizationRecord),
    Disk(DiskUsageRecord),
    Load(LoadAverageRecord),
    Memory(MemSwapUsageRecord),
    Network(NetworkUtilizationRecord),
    #[cfg(feature = "sampling")]
    PartTime(PartTimeRecord),
    Process(ProcessRecord),
    Resource(ResourceUtilizationRecord),
    #[cfg(feature = "sampling")]
    Thread(ThreadSample),
    Uptime(UptimeRecord),
}

impl Sample {
    pub(super) fn emit(&self, controller: &Controller) -> bool {
        match self {
            Self::Cpu(record) => controller.emit(record),
            Self::Disk(record) => controller.emit(record),
            Self::Load(record) => controller.emit(record),
            Self::Memory(record) => controller.emit(record),
            Self::Network(record) => controller.emit(record),
            #[cfg(feature = "sampling")]
            Self::PartTime(record) => controller.emit(record),
            Self::Process(record) => controller.emit(record),
            Self::Resource(record) => controller.emit(record),
            #[cfg(feature = "sampling")]
            Self::Thread(record) => controller.emit(record),
            Self::Uptime(record) => controller.emit(record),
        }
    }
}

/// The resources that this process uses.
///
/// Baler's own type: Kieker's `ThreadsStatusRecord` and `MemoryRecord` describe a Java virtual
/// machine's daemon threads, peaks and heaps, which a native process does not have.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "baler.monitoring.ProcessRecord", rename_all = "camelCase")]
pub struct ProcessRecord {
    /// The time of the sample, in nanoseconds since the Unix epoch.
    #[record(unix_nanos)]
    pub timestamp: i64,
    /// The host.
    pub hostname: String,
    /// The process's number.
    pub process_id: u32,
    /// Processor time in its own code, in seconds per second: 1 is one busy processor.
    pub user_utilization: f64,
    /// Processor time in the kernel on its behalf, in the same unit.
    pub system_utilization: f64,
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// The highest resident memory so far, in bytes.
    pub peak_resident_bytes: u64,
    /// Address space in use, in bytes.
    pub virtual_bytes: u64,
    /// Its threads, including the threads of monitoring.
    pub threads: u64,
    /// Pages made available without a disk, per second.
    pub minor_faults_per_second: f64,
    /// Pages read from a disk, per second.
    pub major_faults_per_second: f64,
}

/// A sensor with files and a clock that a test sets.
#[cfg(test)]
pub(super) struct Bench<S> {
    pub(super) sensor: S,
    folder: tempfile::TempDir,
    at: Instant,
    pub(super) patterns: PatternList,
}

#[cfg(test)]
impl<S: Sensor> Bench<S> {
    pub(super) fn new(sensor: S) -> Self {
        Self {
            sensor,
            folder: tempfile::tempdir().unwrap(),
            at: Instant::now(),
            patterns: PatternList::new(),
        }
    }

    /// Sets the content of one of the kernel's files.
    pub(super) fn put(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    pub(super) fn sample_after(&mut self, millis: u64) -> io::Result<Vec<Sample>> {
        self.at += Duration::from_millis(millis);
        let mut out = Vec::new();
        let context = Context {
            root: &Root::new(self.folder.path()),
            at: self.at,
            unix_ns: 1_000,
            hostname: "host",
            patterns: &self.patterns,
            #[cfg(feature = "sampling")]
            is_installed: false,
            #[cfg(feature = "sampling")]
            collector_ns: 0,
            #[cfg(feature = "sampling")]
            round: 1,
            #[cfg(feature = "sampling")]
            torn: &AtomicU64::new(0),
        };
        self.sensor.sample(&context, &mut out)?;
        Ok(out)
    }
}
