//! Memory, descriptors, threads and CPU time of a process, from `/proc`.

use std::fs;
use std::io;
use std::time::Duration;

use serde::Serialize;

/// What a process holds at one moment.
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
    /// That of a process.
    ///
    /// # Errors
    ///
    /// The process has ended, or is not this user's.
    pub fn of(pid: u32) -> io::Result<Self> {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let word = line.and_then(|line| line.split_whitespace().next());
            word.and_then(|word| word.parse::<u64>().ok())
                .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no {name}")))
        };
        let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))?.count();
        Ok(Self {
            resident_bytes: number("VmRSS:")?.saturating_mul(1024),
            descriptors: u64::try_from(descriptors).unwrap_or(u64::MAX),
            threads: number("Threads:")?,
        })
    }
}

/// CPU time of the threads that another process has now, in nanoseconds
/// (`/proc/PID/task/TID/schedstat`).
///
/// # Errors
///
/// The process has ended, or the kernel does not count.
pub fn busy_time_of(pid: u32) -> io::Result<Duration> {
    let (mut threads, mut sum) = (0_u32, 0_u64);
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // A thread that has ended meanwhile has none.
        let text = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        let nanos = text.split_whitespace().next().map(str::parse::<u64>);
        if let Some(Ok(nanos)) = nanos {
            threads += 1;
            sum = sum.saturating_add(nanos);
        }
    }
    match threads {
        0 => Err(io::Error::other(
            "Linux was built without scheduler statistics",
        )),
        _ => Ok(Duration::from_nanos(sum)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_holds_more_shows_more() {
        let pid = std::process::id();
        let before = Footprint::of(pid).unwrap();
        let files: Vec<_> = (0..50)
            .map(|_| fs::File::open("/proc/self/stat").unwrap())
            .collect();
        let memory = vec![1_u8; 64 << 20];
        let after = Footprint::of(pid).unwrap();
        assert!(after.descriptors >= before.descriptors + 50, "{after:?}");
        assert!(
            after.resident_bytes >= before.resident_bytes + (60 << 20),
            "{before:?} {after:?}"
        );
        assert!(after.threads >= 1);
        drop((files, memory));
        Footprint::of(u32::MAX).unwrap_err();
    }

    #[test]
    fn cpu_time_is_that_of_the_process_clock() {
        let before = crate::cpu::process_cpu_time();
        while crate::cpu::process_cpu_time() < before + Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        let exact = crate::cpu::process_cpu_time();
        let busy = busy_time_of(std::process::id()).unwrap();
        let step = Duration::from_millis(60);
        assert!(busy + step >= exact && busy <= exact + step, "{busy:?}");
        busy_time_of(u32::MAX).unwrap_err();
    }
}
