//! Random numbers from a seed.

/// Numbers from a seed: the same ones in every run and every process. SplitMix64 (Steele, Lea and
/// Flood 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// Creates the generator for this seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { state: mix(seed) }
    }

    /// Returns the next number in `low..=high`.
    pub(crate) const fn between(&mut self, low: u64, high: u64) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        low + mix(self.state) % (high - low + 1)
    }

    /// Returns the next index below `count`.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let index = self.between(0, count as u64 - 1);
        usize::try_from(index).expect("it is below a `usize`")
    }

    /// Returns `count` random bytes.
    pub(crate) fn bytes(&mut self, count: u64) -> Vec<u8> {
        let draw = |_| self.between(0, 0xff).to_le_bytes()[0];
        (0..count).map(draw).collect()
    }

    /// Shuffles values (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end + 1));
        }
    }
}

/// Spreads every bit over all others.
pub(crate) const fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}
