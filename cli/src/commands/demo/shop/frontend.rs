//! What a customer sees.

use baler_monitoring::probe;

use super::work::{Dice, compute};
use super::{Shop, ShopError, cart, catalog, payment, recommender};

/// A visit: browse, fill a cart, perhaps buy; yields what was paid, in cents.
#[probe]
pub(super) fn visit(shop: &Shop, dice: &mut Dice) -> Result<Option<u32>, ShopError> {
    let first = home(dice);
    let mut basket = cart::Cart::new();
    cart::add(&mut basket, first);
    for _ in 0..dice.roll(3) {
        let product = catalog::find(dice);
        cart::add(&mut basket, product);
    }
    for suggestion in recommender::suggest(first, dice) {
        if dice.percent(30) {
            cart::add(&mut basket, suggestion);
        }
    }
    if dice.percent(25) {
        return Ok(None);
    }
    checkout(shop, &basket, dice).map(Some)
}

#[probe]
fn home(dice: &mut Dice) -> u32 {
    compute(12);
    catalog::list(dice)
}

#[probe]
fn checkout(shop: &Shop, basket: &cart::Cart, dice: &mut Dice) -> Result<u32, ShopError> {
    let cents = cart::total(basket);
    for product in basket.products() {
        shop.inventory.reserve(*product)?;
    }
    payment::charge(cents, dice)?;
    compute(4);
    Ok(cents)
}
