//! CPU time, memory and descriptors of processes, as Linux counts them.

use std::time::Duration;
use std::{fs, io};

use rustix::time::{ClockId, clock_gettime};

use super::process::status_bytes;

/// Memory and descriptors of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Footprint {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Open file descriptors.
    pub descriptors: u64,
}

impl Footprint {
    /// Returns the footprint of a process.
    ///
    /// # Errors
    ///
    /// The process has ended, or belongs to another user.
    pub fn of(pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        Ok(Self {
            resident_bytes: status_bytes(&status, "VmRSS:")?,
            descriptors: fs::read_dir(format!("/proc/{pid}/fd"))?.count() as u64,
        })
    }
}

/// Returns the CPU time of all threads of this process so far, ended ones included.
///
/// POSIX `CLOCK_PROCESS_CPUTIME_ID`: the scheduler counts in nanoseconds, while `getrusage` may count
/// in ticks.
pub fn process_cpu_time() -> Duration {
    Duration::from_nanos(cpu_ns(ClockId::ProcessCPUTime))
}

/// Returns the CPU time of the calling thread so far (POSIX `CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_cpu_time() -> Duration {
    Duration::from_nanos(cpu_ns(ClockId::ThreadCPUTime))
}

/// Returns the nanoseconds of a clock of CPU time.
pub(crate) fn cpu_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    // Neither part is negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests;
