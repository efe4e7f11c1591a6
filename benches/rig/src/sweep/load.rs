//! The records of a run, and when each is due.

use baler_common::record::BatchBuilder;

use crate::checksum::Checksum;
use crate::failure::Failure;
use crate::random::Random;
use crate::workload::{Call, Execution, Executions, FIRST_TRACE_ID, Workload};

/// How many different calls there are; they are repeated in other traces and at other times.
const DIFFERENT: usize = 20_000;

/// A trace id holds the number of its run above this number of bits.
const RUN_BITS: u32 = 40;

/// When records are due, in nanoseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
pub(super) struct Timing {
    /// When record 0 is due, which is sent before the load to open everything.
    pub(super) first_ns: i64,
    /// When the other records begin.
    pub(super) start_ns: i64,
    /// The mean time between two records.
    pub(super) interval_ns: f64,
}

/// A call, and its times in units of the load.
#[derive(Debug, Clone, Copy)]
struct Timed {
    call: Call,
    /// Where in its interval it is due, from 0 to 1: evenly spaced times would compress too well.
    jitter: f64,
    /// It began after the end of the call this number of positions before it ...
    back: i64,
    /// ... by this share of the time to the end of the next call.
    share: f64,
}

/// Makes the records of a run, the same for the same seed, run and timing.
///
/// The calls are those of the rig's workload, stretched in time so that they end at a constant rate
/// and still nest. A record's timestamp is its call's end, which is when the record is due. The reader
/// computes the latency from it, whatever delayed the record.
#[derive(Debug)]
pub(super) struct Load {
    workload: Workload,
    executions: Executions,
    calls: Vec<Timed>,
    run: u32,
    timing: Timing,
}

impl Load {
    pub(super) fn new(seed: u64, run: u32, timing: Timing) -> Self {
        let mut workload = Workload::new(seed);
        let calls: Vec<Call> = workload.by_ref().take(DIFFERENT).collect();
        let ends: Vec<i64> = calls.iter().map(|call| call.tout).collect();
        let mut random = Random::new(seed ^ 0x7377_6565_7000);
        let calls = (0_i64..).zip(&calls).map(|(index, call)| {
            let behind = ends.partition_point(|end| *end <= call.tin);
            let (before, after) = (
                behind.checked_sub(1).and_then(|index| ends.get(index)),
                ends.get(behind),
            );
            let share = match (before, after) {
                (Some(before), Some(after)) => ratio(call.tin - before, after - before),
                _ => 0.5,
            };
            Timed {
                call: *call,
                jitter: random.unit(),
                back: index - (i64::try_from(behind).unwrap_or(0) - 1),
                share,
            }
        });
        Self {
            calls: calls.collect(),
            executions: Executions::new(&workload),
            workload,
            run,
            timing,
        }
    }

    pub(super) fn workload(&self) -> &Workload {
        &self.workload
    }

    pub(super) fn set_timing(&mut self, timing: Timing) {
        self.timing = timing;
    }

    fn timed(&self, position: i64) -> Option<&Timed> {
        let count = i64::try_from(self.calls.len()).unwrap_or(i64::MAX).max(1);
        self.calls
            .get(usize::try_from(position.rem_euclid(count)).unwrap_or(0))
    }

    /// When the record at this position is due, in nanoseconds since the Unix epoch.
    pub(super) fn due(&self, position: u64) -> i64 {
        match position {
            0 => self.timing.first_ns,
            position => self.end(i64::try_from(position).unwrap_or(i64::MAX)),
        }
    }

