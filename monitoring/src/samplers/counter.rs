//! Counters that only grow, except when they do not.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// How far a counter of 32 bits may have got past its end for that to be the likely reason why it is
/// less than before; beyond it was reset.
const WRAPPED_AT_MOST: u64 = 1 << 30;

/// What a counter grew by; `None` if it was reset.
///
/// The kernel counts with 64 bits, but some drivers and all of its milliseconds with 32: one that is
/// less than before and was near the end of 32 bits went past it.
pub(super) fn growth(before: u64, now: u64) -> Option<u64> {
    if let Some(growth) = now.checked_sub(before) {
        return Some(growth);
    }
    let end = 1_u64 << 32;
    let left = end.checked_sub(before)?;
    let growth = left.saturating_add(now);
    (growth <= WRAPPED_AT_MOST).then_some(growth)
}

/// What all of these counters grew by; `None` if one of them was reset.
pub(super) fn growths<const N: usize>(before: &[u64; N], now: &[u64; N]) -> Option<[u64; N]> {
    let mut all = [0; N];
    for ((growth_of, before), now) in all.iter_mut().zip(before).zip(now) {
        *growth_of = growth(*before, *now)?;
    }
    Some(all)
}

/// The counters of things that come and go, such as disks.
#[derive(Debug)]
pub(super) struct Meters<const N: usize> {
    before: BTreeMap<String, Reading<N>>,
}

impl<const N: usize> Default for Meters<N> {
    fn default() -> Self {
        Self {
            before: BTreeMap::new(),
        }
    }
}

impl<const N: usize> Meters<N> {
    /// What was counted since the step before, and in which time; by name.
    ///
    /// What is new, or was away or reset, primes.
    pub(super) fn step(
        &mut self,
        at: Instant,
        now: BTreeMap<String, [u64; N]>,
    ) -> Vec<(String, [u64; N], Duration)> {
        self.before.retain(|name, _| now.contains_key(name));
        let mut all = Vec::new();
        for (name, counters) in now {
            let reading = Reading { at, counters };
            let before = self.before.insert(name.clone(), reading);
            if let Some((counted, time)) = before.and_then(|before| reading.since(&before)) {
                all.push((name, counted, time));
            }
        }
        all
    }
}

/// What counters showed and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reading<const N: usize> {
    pub(super) at: Instant,
    pub(super) counters: [u64; N],
}

impl<const N: usize> Reading<N> {
    /// What was counted since the reading before, and in which time; `None` if a counter was reset
    /// or no time has passed.
    pub(super) fn since(&self, before: &Self) -> Option<([u64; N], Duration)> {
        let time = self.at.checked_duration_since(before.at)?;
        let counted = growths(&before.counters, &self.counters)?;
        (!time.is_zero()).then_some((counted, time))
    }
}

/// As a rate per second.
pub(super) fn per_second(counted: u64, time: Duration) -> f64 {
    float(counted) / time.as_secs_f64()
}

/// Exact up to 2^53, which no counter reaches between two samples.
pub(super) fn float(number: u64) -> f64 {
    number as f64
}

/// As a field of Kieker's records.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn counters_grow_wrap_or_are_reset() {
        let end = u64::from(u32::MAX);
        assert_eq!(growth(5, 12), Some(7));
        assert_eq!(growth(end, 0), Some(1));
        assert_eq!(growth(end - 9, 90), Some(100));
        // A reset, of a small counter and of one beyond 32 bits.
        assert_eq!(growth(1_000, 3), None);
        assert_eq!(growth(end + 2, 3), None);
        assert_eq!(growth(u64::MAX, 0), None);
        assert_eq!(growths(&[1, 5], &[2, 4]), None);
        assert_eq!(growths(&[1, 5], &[2, 9]), Some([1, 4]));
    }

    #[test]
    fn times_below_a_second_count_as_what_they_are() {
        assert!((per_second(5, Duration::from_millis(100)) - 50.0).abs() < 1e-9);
        let at = Instant::now();
        let reading = |millis, counter| Reading {
            at: at + Duration::from_millis(millis),
            counters: [counter],
        };
        let hundred = Duration::from_millis(100);
        assert_eq!(reading(100, 7).since(&reading(0, 2)), Some(([5], hundred)));
        // No time has passed, or it went back.
        assert_eq!(reading(0, 7).since(&reading(0, 2)), None);
        assert_eq!(reading(0, 7).since(&reading(100, 2)), None);
    }

    #[test]
    fn what_comes_back_begins_anew() {
        let start = Instant::now();
        let mut meters = Meters::default();
        let mut step = |second, now: &[(&str, u64)]| {
            let now = now
                .iter()
                .map(|(name, counter)| ((*name).to_owned(), [*counter]));
            let at = start + Duration::from_secs(second);
            let all = meters.step(at, now.collect()).into_iter();
            all.map(|(name, [counted], time)| (name, counted, time.as_secs()))
                .collect::<Vec<_>>()
        };
        let counted = |name: &str, counted, seconds| (name.to_owned(), counted, seconds);
        assert_eq!(step(0, &[("a", 1), ("b", 1)]), []);
        assert_eq!(step(1, &[("b", 3), ("c", 9)]), [counted("b", 2, 1)]);
        assert_eq!(step(3, &[("a", 9), ("b", 4)]), [counted("b", 1, 2)]);
        assert_eq!(step(4, &[("a", 8), ("b", 4)]), [counted("b", 0, 1)]);
        assert_eq!(step(5, &[("a", 9)]), [counted("a", 1, 1)]);
    }

    proptest! {
        #[test]
        fn growth_is_never_more_than_what_can_be(before: u64, now: u64) {
            match growth(before, now) {
                Some(growth) if now >= before => prop_assert_eq!(growth, now - before),
                Some(growth) => prop_assert!(growth <= WRAPPED_AT_MOST),
                None => prop_assert!(now < before),
            }
        }
    }
}
