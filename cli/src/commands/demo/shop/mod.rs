//! A small shop whose services are probed: what the demo monitors.
//!
//! customers -> [`frontend`] -> [`catalog`], [`recommender`], [`cart`], [`inventory`], [`payment`]
//!
//! It knows nothing of monitoring but `#[probe]`.

mod cart;
mod catalog;
mod frontend;
mod inventory;
mod payment;
mod recommender;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};

use inventory::Inventory;
pub(super) use work::Dice;

/// How many products there are.
const PRODUCTS: u32 = 64;

/// The shop's state, shared by all threads that serve customers.
#[derive(Debug)]
pub(super) struct Shop {
    inventory: Inventory,
    sold: AtomicU64,
    left_without: AtomicU64,
    failed: AtomicU64,
}

/// Why a visit failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShopError {
    CardDeclined,
    SoldOut,
}

/// What came of the visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub(super) struct Visits {
    sold: u64,
    left_without: u64,
    failed: u64,
}

impl Shop {
    /// A shop with full shelves.
    pub(super) fn new() -> Self {
        Self {
            inventory: Inventory::new(),
            sold: AtomicU64::new(0),
            left_without: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Serves one customer.
    pub(super) fn serve(&self, dice: &mut Dice) {
        let counter = match frontend::visit(self, dice) {
            Ok(Some(_)) => &self.sold,
            Ok(None) => &self.left_without,
            Err(ShopError::CardDeclined | ShopError::SoldOut) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// What came of the visits so far.
    pub(super) fn visits(&self) -> Visits {
        Visits {
            sold: self.sold.load(Ordering::Relaxed),
            left_without: self.left_without.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl Visits {
    /// All of them.
    pub(super) fn total(self) -> u64 {
        self.sold
            .saturating_add(self.left_without)
            .saturating_add(self.failed)
    }
}

impl std::fmt::Display for Visits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}: {} bought, {} only looked, {} failed",
            self.total(),
            self.sold,
            self.left_without,
            self.failed
        )
    }
}
