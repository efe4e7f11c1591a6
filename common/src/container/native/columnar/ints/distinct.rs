//! Counting different lanes, roughly: enough to tell that a dictionary cannot be worth it.

use super::narrow::Lane;
use crate::container::num::to_usize;

/// How many bits lanes are hashed to.
const BITS: usize = 1 << 13;

/// How many lanes are looked at: with more of them the bits fill up.
const SAMPLE: usize = BITS / 2;

/// A number that no more lanes are different than there are; where all of several hundred differ,
/// it is nearly as large.
///
/// Without a branch a lane, which a search for equal ones would have.
pub(super) fn at_least<L: Lane>(lanes: &[L], first: u64) -> usize {
    let mut seen = [0_u64; BITS / 64];
    for lane in lanes.iter().take(SAMPLE) {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the lane.
        let hash = lane.wide(first).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51;
        if let Some(word) = seen.get_mut(to_usize(hash >> 6)) {
            *word |= 1 << (hash & 63);
        }
    }
    let bits = seen.iter().map(|word| word.count_ones()).sum::<u32>();
    to_usize(bits.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_are_counted_than_there_are_and_most_of_many() {
        let numbers: Vec<u64> = (0_u64..9_000).map(|n| n * n * n).collect();
        for different in [1, 2, 3, 10, 100, 1_000, 2_000] {
            let lanes: Vec<u64> = numbers[..different].repeat(3);
            let found = at_least(&lanes, 0);
            assert!(found <= different, "{found} of {different}");
            assert!(found >= different * 3 / 4, "{found} of {different}");
        }
        assert!(at_least(&numbers, 0) > SAMPLE / 2);
    }
}
