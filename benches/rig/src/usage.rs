//! Memory, descriptors, threads and CPU time of another process, from `/proc`.

use std::fs;
use std::time::Duration;

use serde::Serialize;

use crate::harness::Failure;

/// Memory, descriptors and threads of a process at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Footprint {
    /// Resident memory, in bytes.
    pub resident_bytes: u64,
    /// Open file descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Footprint {
    /// The footprint of a process.
    ///
    /// # Errors
    ///
    /// The process has ended, or belongs to another user.
    pub fn of(pid: u32) -> Result<Self, Failure> {
        let cannot_look = Failure::cannot("look at a process");
        let status = fs::read_to_string(format!("/proc/{pid}/status")).map_err(&cannot_look)?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            let number = word.and_then(|word| word.parse::<u64>().ok());
            number.ok_or_else(|| Failure::new(format!("/proc/{pid}/status has no {name}")))
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).map_err(&cannot_look)?;
        Ok(Self {
            resident_bytes: number("VmRSS:")? * 1024,
            descriptors: descriptors.count() as u64,
            threads: number("Threads:")?,
        })
    }
}

/// The CPU time of the present threads of another process (`/proc/PID/task/TID/schedstat`).
///
/// # Errors
///
/// The process has ended, or the kernel does not count.
pub fn busy_time_of(pid: u32) -> Result<Duration, Failure> {
    let threads = busy_threads(pid)?;
    Ok(threads.iter().map(|(_, time)| time).sum())
}

/// The CPU time of the present threads of this process with this name, of at most 15 bytes. A thread
/// gives itself its name when it begins to run.
///
/// # Errors
///
/// The kernel does not count.
pub fn busy_time_of_threads(name: &str) -> Result<Duration, Failure> {
    let threads = busy_threads(std::process::id())?;
    let threads = threads.iter().filter(|(found, _)| found == name);
    Ok(threads.map(|(_, time)| time).sum())
}

/// The names and the CPU times of the present threads of a process.
fn busy_threads(pid: u32) -> Result<Vec<(String, Duration)>, Failure> {
    let threads = fs::read_dir(format!("/proc/{pid}/task"));
    let threads = threads.map_err(Failure::cannot("look at a process"))?;
    let times: Vec<(String, Duration)> = threads
        .flatten()
        .filter_map(|thread| {
            // A thread that has ended meanwhile has no files.
            let read = |file| fs::read_to_string(thread.path().join(file)).ok();
            let time = read("schedstat")?.split_whitespace().next()?.parse().ok()?;
            let name = read("comm")?.trim_end().to_owned();
            Some((name, Duration::from_nanos(time)))
        })
        .collect();
    match times.is_empty() {
        true => Err(Failure::new("Linux was built without scheduler statistics")),
        false => Ok(times),
    }
}

#[cfg(test)]
mod tests;
