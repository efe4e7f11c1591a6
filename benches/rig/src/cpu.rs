//! How much CPU time this process and this thread have used.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// How much CPU time all threads of this process have used so far, those that ended included.
///
/// POSIX `CLOCK_PROCESS_CPUTIME_ID`: a scheduler's account in nanoseconds, finer than `getrusage`,
/// which may count in ticks.
pub fn process_cpu_time() -> Duration {
    cpu_time(ClockId::ProcessCPUTime)
}

/// How much CPU time the calling thread has used so far.
///
/// POSIX `CLOCK_THREAD_CPUTIME_ID`.
pub fn thread_cpu_time() -> Duration {
    cpu_time(ClockId::ThreadCPUTime)
}

fn cpu_time(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(seconds, nanos)
}
