//! In which order to measure.

use crate::failure::Failure;
use crate::random::Random;

/// The repetitions of a case, until one failed.
#[derive(Debug, Clone)]
pub struct Runs<S> {
    /// The result of each.
    pub samples: Vec<S>,
    /// Why there are no more.
    pub failure: Option<Failure>,
}

impl<S> Default for Runs<S> {
    fn default() -> Self {
        Self {
            samples: Vec::new(),
            failure: None,
        }
    }
}

/// Measures every case as often as `repetitions` says, in the order of [`interleaved`]. A case that
/// failed is not measured again, and the others go on.
///
/// `go_on` gets the number of finished repetitions and the number of all, and returns whether to go
/// on. A long measurement calls it in between. `all` has a value for each case.
///
/// # Errors
///
/// `go_on` said to stop.
pub fn in_rounds<C, S>(
    cases: &[C],
    (repetitions, seed): (usize, u64),
    all: &mut [Runs<S>],
    go_on: &mut dyn FnMut(usize, usize) -> bool,
    mut measure: impl FnMut(&C, &mut dyn FnMut() -> bool) -> Result<S, Failure>,
) -> Result<(), Failure> {
    let order = interleaved(cases.len(), repetitions, seed);
    for (number, index) in order.iter().enumerate() {
        let mut go_on = || go_on(number, order.len());
        let (Some(case), Some(runs)) = (cases.get(*index), all.get_mut(*index)) else {
            continue;
        };
        if runs.failure.is_none() {
            match measure(case, &mut go_on) {
                Ok(sample) => runs.samples.push(sample),
                Err(failure) => runs.failure = Some(failure),
            }
        }
        if !go_on() {
            return Err(Failure::new("stopped before everything was measured"));
        }
    }
    Ok(())
}

/// The order in which to measure `cases` cases `repetitions` times: in each round every case once, in
/// a random order.
///
/// A machine that is slower for a while then harms all cases alike, and no case always runs after the
/// same other one.
pub fn interleaved(cases: usize, repetitions: usize, seed: u64) -> Vec<usize> {
    let mut random = Random::new(seed);
    let mut order = Vec::with_capacity(cases.saturating_mul(repetitions));
    for _ in 0..repetitions {
        let mut round: Vec<usize> = (0..cases).collect();
        // Fisher and Yates, from the end.
        for last in (1..cases).rev() {
            round.swap(last, random.below(last + 1));
        }
        order.extend(round);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_case_once_and_an_order_of_its_own() {
        let order = interleaved(20, 3, 1);
        let rounds: Vec<Vec<usize>> = order.chunks(20).map(<[usize]>::to_vec).collect();
        for round in &rounds {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..20));
        }
        assert_eq!(rounds.len(), 3);
        assert_ne!(rounds[0], rounds[1]);
        assert_eq!(order, interleaved(20, 3, 1));
        assert_ne!(order, interleaved(20, 3, 2));
    }
}
