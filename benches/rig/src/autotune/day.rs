//! The records of a day: when each is due, and what it says.

use serde::{Deserialize, Serialize};

use crate::workload::{Call, Execution, Executions, Workload};

/// How many different calls there are; they come again and again.
const DIFFERENT: usize = 20_000;

/// The run's number stands in a trace id above so many bits, ...
const RUN_BITS: u32 = 44;

/// ... and the phase's above so many, below it.
const PHASE_BITS: u32 = 40;

/// A part of the day with a constant rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Phase {
    /// Records a second.
    pub(super) rate: u32,
    pub(super) seconds: f64,
}

/// Which run and phase a trace is of.
pub(super) fn of_trace(trace_id: i64) -> (i64, i64) {
    let number = trace_id >> PHASE_BITS;
    let phases = 1 << (RUN_BITS - PHASE_BITS);
    (number / phases, number % phases)
}

/// Makes the records of a run.
#[derive(Debug)]
pub(super) struct Day {
    executions: Executions,
    calls: Vec<Call>,
    run: u32,
}

impl Day {
    pub(super) fn new(seed: u64, run: u32) -> Self {
        let mut workload = Workload::new(seed);
        let calls: Vec<Call> = workload.by_ref().take(DIFFERENT).collect();
        let first = calls.iter().map(|call| call.trace_id).min().unwrap_or(0);
        let mut day = Self {
            executions: Executions::new(&workload),
            calls,
            run,
        };
        for call in &mut day.calls {
            call.trace_id -= first;
        }
        day
    }

    /// The record of a call.
    pub(super) fn record(&mut self, call: &Call) -> &Execution {
        self.executions.of(call)
    }

    /// The call at this position of a phase, which is due at this time.
    pub(super) fn call(&self, phase: usize, position: u64, due_ns: i64) -> Call {
        let count = u64::try_from(self.calls.len()).unwrap_or(u64::MAX).max(1);
        let index = usize::try_from(position % count).unwrap_or(0);
        let mut call = self.calls.get(index).copied().unwrap_or_default();
        let cycle = i64::try_from(position / count).unwrap_or(0);
        let phase = i64::try_from(phase).unwrap_or(0);
        call.trace_id += (cycle << 20) + (phase << PHASE_BITS) + (i64::from(self.run) << RUN_BITS);
        call.tin = due_ns - (call.tout - call.tin);
        call.tout = due_ns;
        call
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_and_phase_stand_in_every_record_and_so_does_when_it_was_due() {
        let day = Day::new(1, 3);
        let mut before = 0;
        for position in [0, 7, 19_999, 20_001, 9_000_000] {
            let call = day.call(2, position, 1_000_000);
            assert_eq!(call.tout, 1_000_000);
            assert!(call.tin <= call.tout);
            assert_eq!(of_trace(call.trace_id), (3, 2));
            assert!(call.trace_id >= before);
            before = call.trace_id;
        }
    }
}
