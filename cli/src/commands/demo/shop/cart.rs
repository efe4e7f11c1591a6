//! What a customer is about to buy.

use baler_monitoring::probe;

use super::catalog;
use super::work::compute;

/// A cart.
#[derive(Debug)]
pub(super) struct Cart {
    products: Vec<u32>,
}

impl Cart {
    /// An empty cart.
    pub(super) const fn new() -> Self {
        Self {
            products: Vec::new(),
        }
    }

    /// What is in it.
    pub(super) fn products(&self) -> &[u32] {
        &self.products
    }
}

/// Puts a product into a cart.
#[probe]
pub(super) fn add(cart: &mut Cart, product: u32) {
    compute(2);
    cart.products.push(product);
}

/// What everything in a cart costs together, in cents.
#[probe]
pub(super) fn total(cart: &Cart) -> u32 {
    let prices = cart.products.iter().map(|product| catalog::price(*product));
    prices.fold(0, u32::saturating_add)
}
