//! What else a customer may like.

use baler_monitoring::probe;

use super::PRODUCTS;
use super::work::{Dice, compute};

/// Two products that go with another; ranking them takes a while now and then.
#[probe]
pub(super) fn suggest(product: u32, dice: &mut Dice) -> [u32; 2] {
    [1, 2].map(|number| {
        let candidate = (product + number * 7) % PRODUCTS;
        rank(candidate, dice);
        candidate
    })
}

#[probe]
fn rank(candidate: u32, dice: &mut Dice) -> u64 {
    // One in fifty misses the cache: the long tail of the table of operations.
    compute(if dice.percent(2) { 400 } else { 8 }) ^ u64::from(candidate)
}
