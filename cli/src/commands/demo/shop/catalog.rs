//! What there is to buy.

use baler_monitoring::probe;

use super::PRODUCTS;
use super::work::{Dice, compute};

/// A page of products; yields the one that caught the eye.
#[probe]
pub(super) fn list(dice: &mut Dice) -> u32 {
    compute(20);
    find(dice)
}

/// One product.
#[probe]
pub(super) fn find(dice: &mut Dice) -> u32 {
    compute(6);
    dice.roll(PRODUCTS)
}

/// A product's price, in cents.
#[probe]
pub(super) fn price(product: u32) -> u32 {
    compute(1);
    product.saturating_mul(37) % 9_900 + 99
}
