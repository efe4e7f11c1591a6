//! Numbers from a seed: the same ones in every run and every process.

/// SplitMix64 (Steele, Lea and Flood 2014): each number is a hash of its position.
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    /// The numbers of this seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number.
    pub(super) const fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// The next number in `low..=high`.
    pub(super) const fn between(&mut self, low: u64, high: u64) -> u64 {
        let span = high.saturating_sub(low).saturating_add(1);
        low.saturating_add(match self.next().checked_rem(span) {
            Some(rest) => rest,
            None => 0,
        })
    }

    /// So many bytes.
    pub(super) fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(count.saturating_add(8));
        while bytes.len() < count {
            bytes.extend(self.next().to_le_bytes());
        }
        bytes.truncate(count);
        bytes
    }

    /// Puts values in another order (Fisher and Yates).
    pub(super) fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            let most = u64::try_from(end).unwrap_or(u64::MAX);
            let other = usize::try_from(self.between(0, most)).unwrap_or(end);
            values.swap(end, other.min(end));
        }
    }
}

/// Spreads every bit over all others.
pub(super) const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_everything() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            let mut order: Vec<u32> = (0..50).collect();
            random.shuffle(&mut order);
            (order, random.bytes(13), random.between(3, 7))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let (mut order, bytes, number) = draw(1);
        order.sort_unstable();
        assert_eq!(order, (0..50).collect::<Vec<u32>>());
        assert_eq!(bytes.len(), 13);
        assert!((3..=7).contains(&number));
    }
}
