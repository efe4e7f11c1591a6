//! Sampling: one call of a given number.

use std::cell::Cell;

use crate::controller::random;

/// A thread's count of the calls at one site: one call of a given number has its turn.
///
/// Each thread begins at random, so that threads of a few calls each are sampled as well, and as
/// often in the long run.
#[derive(Debug)]
pub struct Turns {
    /// Calls until the next turn, that one included; 0 if none was counted yet.
    left: Cell<u32>,
}

impl Turns {
    /// Before the first call.
    #[cfg_attr(
        feature = "enable",
        expect(clippy::new_without_default, reason = "made in a constant only")
    )]
    pub const fn new() -> Self {
        Self { left: Cell::new(0) }
    }

    /// Counts a call; whether it is the turn of this one, as of every `of`th.
    #[inline]
    pub fn next(&self, of: u32) -> bool {
        let left = self.left.get();
        if left > 1 {
            self.left.set(left.wrapping_sub(1));
            return false;
        }
        self.turn(left, of)
    }

    #[cold]
    fn turn(&self, left: u32, of: u32) -> bool {
        if left == 1 {
            self.left.set(of);
            return true;
        }
        let random = random() % u64::from(of.max(1));
        // 1 to `of`.
        let first = u32::try_from(random).unwrap_or(0).saturating_add(1);
        self.left.set(first);
        self.next(of)
    }
}

#[cfg(test)]
mod tests;