    fn end(&self, position: i64) -> i64 {
        let jitter = self.timed(position).map_or(0.0, |timed| timed.jitter);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "a run has fewer than 2^53 records and nanoseconds"
        )]
        let after = ((position as f64 - 1.0 + jitter) * self.timing.interval_ns) as i64;
        self.timing.start_ns.saturating_add(after)
    }

    /// The call at this position.
    pub(super) fn call(&self, position: u64) -> Call {
        let signed = i64::try_from(position).unwrap_or(i64::MAX);
        let Some(timed) = self.timed(signed) else {
            return Call::default();
        };
        let mut call = timed.call;
        let cycle = signed / i64::try_from(self.calls.len()).unwrap_or(i64::MAX).max(1);
        call.trace_id += (cycle << 16) + (i64::from(self.run) << RUN_BITS);
        call.tout = self.due(position);
        let before = self.end(signed - timed.back);
        let after = self.end(signed - timed.back + 1);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_precision_loss,
            reason = "between two times of a run"
        )]
        let into = ((after - before) as f64 * timed.share) as i64;
        call.tin = match position {
            // It is sent before the load, whose beginning is not fixed yet.
            0 => call.tout,
            _ => before.saturating_add(into).min(call.tout),
        };
        call
    }

    /// The record at this position.
    pub(super) fn record(&mut self, position: u64) -> &Execution {
        let call = self.call(position);
        self.executions.of(&call)
    }

    /// The checksum of the first records, as many as this.
    pub(super) fn checksum(&mut self, records: u64) -> Result<Checksum, Failure> {
        let mut builder = BatchBuilder::new();
        let mut checksum = Checksum::default();
        for position in 0..records {
            let pushed = builder.push(self.record(position));
            pushed.map_err(Failure::cannot("make the load"))?;
            if builder.len() >= 1_024 {
                checksum.add(&builder.take());
            }
        }
        checksum.add(&builder.take());
        Ok(checksum)
    }
}

/// Which run a trace is of.
pub(super) fn run_of(trace_id: i64) -> i64 {
    trace_id.wrapping_sub(FIRST_TRACE_ID) >> RUN_BITS
}

#[expect(clippy::cast_precision_loss, reason = "differences within a workload")]
fn ratio(part: i64, whole: i64) -> f64 {
    match whole {
        0 => 0.5,
        whole => part as f64 / whole as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing {
        first_ns: 1_700_000_000_000_000_000,
        start_ns: 1_700_000_001_000_000_000,
        interval_ns: 100_000.0,
    };

    #[test]
    fn records_are_due_at_the_rate_and_in_order() {
        let load = Load::new(1, 7, TIMING);
        let dues: Vec<i64> = (0..50_001).map(|position| load.due(position)).collect();
        assert!(dues.windows(2).all(|pair| pair[0] <= pair[1]));
        let last = dues[50_000] - TIMING.start_ns;
        assert!((4_999_900_000..=5_000_000_000).contains(&last), "{last}");
    }

    #[test]
    fn calls_end_when_they_are_due_and_begin_before_in_traces_of_the_run() {
        let load = Load::new(1, 7, TIMING);
        let mut long = 0;
        for position in 1..45_000 {
            let call = load.call(position);
            assert_eq!(call.tout, load.due(position));
            assert!(call.tin <= call.tout, "{call:?}");
            assert_eq!(run_of(call.trace_id), 7);
            long += u64::from(call.tout - call.tin > 1_000_000);
        }
        assert!(long > 2_000, "{long}");
    }

    #[test]
    fn the_same_seed_run_and_timing_make_the_same_load() {
        let sum = |run| Load::new(1, run, TIMING).checksum(3_000).unwrap();
        assert_eq!(sum(1), sum(1));
        assert_ne!(sum(1).hash, sum(2).hash);
        assert_eq!(sum(1).records, 3_000);
        // Record 0 is made before it is known when the others begin.
        let mut late = TIMING;
        late.start_ns += 7;
        let first = |timing| Load::new(1, 1, timing).checksum(1).unwrap();
        assert_eq!(first(TIMING), first(late));
        let mut later = TIMING;
        later.start_ns += 1;
        let later = Load::new(1, 1, later).checksum(3_000).unwrap();
        assert_ne!(sum(1).hash, later.hash);
    }
}
