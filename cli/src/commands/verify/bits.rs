//! Sets of dense numbers.

/// A set of numbers, one bit each.
#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    words: Vec<u64>,
}

/// The largest number that a set takes: what is beyond it was never issued by anybody.
pub(super) const MOST: u64 = 1 << 36;

impl Bits {
    /// Adds a number; whether it is new. A number above [`MOST`] is never new.
    pub(super) fn insert(&mut self, number: u64) -> bool {
        if number > MOST {
            return false;
        }
        let at = usize::try_from(number / 64).unwrap_or(usize::MAX);
        if at >= self.words.len() {
            self.words.resize(at.saturating_add(1), 0);
        }
        let bit = 1_u64 << (number % 64);
        match self.words.get_mut(at) {
            Some(word) if *word & bit == 0 => {
                *word |= bit;
                true
            }
            _ => false,
        }
    }

    /// Whether the number is in it.
    pub(super) fn contains(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64)
            .ok()
            .and_then(|at| self.words.get(at));
        word.is_some_and(|word| word & (1_u64 << (number % 64)) != 0)
    }

    /// How many numbers of this set are not in the other one.
    pub(super) fn missing_from(&self, other: &Self) -> u64 {
        let others = other.words.iter().copied().chain(std::iter::repeat(0));
        let words = self.words.iter().zip(others);
        words
            .map(|(word, other)| u64::from((word & !other).count_ones()))
            .sum()
    }

    /// The first numbers of this set that are not in the other one.
    pub(super) fn first_missing_from(&self, other: &Self, count: usize) -> Vec<u64> {
        let last = u64::try_from(self.words.len())
            .unwrap_or(u64::MAX)
            .saturating_mul(64);
        (0..last)
            .filter(|number| self.contains(*number) && !other.contains(*number))
            .take(count)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_count_what_is_new_and_what_is_missing() {
        let (mut all, mut some) = (Bits::default(), Bits::default());
        for number in 0..200 {
            assert!(all.insert(number));
            assert!(!all.insert(number));
            if number != 3 && number != 130 {
                some.insert(number);
            }
        }
        some.insert(10_000);
        assert_eq!(all.missing_from(&some), 2);
        assert_eq!(all.first_missing_from(&some, 9), [3, 130]);
        assert_eq!(some.missing_from(&all), 1);
        assert!(!all.insert(u64::MAX));
    }
}
