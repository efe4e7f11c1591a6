//! What one repetition measures.

use serde::{Deserialize, Serialize};

/// How many instrumented calls a batch has, about: it is what is timed, so that reading the clock
/// costs a call some hundredths of a nanosecond.
const BATCH_CALLS: u64 = 1_000;

/// What one repetition measures, in a process of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Case {
    /// The name of the [`Variant`](super::Variant).
    pub variant: String,
    /// How many threads call.
    pub threads: usize,
    /// How deep the calls nest: so many instrumented calls make one call from outside.
    pub depth: u32,
    /// How long the innermost call is busy, in nanoseconds.
    pub method_time_ns: u64,
    /// How many calls from outside each thread makes, those of the warm-up included.
    pub calls: u64,
    /// The part of the calls, from the first, that is not measured.
    pub warm_up: f64,
    /// How many instrumented calls a second all threads make together; `None`: back to back.
    pub rate: Option<f64>,
}

impl Case {
    /// How many calls from outside are timed together.
    pub fn batch_calls(&self) -> u64 {
        (BATCH_CALLS / u64::from(self.depth.max(1))).max(1)
    }

    /// How many batches a thread makes before it measures, and how many it measures.
    pub(super) fn batches(&self) -> (usize, usize) {
        let batches = self.calls.div_ceil(self.batch_calls()).max(1);
        let all = usize::try_from(batches).unwrap_or(usize::MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a count that was a usize"
        )]
        let warm_up = (all as f64 * self.warm_up.clamp(0.0, 1.0)) as usize;
        // One is measured in any case.
        let warm_up = warm_up.min(all.saturating_sub(1));
        (warm_up, all - warm_up)
    }

    /// How many instrumented calls all threads make, those of the warm-up included.
    pub fn instrumented_calls(&self) -> u64 {
        let (warm_up, measured) = self.batches();
        let batches = u64::try_from(warm_up + measured).unwrap_or(u64::MAX);
        let threads = u64::try_from(self.threads).unwrap_or(u64::MAX);
        [self.batch_calls(), u64::from(self.depth), threads]
            .into_iter()
            .fold(batches, u64::saturating_mul)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_have_a_thousand_instrumented_calls_and_the_first_half_is_warm_up() {
        let mut case = Case {
            variant: "none".into(),
            threads: 2,
            depth: 10,
            method_time_ns: 0,
            calls: 2_000,
            warm_up: 0.5,
            rate: None,
        };
        assert_eq!(case.batch_calls(), 100);
        assert_eq!(case.batches(), (10, 10));
        assert_eq!(case.instrumented_calls(), 40_000);
        // What does not come out even is rounded up to whole batches.
        case.calls = 1_001;
        assert_eq!(case.batches(), (5, 6));
        assert_eq!(case.instrumented_calls(), 22_000);
        case.depth = 2_000;
        assert_eq!(case.batch_calls(), 1);
        case.warm_up = 1.0;
        assert_eq!(case.batches(), (1_000, 1));
    }
}
