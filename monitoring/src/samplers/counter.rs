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
mod tests;
