//! CPU time of other processes and of threads, from `/proc`.

use std::fs;
use std::time::Duration;

use crate::harness::Failure;

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
