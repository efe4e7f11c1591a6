//! A small shop with probes in its services: the application that the demo monitors.
//!
//! customers -> [`frontend`] -> [`catalog`], [`recommender`], [`inventory`], [`payment`]
//!
//! Its only link to monitoring is `#[probe]`, which records events: they show failed calls.

use std::fmt;
use std::hint::black_box;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::random::Random;

/// The number of products.
const PRODUCTS: usize = 64;

/// The number of pieces in one delivery of a product.
const DELIVERY: u32 = 200;

/// The shop's state, shared by all threads that serve customers.
#[derive(Debug)]
pub(super) struct Shop {
    /// The number of pieces of each product in stock.
    shelves: Mutex<Vec<u32>>,
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

impl fmt::Display for ShopError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::CardDeclined => "the card is declined",
            Self::SoldOut => "the product is sold out",
        })
    }
}

/// The outcomes of the visits.
#[derive(Debug, Clone, Copy, serde::Serialize)]
pub(super) struct Visits {
    sold: u64,
    left_without: u64,
    failed: u64,
}

impl Shop {
    /// Creates a shop with full shelves.
    pub(super) fn new() -> Self {
        Self {
            shelves: Mutex::new(vec![DELIVERY; PRODUCTS]),
            sold: AtomicU64::new(0),
            left_without: AtomicU64::new(0),
            failed: AtomicU64::new(0),
        }
    }

    /// Serves one customer.
    pub(super) fn serve(&self, dice: &mut Random) {
        let counter = match frontend::visit(self, dice) {
            Ok(Some(_)) => &self.sold,
            Ok(None) => &self.left_without,
            Err(ShopError::CardDeclined | ShopError::SoldOut) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the outcomes of the visits so far.
    pub(super) fn visits(&self) -> Visits {
        Visits {
            sold: self.sold.load(Ordering::Relaxed),
            left_without: self.left_without.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
        }
    }
}

impl Visits {
    /// Returns the number of all visits.
    pub(super) fn total(self) -> u64 {
        self.sold + self.left_without + self.failed
    }
}

/// Spends time as a computation would, in proportion to `units`.
fn compute(units: usize) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for unit in 0..units as u64 * 64 {
        hash = (hash ^ black_box(unit)).wrapping_mul(0x0100_0000_01b3);
    }
    black_box(hash)
}

/// The pages of the shop.
mod frontend {
    use baler_monitoring::probe;

    use super::{Random, Shop, ShopError, catalog, compute, inventory, payment, recommender};

    /// Serves a visit: browse, fill a cart, perhaps buy. Returns the price paid, in cents.
    #[probe(record = events, err)]
    pub(super) fn visit(shop: &Shop, dice: &mut Random) -> Result<Option<usize>, ShopError> {
        let first = home(dice);
        let mut cart = vec![first];
        for _ in 0..dice.below(3) {
            cart.push(catalog::find(dice));
        }
        for suggestion in recommender::suggest(first, dice) {
            if dice.below(100) < 30 {
                cart.push(suggestion);
            }
        }
        if dice.below(100) < 25 {
            return Ok(None);
        }
        checkout(shop, &cart, dice).map(Some)
    }

    #[probe(record = events)]
    fn home(dice: &mut Random) -> usize {
        compute(32);
        catalog::find(dice)
    }

    #[probe(record = events, err)]
    fn checkout(shop: &Shop, cart: &[usize], dice: &mut Random) -> Result<usize, ShopError> {
        let cents = cart.iter().map(|product| catalog::price(*product)).sum();
        for product in cart {
            inventory::reserve(shop, *product)?;
        }
        payment::charge(cents, dice)?;
        compute(4);
        Ok(cents)
    }
}

/// The products on sale.
mod catalog {
    use baler_monitoring::probe;

    use super::{PRODUCTS, Random, compute};

    /// Picks a product at random.
    #[probe(record = events)]
    pub(super) fn find(dice: &mut Random) -> usize {
        compute(6);
        dice.below(PRODUCTS)
    }

    /// Returns a product's price, in cents.
    #[probe(record = events)]
    pub(super) fn price(product: usize) -> usize {
        compute(1);
        product * 37 % 9_900 + 99
    }
}

/// Recommendations of further products.
mod recommender {
    use baler_monitoring::probe;

    use super::{PRODUCTS, Random, compute};

    /// Returns two products that go with the given one.
    #[probe(record = events)]
    pub(super) fn suggest(product: usize, dice: &mut Random) -> [usize; 2] {
        [1, 2].map(|number| {
            rank(dice);
            (product + number * 7) % PRODUCTS
        })
    }

    #[probe(record = events)]
    fn rank(dice: &mut Random) -> u64 {
        // One in fifty misses the cache: the long tail of the table of operations.
        compute(if dice.below(100) < 2 { 400 } else { 8 })
    }
}

/// The stock of products.
mod inventory {
    use std::sync::PoisonError;

    use baler_monitoring::probe;

    use super::{DELIVERY, Shop, ShopError, compute};

    /// Takes a piece off the shelf. An empty shelf is an error and orders a delivery.
    #[probe(record = events, err)]
    pub(super) fn reserve(shop: &Shop, product: usize) -> Result<(), ShopError> {
        compute(3);
        let mut shelves = shop.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let shelf = &mut shelves[product];
        if *shelf == 0 {
            *shelf = DELIVERY;
            return Err(ShopError::SoldOut);
        }
        *shelf -= 1;
        Ok(())
    }
}

/// The payment provider.
mod payment {
    use baler_monitoring::probe;

    use super::{Random, ShopError, compute};

    /// Charges a card; three in a hundred are declined.
    #[probe(record = events, err)]
    pub(super) fn charge(cents: usize, dice: &mut Random) -> Result<(), ShopError> {
        authorize(cents);
        if dice.below(100) < 3 {
            return Err(ShopError::CardDeclined);
        }
        compute(10);
        Ok(())
    }

    #[probe(record = events)]
    fn authorize(cents: usize) -> u64 {
        compute(30 + cents % 20)
    }
}
