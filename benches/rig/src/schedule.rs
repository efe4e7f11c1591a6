//! In which order to measure.

use crate::random::Random;

/// The order in which to measure `cases` things `repetitions` times: every thing once, in an order
/// of its own, before any of them comes again.
///
/// A machine that grows slower meanwhile, or is disturbed for a while, then harms all of them
/// alike, and no thing always runs behind the same other one.
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
