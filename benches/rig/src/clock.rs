//! Times as whole nanoseconds, and the CPU time of this process.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// Nanoseconds since the Unix epoch.
pub fn now_ns() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = nanos(now.expect("the clock is after 1970"));
    i64::try_from(now).expect("the clock is before 2262")
}

/// The nanoseconds of a time; saturates after five centuries.
#[inline]
pub fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The CPU time of all threads of this process so far, ended ones included.
///
/// POSIX `CLOCK_PROCESS_CPUTIME_ID`: the scheduler counts in nanoseconds, while `getrusage` may count
/// in ticks.
pub fn process_cpu_time() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

/// The CPU time of the calling thread so far (POSIX `CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_cpu_time() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::try_from(time).expect("a clock of CPU time counts up from 0")
}
