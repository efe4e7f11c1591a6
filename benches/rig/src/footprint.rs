//! What a process holds and has used, as Linux tells of it in `/proc`.

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

/// How often a process has let go of the processor, and how often memory was not where it looked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scheduling {
    /// Context switches of the threads that it has now, whether they waited or were made to.
    pub context_switches: u64,
    /// Page faults, those that read nothing from a disk included.
    pub page_faults: u64,
}

impl Scheduling {
    /// That of a process.
    ///
    /// # Errors
    ///
    /// The process has ended.
    pub fn of(pid: u32) -> io::Result<Self> {
        let mut context_switches = 0_u64;
        for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
            // A thread that has ended meanwhile has none.
            let text = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
            let counts = text.lines().filter_map(|line| {
                let (name, count) = line.split_once(':')?;
                let is_one = name.ends_with("ctxt_switches");
                count.trim().parse::<u64>().ok().filter(|_| is_one)
            });
            context_switches = context_switches.saturating_add(counts.sum());
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
        // As below: minflt is field 10, majflt 12.
        let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
        let mut faults = fields
            .split_whitespace()
            .skip(7)
            .step_by(2)
            .map(|field| field.parse::<u64>().unwrap_or(0));
        let (minor, major) = (faults.next().unwrap_or(0), faults.next().unwrap_or(0));
        Ok(Self {
            context_switches,
            page_faults: minor.saturating_add(major),
        })
    }
}

/// User and system CPU time of another process, threads that ended included; in steps of 10 ms.
///
/// # Errors
///
/// The process has ended.
pub fn cpu_time_of(pid: u32) -> io::Result<Duration> {
    cpu_times_of(pid).map(|(user, system)| user + system)
}

/// CPU time of another process in user mode and in the kernel, threads that ended included; in steps
/// of 10 ms.
///
/// # Errors
///
/// The process has ended.
pub fn cpu_times_of(pid: u32) -> io::Result<(Duration, Duration)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // Behind the name, which may contain anything: state is field 3, utime 14, stime 15 (proc(5)).
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields);
    let mut ticks = fields
        .split_whitespace()
        .skip(11)
        .map_while(|field| field.parse::<u64>().ok());
    // Linux shows hundredths of a second to user space, whatever it counts in.
    let mut time = || Duration::from_millis(ticks.next().unwrap_or(0).saturating_mul(10));
    Ok((time(), time()))
}

/// CPU time of the threads that another process has now, in nanoseconds where Linux tells
/// (`/proc/PID/task/TID/schedstat`), else as [`cpu_time_of`].
///
/// # Errors
///
/// The process has ended.
pub fn busy_time_of(pid: u32) -> io::Result<Duration> {
    let mut sum = Duration::ZERO;
    for thread in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
        // A thread that has ended meanwhile has none.
        let Ok(text) = fs::read_to_string(thread.path().join("schedstat")) else {
            continue;
        };
        let nanos = text.split_whitespace().next();
        sum += Duration::from_nanos(nanos.and_then(|nanos| nanos.parse().ok()).unwrap_or(0));
    }
    match sum {
        Duration::ZERO => cpu_time_of(pid),
        sum => Ok(sum),
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
    fn waiting_is_a_context_switch_and_new_memory_a_page_fault() {
        let pid = std::process::id();
        let before = Scheduling::of(pid).unwrap();
        for _ in 0..20 {
            std::thread::park_timeout(Duration::from_millis(1));
        }
        let memory = vec![1_u8; 8 << 20];
        let after = Scheduling::of(pid).unwrap();
        assert!(
            after.context_switches >= before.context_switches + 10,
            "{before:?} {after:?}"
        );
        // Of 2 MiB each, at most.
        assert!(
            after.page_faults >= before.page_faults + 4,
            "{before:?} {after:?}"
        );
        drop(memory);
        Scheduling::of(u32::MAX).unwrap_err();
    }

    #[test]
    fn cpu_time_is_that_of_the_process_clock() {
        let before = crate::cpu::process_cpu_time();
        while crate::cpu::process_cpu_time() < before + Duration::from_millis(60) {
            std::hint::spin_loop();
        }
        let seen = cpu_time_of(std::process::id()).unwrap();
        let exact = crate::cpu::process_cpu_time();
        let step = Duration::from_millis(30);
        assert!(
            seen <= exact + step && exact <= seen + step,
            "{seen:?} {exact:?}"
        );
        let busy_now = busy_time_of(std::process::id()).unwrap();
        assert!(busy_now + step >= exact && busy_now <= exact + step * 2);
    }
}
