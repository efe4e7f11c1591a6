//! What a piece of work costs: wall-clock time, and CPU time of the whole process.

use std::time::{Duration, Instant};

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

/// What a piece of work cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// From its beginning to its end.
    pub wall: Duration,
    /// CPU time of every thread of the process meanwhile.
    pub cpu: Duration,
}

/// Measures from its start until it is read.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    since: Instant,
    cpu_before: Duration,
}

impl Stopwatch {
    /// Begins to measure.
    pub fn start() -> Self {
        let cpu_before = process_cpu_time();
        Self {
            since: Instant::now(),
            cpu_before,
        }
    }

    /// The cost since the start.
    pub fn cost(&self) -> Cost {
        let wall = self.since.elapsed();
        Cost {
            wall,
            cpu: process_cpu_time().saturating_sub(self.cpu_before),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_costs_wall_time_and_work_costs_cpu_time() {
        const TIME: Duration = Duration::from_millis(20);
        let (_keep, never) = std::sync::mpsc::channel::<()>();
        let waiting = Stopwatch::start();
        never.recv_timeout(TIME).unwrap_err();
        let waited = waiting.cost();
        assert!(waited.wall >= TIME && waited.cpu < TIME / 2, "{waited:?}");

        let working = Stopwatch::start();
        // Ends whatever the scheduler does: it waits for the very clock that is tested.
        while working.cost().cpu < TIME {
            std::hint::spin_loop();
        }
        assert!(working.cost().wall >= TIME / 2);
    }
}
