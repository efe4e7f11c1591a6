//! The samplers, and the input of each.

use std::fmt;
use std::io;
#[cfg(feature = "sampling")]
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use baler_common::pattern::PatternList;
use baler_common::record::kieker::{
    CPUUtilizationRecord, DiskUsageRecord, LoadAverageRecord, MemSwapUsageRecord,
    NetworkUtilizationRecord, ResourceUtilizationRecord, UptimeRecord,
};
#[cfg(feature = "sampling")]
use baler_common::record::sampling::PartTimeRecord;

use super::cpu::{Cpu, Detail};
use super::disk::Disk;
use super::machine::{Load, Memory};
use super::network::Network;
use super::proc::Root;
use super::process::{Process, ProcessRecord};
use crate::Controller;
#[cfg(feature = "sampling")]
use crate::sampling::{Hybrid, HybridSensor, ThreadSample, Threads};

/// Something that can be sampled; for
/// [`ControllerBuilder::sampler`](crate::ControllerBuilder::sampler).
///
/// Rates cover the time since the last sample, by a clock that never jumps. The first sample of a
/// rate only primes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sampler {
    /// The shares of each processor's time, as `CPUUtilizationRecord` (Kieker's
    /// `CPUsDetailedPercSampler`); signatures `%CPU` and `%CPU::0`, `%CPU::1` and so on.
    ///
    /// `totalUtilization` is the time neither idle nor waiting; `irq` holds software interrupts.
    Cpu,
    /// The load of each processor, as `ResourceUtilizationRecord` of `cpu-0` and so on (Kieker's
    /// `CPUsCombinedPercSampler`); signatures as for [`Cpu`](Self::Cpu).
    CpuCombined,
    /// The work of each disk, as `DiskUsageRecord`; signatures `%DISK_USAGE` and, not in Kieker,
    /// `%DISK_USAGE::sda` and so on.
    ///
    /// `queue` is the mean number of requests that waited or were served. `serviceTime` is the mean
    /// time of finished requests, in milliseconds.
    Disk,
    /// The load averages, as `LoadAverageRecord`; signature `%LOAD_AVERAGE`.
    Load,
    /// Memory and swap space, as `MemSwapUsageRecord`; signature `%MEM_SWAP`.
    ///
    /// `memFree` is the memory available without swapping, and `memUsed` the rest, as in Kieker.
    Memory,
    /// The traffic of each network interface but `lo`, as `NetworkUtilizationRecord`; signatures
    /// `%NETWORK_UTILIZATION` and, not in Kieker, `%NETWORK_UTILIZATION::eth0` and so on.
    ///
    /// `speed` is in bits per second, 0 where the kernel does not know it.
    Network,
    /// This process: [`ProcessRecord`](crate::ProcessRecord), signature `%PROCESS`, and
    /// `UptimeRecord`, signature `%JVM_UPTIME`.
    Process,
    /// The sampled operation that each thread is in, as
    /// [`ThreadSampleRecord`](baler_common::record::sampling::ThreadSampleRecord); signature
    /// `%THREADS`. It works on all systems, with the feature `sampling`.
    ///
    /// It reads stacks that probes publish while it is active, of the process-wide controller's
    /// [sampled sites](crate::ControllerBuilder::sampled_sites).
    #[cfg(feature = "sampling")]
    Threads,
    /// Hybrid monitoring: it looks at the same stacks, lets only the probes of hot spots record, and
    /// keeps a budget of CPU time. Its record of each operation and period is a
    /// [`PartTimeRecord`](baler_common::record::sampling::PartTimeRecord); signature `%THREADS`.
    /// Linux only, with the feature `sampling`.
    ///
    /// It chooses the times of its looks. Start it by
    /// [`hybrid`](crate::ControllerBuilder::hybrid).
    #[cfg(feature = "sampling")]
    Hybrid(Hybrid),
}

/// The signature by which patterns switch the samplers of threads.
#[cfg(feature = "sampling")]
pub(crate) const THREADS: &str = "%THREADS";

impl Sampler {
    /// Returns its name in events.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::CpuCombined => "cpu-combined",
            Self::Disk => "disk",
            Self::Load => "load",
            Self::Memory => "memory",
            Self::Network => "network",
            Self::Process => "process",
            #[cfg(feature = "sampling")]
            Self::Threads => "threads",
            #[cfg(feature = "sampling")]
            Self::Hybrid(_) => "hybrid",
        }
    }

    /// Returns the signature by which patterns switch it. While it is inactive, nothing is read.
    /// Records may have other signatures.
    pub(super) const fn signature(self) -> &'static str {
        match self {
            Self::Cpu | Self::CpuCombined => "%CPU",
            Self::Disk => "%DISK_USAGE",
            Self::Load => "%LOAD_AVERAGE",
            Self::Memory => "%MEM_SWAP",
            Self::Network => "%NETWORK_UTILIZATION",
            Self::Process => "%PROCESS",
            #[cfg(feature = "sampling")]
            Self::Threads | Self::Hybrid(_) => THREADS,
        }
    }

    /// Returns its sensor. The first sample of a rate only primes it.
    pub(super) fn sensor(self) -> Box<dyn Sensor> {
        match self {
            Self::Cpu => Box::new(Cpu::new(Detail::Full)),
            Self::CpuCombined => Box::new(Cpu::new(Detail::Combined)),
            Self::Disk => Box::new(Disk::default()),
            Self::Load => Box::new(Load),
            Self::Memory => Box::new(Memory),
            Self::Network => Box::new(Network::default()),
            Self::Process => Box::new(Process::default()),
            #[cfg(feature = "sampling")]
            Self::Threads => Box::new(Threads::default()),
            #[cfg(feature = "sampling")]
            Self::Hybrid(settings) => Box::new(HybridSensor::new(settings)),
        }
    }

    /// Whether it works on this system: most samplers read files of Linux.
    pub(crate) const fn is_possible(self) -> bool {
        match self {
            #[cfg(feature = "sampling")]
            Self::Threads => true,
            #[cfg(feature = "sampling")]
            Self::Hybrid(_) => cfg!(target_os = "linux"),
            _ => cfg!(any(target_os = "linux", target_os = "android")),
        }
    }
}

impl fmt::Display for Sampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

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
