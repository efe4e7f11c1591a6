//! The totals of one thread's calls at one site, and the histogram of their durations.
//!
//! One thread writes, the collector reads meanwhile, and neither waits for the other:
//!
//! - The owner publishes the number of a call before it adds it (`begun`) and after it (`count`).
//!   So a reader sees whether the owner was in between (a sequence lock, after H. Boehm, "Can
//!   seqlocks get along with programming language memory models?").
//! - The reader changes none of the totals. The sums grow, and the reader remembers what it has
//!   taken.
//! - Minimum and maximum cannot be subtracted. Therefore the reader also asks the owner to start
//!   over, by taking back `ticket`. The owner's next call sees this. It keeps the calls that the
//!   reader has not taken (those between the request and this call) and starts over with them.
//!   The request does not disturb a sleeping owner: its totals do not change.

use std::sync::PoisonError;

use baler_common::number::to_usize;
use baler_common::record::timing::LogLinear;

use crate::clock::{is_in_ticks, nanoseconds_a_tick, tag_of};
use crate::probe::site::SiteNumber;
use crate::queue::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering, fence};

/// How often a reader that finds the owner at work tries again before it leaves the cell until the
/// next time.
const LOOKS: usize = if cfg!(all(test, baler_loom)) {
    2
} else {
    1_000
};

/// This is neither a tag of queues nor a state of a site.
const ASKED: u32 = 1;

/// The totals of one thread's calls at one site. It is never freed, but reused.
#[derive(Debug)]
#[repr(align(128))]
pub(super) struct Cell {
    /// The tag of the queues whose collector takes it; [`ASKED`] asks the owner to start over.
    ticket: AtomicU32,
    /// The number of the call that is being added, or was added last.
    begun: AtomicU64,
    /// The number of the call that was added last.
    count: AtomicU64,
    sum: AtomicU64,
    min: AtomicU64,
    max: AtomicU64,
    /// The start of the first call, and the end of the last one.
    tin: AtomicU64,
    tout: AtomicU64,
    /// Nanoseconds a tick, as the bits of a floating-point number.
    rate: AtomicU64,
    histogram: Option<Histogram>,
    accounts: Mutex<Accounts>,
}

/// The accounts of the reader, and of an owner that starts over.
#[derive(Debug)]
struct Accounts {
    site: SiteNumber,
    /// The key of the queues to which the content belongs.
    key: u64,
    /// The part of the content that was taken.
    taken: CallTotals,
}

/// Totals of calls; times are in the unit of the controller's clock.
#[derive(Debug, Clone)]
pub(crate) struct CallTotals {
    pub(crate) count: u64,
    pub(crate) sum: u64,
    pub(crate) min: u64,
    pub(crate) max: u64,
    pub(crate) tin: u64,
    pub(crate) tout: u64,
    /// Indexed by bucket: in a cell by [`bucket_of`], elsewhere by [`LogLinear`]. Empty without a
    /// histogram.
    pub(crate) buckets: Vec<u64>,
}

impl CallTotals {
    const EMPTY: Self = Self {
        count: 0,
        sum: 0,
        min: u64::MAX,
        max: 0,
        tin: u64::MAX,
        tout: 0,
        buckets: Vec::new(),
    };

    /// Returns the totals since `taken`.
    ///
    /// For a single call they are exact. For more calls, minimum and maximum may come from calls
    /// that were taken before: they are never too narrow, and exact over both.
    fn since(mut self, taken: &Self) -> Self {
        if taken.count == 0 {
            return self;
        }
        // Sums wrap, as in `count_call`.
        self.count = self.count.wrapping_sub(taken.count);
        self.sum = self.sum.wrapping_sub(taken.sum);
        for (bucket, taken) in self.buckets.iter_mut().zip(&taken.buckets) {
            *bucket = bucket.wrapping_sub(*taken);
        }
        if self.count == 1 {
            self.min = self.sum;
            self.max = self.sum;
        }
        self.tin = taken.tout;
        self
    }

    fn in_log_linear(mut self) -> Self {
        if self.buckets.is_empty() {
            return self;
        }
        let mut buckets = vec![0_u64; LogLinear::BUCKETS];
        for (bucket, calls) in self.buckets.iter().enumerate() {
            if let Some(sum) = buckets.get_mut(log_linear(bucket)) {
                *sum += *calls;
            }
        }
        self.buckets = buckets;
        self
    }
}

