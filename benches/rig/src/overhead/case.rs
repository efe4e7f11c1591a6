//! The case of one repetition.

use serde::{Deserialize, Serialize};

/// The approximate number of instrumented calls in a batch. Batches are timed instead of calls, so
/// reading the clock adds only a few hundredths of a nanosecond to a call.
const BATCH_CALLS: u64 = 1_000;

/// The case of one repetition, in a process of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The name of the [`Variant`](super::Variant).
    pub variant: String,
    /// The number of calling threads.
    pub threads: usize,
    /// The depth of the calls: the number of instrumented calls in one call from outside.
    pub depth: u32,
    /// The number of calls from outside by each thread, including the warm-up.
    pub calls: u64,
}

impl Case {
    /// Returns how many calls from outside are timed together.
    pub fn batch_calls(&self) -> u64 {
        (BATCH_CALLS / u64::from(self.depth.max(1))).max(1)
    }

    /// Returns how many batches a thread makes before it measures (the first half), and how many it
    /// measures.
    pub(super) fn batches(&self) -> (usize, usize) {
        let batches = self.calls.div_ceil(self.batch_calls()).max(1);
        let all = usize::try_from(batches).expect("the times of all batches are in memory");
        let warm_up = all / 2;
        (warm_up, all - warm_up)
    }

    /// Returns how many instrumented calls all threads make, including the warm-up.
    pub fn instrumented_calls(&self) -> u64 {
        let (warm_up, measured) = self.batches();
        let batches = (warm_up + measured) as u64 * self.threads as u64;
        batches * self.batch_calls() * u64::from(self.depth)
    }
}

#[cfg(test)]
mod tests;
