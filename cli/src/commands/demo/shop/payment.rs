//! The payment provider.

use baler_monitoring::probe;

use super::ShopError;
use super::work::{Dice, compute};

/// Charges a card; three in a hundred are declined.
#[probe]
pub(super) fn charge(cents: u32, dice: &mut Dice) -> Result<(), ShopError> {
    authorize(cents);
    if dice.percent(3) {
        return Err(ShopError::CardDeclined);
    }
    compute(10);
    Ok(())
}

#[probe]
fn authorize(cents: u32) -> u64 {
    compute(30 + cents % 20)
}
