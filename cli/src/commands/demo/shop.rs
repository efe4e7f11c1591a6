//! A small shop whose services are probed: what the demo monitors.
//!
//! customers -> [`frontend`] -> [`catalog`], [`recommender`], [`cart`], [`inventory`], [`payment`]
//!
//! It knows nothing of monitoring but `#[probe]`.

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

/// What a customer sees.
mod frontend {
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
}

/// What there is to buy.
mod catalog {
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
}

/// What a customer is about to buy.
mod cart {
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
}

/// What else a customer may like.
mod recommender {
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
}

/// What is in stock.
mod inventory {
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
}

/// The payment provider.
mod payment {
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
}

/// What services spend their time on, and chance.
mod work {
    use std::hint::black_box;

    /// Chance that is the same for a seed: xorshift64 (Marsaglia, 2003).
    #[derive(Debug, Clone)]
    pub(crate) struct Dice(u64);

    impl Dice {
        /// Dice of this seed.
        pub(crate) const fn new(seed: u64) -> Self {
            // The generator never leaves 0.
            Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
        }

        /// A number below `sides`; 0 without sides.
        pub(super) fn roll(&mut self, sides: u32) -> u32 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            let high = self.0 >> 32;
            u32::try_from((high * u64::from(sides)) >> 32).unwrap_or(0)
        }

        /// True with this probability, in percent.
        pub(super) fn percent(&mut self, percent: u32) -> bool {
            self.roll(100) < percent
        }
    }

    /// Spends time as a computation would, in proportion to `units`.
    pub(super) fn compute(units: u32) -> u64 {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for unit in 0..units.saturating_mul(64) {
            hash = (hash ^ u64::from(black_box(unit))).wrapping_mul(0x0100_0000_01b3);
        }
        black_box(hash)
    }
}
