//! Many short random histories of one state machine. A seed repeats each of them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// The variable with the number of histories; set it to a million with an optimised build.
const COUNT: &str = "BALER_SCHEDULES";

/// The variable with the seed of the only history to run.
const SEED: &str = "BALER_SCHEDULE_SEED";

/// Runs `history` with the seeds from 0 on. `BALER_SCHEDULES` is their number; the default is
/// `few`, as many as a build without optimisation runs in a few seconds. With
/// `BALER_SCHEDULE_SEED`, runs only this seed.
///
/// # Panics
///
/// A history panicked; the line before names its seed.
#[expect(clippy::print_stderr, reason = "a failed test says how to repeat it")]
pub fn each_schedule(few: u64, history: impl Fn(&mut Dice)) {
    let number = |name| {
        let text = std::env::var(name).ok()?;
        Some(text.parse::<u64>().expect("a whole number"))
    };
    let seeds = match number(SEED) {
        Some(seed) => seed..seed + 1,
        None => 0..number(COUNT).unwrap_or(few),
    };
    for seed in seeds {
        let run = || history(&mut Dice::new(seed));
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            eprintln!("repeat it with {SEED}={seed}");
            resume_unwind(panic);
        }
    }
}

/// Random choices that depend only on their seed (splitmix64, Steele and others 2014).
#[derive(Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// Creates dice with this seed.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns a number from 0 to below `bound`, which is at least 1.
    pub fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % bound as u64).expect("it is below `bound`")
    }

    /// Returns true once in `times` on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Takes one of the items out, if there is one.
    pub fn draw<T>(&mut self, items: &mut Vec<T>) -> Option<T> {
        if items.is_empty() {
            return None;
        }
        let index = self.below(items.len());
        Some(items.swap_remove(index))
    }
}

#[cfg(test)]
mod tests;
