//! What is in stock.

use std::sync::{Mutex, PoisonError};

use baler_monitoring::probe;

use super::work::compute;
use super::{PRODUCTS, ShopError};

/// How many pieces of a product a delivery brings.
const DELIVERY: u32 = 200;

/// The shelves.
#[derive(Debug)]
pub(super) struct Inventory {
    pieces: Mutex<Vec<u32>>,
}

impl Inventory {
    /// Full shelves.
    pub(super) fn new() -> Self {
        Self {
            pieces: Mutex::new((0..PRODUCTS).map(|_| DELIVERY).collect()),
        }
    }

    /// Takes a piece off the shelf. An empty shelf is an error and orders a delivery.
    #[probe]
    pub(super) fn reserve(&self, product: u32) -> Result<(), ShopError> {
        compute(3);
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = usize::try_from(product)
            .ok()
            .and_then(|position| pieces.get_mut(position))
            .ok_or(ShopError::SoldOut)?;
        if *shelf == 0 {
            *shelf = DELIVERY;
            return Err(ShopError::SoldOut);
        }
        *shelf -= 1;
        Ok(())
    }
}
