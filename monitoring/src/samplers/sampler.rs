//! The samplers, and the sensor of each.

use std::fmt;

use super::cpu::{Cpu, Detail};
use super::disk::Disk;
use super::machine::{Load, Memory};
use super::network::Network;
use super::process::Process;
use super::sensor::Sensor;
#[cfg(feature = "sampling")]
use crate::sampling::{Hybrid, HybridSensor, Threads};

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