/// Loom's atomics cannot be made in a constant.
macro_rules! const_but_for_loom {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        #[cfg(not(all(test, baler_loom)))]
        $(#[$attribute])*
        $visibility const fn $($rest)*
        #[cfg(all(test, baler_loom))]
        $(#[$attribute])*
        $visibility fn $($rest)*
    };
}

impl Cell {
    /// Returns an empty cell, with or without a histogram.
    pub(super) fn new(site: SiteNumber, has_histogram: bool) -> Self {
        Self::with(site, has_histogram.then(empty_histogram))
    }

    const_but_for_loom! {
    /// Returns an empty cell with this histogram.
    pub(super) fn with(site: SiteNumber, histogram: Option<Histogram>) -> Self {
        Self {
            ticket: AtomicU32::new(ASKED),
            begun: AtomicU64::new(0),
            count: AtomicU64::new(0),
            sum: AtomicU64::new(0),
            min: AtomicU64::new(u64::MAX),
            max: AtomicU64::new(0),
            tin: AtomicU64::new(u64::MAX),
            tout: AtomicU64::new(0),
            rate: AtomicU64::new(0),
            histogram,
            accounts: Mutex::new(Accounts {
                site,
                key: 0,
                taken: CallTotals::EMPTY,
            }),
        }
    }
    }

    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a call. Only the owner may call it.
    ///
    /// `nanoseconds` is for the histogram, if there is one.
    pub(super) fn add(&self, key: u64, tin: u64, tout: u64, nanoseconds: Option<u64>) {
        if !self.is_for(tag_of(key)) {
            self.begin_anew(key, tin);
        }
        let bucket = nanoseconds.and_then(|nanoseconds| {
            let bucket = match nanoseconds {
                0 => ZERO_BUCKET,
                _ => bucket_of(to_f64(nanoseconds.min(LONGEST))),
            };
            self.histogram.as_ref()?.get(bucket)
        });
        self.count_call(tout.saturating_sub(tin), tout, bucket);
    }

    /// Whether the owner may add a call for the queues with this tag without starting over.
    #[inline(always)]
    fn is_for(&self, tag: u32) -> bool {
        self.ticket.load(Ordering::Relaxed) == tag
    }

    /// Adds a call between two ticks in the usual case; returns whether it did. A marked time is
    /// unusual. Only the owner may call it.
    #[inline(always)]
    pub(super) fn add_fast<const HISTOGRAM: bool>(&self, tag: u32, tin: u64, tout: u64) -> bool {
        // A marked time is greater. A duration of 0 has no exponent.
        if tout <= tin {
            return false;
        }
        let duration = tout.wrapping_sub(tin);
        if !self.is_for(tag) {
            return false;
        }
        let bucket = if HISTOGRAM {
            let rate = f64::from_bits(self.rate.load(Ordering::Relaxed));
            let bucket = bucket_of(to_f64(duration) * rate);
            // Without a histogram.
            let Some(bucket) = self.histogram.as_ref().and_then(|all| all.get(bucket)) else {
                return false;
            };
            Some(bucket)
        } else {
            None
        };
        self.count_call(duration, tout, bucket);
        true
    }

    /// Counts a call for which there is room, and a call in its bucket.
    #[inline(always)]
    fn count_call(&self, duration: u64, tout: u64, bucket: Option<&AtomicU64>) {
        // Only the owner writes, so a load and a store are as good as an atomic addition, and
        // cheaper.
        let add = |word: &AtomicU64, more: u64, order| {
            word.store(word.load(Ordering::Relaxed).wrapping_add(more), order);
        };
        add(&self.begun, 1, Ordering::Relaxed);
        fence(Ordering::Release);
        add(&self.sum, duration, Ordering::Relaxed);
        if duration < self.min.load(Ordering::Relaxed) {
            self.min.store(duration, Ordering::Relaxed);
        }
        if duration > self.max.load(Ordering::Relaxed) {
            self.max.store(duration, Ordering::Relaxed);
        }
        self.tout.store(tout, Ordering::Relaxed);
        if let Some(bucket) = bucket {
            add(bucket, 1, Ordering::Relaxed);
        }
        add(&self.count, 1, Ordering::Release);
    }

    /// Starts over with the calls that were not taken, as the owner.
    #[cold]
    #[inline(never)]
    fn begin_anew(&self, key: u64, tin: u64) {
        let mut accounts = self.accounts();
        let mut rest = if accounts.key == key {
            self.load().since(&accounts.taken)
        } else {
            // The collector of this content has ended without taking it: monitoring was off.
            CallTotals::EMPTY
        };
        if rest.count == 0 {
            rest = CallTotals {
                tin,
                ..CallTotals::EMPTY
            };
        }
        accounts.key = key;
        accounts.taken = CallTotals::EMPTY;
        self.store(&rest);
        if is_in_ticks(key) {
            let rate = nanoseconds_a_tick().to_bits();
            self.rate.store(rate, Ordering::Relaxed);
        }
        self.ticket.store(tag_of(key), Ordering::Relaxed);
    }

    /// Takes the totals since the last time, if they belong to the queues with this key, and asks
    /// the owner to start over.
    pub(super) fn take(&self, key: u64, take: &mut impl FnMut(SiteNumber, CallTotals)) {
        let mut accounts = self.accounts();
        if accounts.key != key {
            return;
        }
        let site = accounts.site;
        self.ticket.store(ASKED, Ordering::Relaxed);
        // Calls that the owner adds before it sees the request are taken now or the next time.
        fence(Ordering::SeqCst);
        let Some(content) = self.look() else {
            return;
        };
        let news = content.clone().since(&accounts.taken);
        if news.count > 0 {
            take(site, news.in_log_linear());
            accounts.taken = content;
        }
    }

    /// Returns its content; `None` if the owner was at work all the time.
    fn look(&self) -> Option<CallTotals> {
        (0..LOOKS).find_map(|_| {
            let count = self.count.load(Ordering::Acquire);
            let content = self.load();
            fence(Ordering::Acquire);
            let begun = self.begun.load(Ordering::Relaxed);
            if begun == count && content.count == count {
                return Some(content);
            }
            std::hint::spin_loop();
            None
        })
    }

    fn load(&self) -> CallTotals {
        let load = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let histogram = self.histogram.as_ref();
        CallTotals {
            count: load(&self.count),
            sum: load(&self.sum),
            min: load(&self.min),
            max: load(&self.max),
            tin: load(&self.tin),
            tout: load(&self.tout),
            buckets: histogram.map_or_else(Vec::new, |it| it.iter().map(load).collect()),
        }
    }

    /// Replaces its content; the caller is the owner and holds the accounts.
    fn store(&self, content: &CallTotals) {
        self.sum.store(content.sum, Ordering::Relaxed);
        self.min.store(content.min, Ordering::Relaxed);
        self.max.store(content.max, Ordering::Relaxed);
        self.tin.store(content.tin, Ordering::Relaxed);
        self.tout.store(content.tout, Ordering::Relaxed);
        let buckets = content.buckets.iter().copied().chain(std::iter::repeat(0));
        for (bucket, calls) in self.histogram.iter().flat_map(|it| it.iter()).zip(buckets) {
            bucket.store(calls, Ordering::Relaxed);
        }
        self.begun.store(content.count, Ordering::Relaxed);
        self.count.store(content.count, Ordering::Relaxed);
    }
}

/// The histogram of a cell, indexed by [`bucket_of`].
pub(super) type Histogram = Box<[AtomicU64; BUCKETS]>;

/// A bucket for each value of the four bits after the leading one, and each power of two up to
/// 2^63.
pub(super) const BUCKETS: usize = if cfg!(all(test, baler_loom)) {
    2
} else {
    64 << 4
};

/// The bucket for zero: the bucket of 2^63 nanoseconds, nearly 300 years, which no call takes.
const ZERO_BUCKET: usize = 62 << 4;

/// Powers of two from here on (73 years) stand for fractions of a nanosecond, that is, a few ticks:
/// only the lowest bits of the exponent are kept.
const FRACTION: usize = 61;

/// Longer calls count as one of this number of nanoseconds.
const LONGEST: u64 = 1 << (FRACTION - 1);

/// Returns the bucket in a cell for a number of nanoseconds above 0: the lowest bits of the
/// exponent and the leading bits of the number. In a floating-point number a processor finds them
/// by a shift.
///
/// Each of these buckets is within one of
/// [`LogLinear`](baler_common::record::timing::LogLinear), see [`log_linear`].
#[inline(always)]
fn bucket_of(nanoseconds: f64) -> usize {
    let bits = to_usize(nanoseconds.to_bits() >> 48);
    // Shows the compiler that this bucket exists.
    bits % BUCKETS
}

/// Returns the bucket of [`LogLinear`](baler_common::record::timing::LogLinear) that holds this
/// bucket of a cell.
fn log_linear(bucket: usize) -> usize {
    // The exponent of 1 is 1,023.
    let (exponent, leading) = (((bucket >> 4) + 1) % 64, (bucket & 15) | 16);
    if exponent >= FRACTION {
        return 0;
    }
    match exponent.checked_sub(4) {
        Some(above) => (above << 4) + leading,
        None => leading >> (4 - exponent),
    }
}

fn empty_histogram() -> Histogram {
    Box::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

/// Converts as a signed number, for which there is one instruction. Durations are less than half of
/// all numbers.
#[inline(always)]
#[expect(clippy::cast_precision_loss, reason = "a bucket has four leading bits")]
fn to_f64(duration: u64) -> f64 {
    (duration as i64) as f64
}

#[cfg(test)]
#[cfg(not(baler_loom))]
mod tests;
