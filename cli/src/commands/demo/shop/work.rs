//! What services spend their time on, and chance.

use std::hint::black_box;

/// Chance that is the same for a seed: xorshift64 (Marsaglia, 2003).
#[derive(Debug, Clone)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice of this seed.
    pub(crate) const fn new(seed: u64) -> Self {
        // The generator never leaves 0.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `sides`; 0 without sides.
    pub(super) fn roll(&mut self, sides: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let high = self.0 >> 32;
        u32::try_from((high * u64::from(sides)) >> 32).unwrap_or(0)
    }

    /// True in so many of 100 cases.
    pub(super) fn percent(&mut self, percent: u32) -> bool {
        self.roll(100) < percent
    }
}

/// Spends time as a computation would, in proportion to `units`.
pub(super) fn compute(units: u32) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for unit in 0..units.saturating_mul(64) {
        hash = (hash ^ u64::from(black_box(unit))).wrapping_mul(0x0100_0000_01b3);
    }
    black_box(hash)
}
