//! Random numbers that are the same for a seed on every machine and in every version.

/// `SplitMix64` (Steele, Lea, Flood 2014): small, quick, and good enough to make load.
///
/// Its own code rather than a crate's: a crate may change its stream with a new version, and then
/// old and new results could not be compared.
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in `0..bound`; 0 for a bound of 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        // The high half of a product: Lemire's method without its rejection, whose bias is below
        // 2^-32 for the bounds used here.
        let product = u128::from(self.next()) * (bound as u128);
        usize::try_from(product >> 64).unwrap_or(0)
    }

    /// Uniform in `[0, 1)`.
    pub(crate) fn unit(&mut self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "53 bits fit exactly")]
        let mantissa = (self.next() >> 11) as f64;
        mantissa / 9_007_199_254_740_992.0
    }

    /// Standard normal (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}
