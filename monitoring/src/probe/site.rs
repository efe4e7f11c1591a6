//! A place in the program where calls are recorded.

use std::cell::Cell;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use baler_common::number::to_usize;
use baler_common::random::random_u32;
use baler_common::record::Interned;

use super::path::{class_of, declaring_class};
use crate::clock::NOT_IN_TICKS;
use crate::queue::KIND_CALL;

/// In a row's first word the number of its site comes after this number of bits.
pub(crate) const KIND_BITS: u32 = 8;

/// [`KIND_CALL`] in those bits.
#[expect(clippy::cast_possible_truncation, reason = "it is 1")]
const HEADER_KIND: u32 = KIND_CALL as u32;

/// Calls are not recorded.
pub(super) const OFF: u32 = 0;
/// It is not yet known whether calls are recorded. Negative, like every state that is not in ticks.
pub(super) const UNKNOWN: u32 = NOT_IN_TICKS;
/// Calls are published for the sampler of threads, but not recorded. Like the next two, it is
/// negative and no tag. So begin and end of a call leave the fast path without a check of its own.
pub(super) const SAMPLED: u32 = NOT_IN_TICKS | PUBLISHED;
/// Calls are recorded and published.
pub(super) const RECORDED_AND_SAMPLED: u32 = RECORDED_SLOWLY | PUBLISHED;
/// Calls are recorded, but not published.
pub(super) const RECORDED_SLOWLY: u32 = NOT_IN_TICKS | 2;

/// This bit distinguishes states in which calls are published.
const PUBLISHED: u32 = 1;

/// A place in the program where calls are recorded: one static a probe.
#[derive(Debug)]
pub struct Site {
    /// The tag of the queues into which calls are recorded, or one of the states above. One load
    /// gives all data that a call needs.
    state: AtomicU32,
    /// The number in the form of the rows of calls, once the site is registered. It never changes.
    header: AtomicU32,
    operation: Operation,
    /// Whether the sampler of threads may see calls.
    can_be_sampled: bool,
    /// Made at the first recorded call; after that a call writes only the site's number.
    signature: LazyString,
    /// Made at the first event.
    class: LazyString,
    /// The calls that were published while calls are counted.
    #[cfg(feature = "sampling")]
    calls: AtomicU32,
}

/// The number of a site in the program, from 1, in the order of their first calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SiteNumber(NonZeroU32);

impl SiteNumber {
    /// The first one.
    pub(super) const FIRST: Self = Self(NonZeroU32::MIN);

    /// Returns `None` beyond 16 million sites, whose probes alone would be gigabytes of machine
    /// code.
    pub(super) fn new(number: usize) -> Option<Self> {
        let number = u32::try_from(number).ok()?;
        let number = NonZeroU32::new(number)?;
        (number.get() < 1 << (u32::BITS - KIND_BITS)).then_some(Self(number))
    }

    /// The number, never 0.
    pub(super) const fn get(self) -> u32 {
        self.0.get()
    }

    /// The position among all sites, from 0.
    pub(super) fn index(self) -> usize {
        to_usize(self.0.get()) - 1
    }
}

#[derive(Debug)]
enum Operation {
    /// The whole signature.
    Named(&'static str),
    /// A function, with the part of the signature that the macro could make.
    Function {
        modifiers_and_return: &'static str,
        /// The type name of a function inside this one.
        here: fn() -> &'static str,
        name: &'static str,
        arguments: &'static str,
    },
}

impl Site {
    /// Creates a site with a signature of its own.
    pub const fn named(signature: &'static str) -> Self {
        Self::with(Operation::Named(signature))
    }

    /// Creates the site of a function; `here` returns the type name of a function declared in it.
    pub const fn new(
        modifiers_and_return: &'static str,
        here: fn() -> &'static str,
        name: &'static str,
        arguments: &'static str,
    ) -> Self {
        Self::with(Operation::Function {
            modifiers_and_return,
            here,
            name,
            arguments,
        })
    }

    const fn with(operation: Operation) -> Self {
        Self {
            state: AtomicU32::new(UNKNOWN),
            header: AtomicU32::new(0),
            operation,
            can_be_sampled: true,
            signature: LazyString::new(),
            class: LazyString::new(),
            #[cfg(feature = "sampling")]
            calls: AtomicU32::new(0),
        }
    }

    /// Hides calls from the sampler of threads: only some of them are probed, or they may end on
    /// another thread.
    pub const fn unsampled(self) -> Self {
        Self {
            can_be_sampled: false,
            ..self
        }
    }

    /// Returns the state that a call needs at its start.
    #[inline(always)]
    pub(super) fn state(&self) -> u32 {
        self.state.load(Ordering::Relaxed)
    }

    /// Returns the state that a call needs at its end, before it reads the first word of its row.
    #[inline(always)]
    pub(super) fn state_at_end(&self) -> u32 {
        // A call that sees a recording state also sees the header.
        self.state.load(Ordering::Acquire)
    }

    /// The first word of a call's row.
    #[inline(always)]
    pub(super) fn header(&self) -> u64 {
        u64::from(self.header.load(Ordering::Relaxed))
    }

    /// Returns the number, once the site is registered; for the registry.
    #[inline]
    pub(super) fn number(&self) -> Option<SiteNumber> {
        let number = self.header.load(Ordering::Relaxed) >> KIND_BITS;
        NonZeroU32::new(number).map(SiteNumber)
    }

    /// For the registry, once.
    pub(super) fn set_number(&self, number: SiteNumber) {
        let header = (number.get() << KIND_BITS) | HEADER_KIND;
        self.header.store(header, Ordering::Relaxed);
    }

    pub(super) const fn can_be_sampled(&self) -> bool {
        self.can_be_sampled
    }

    /// Whether calls that are recorded, or calls that are not, are published now. The site may have
    /// been switched since its caller found out which of them this one is.
    #[cfg(feature = "sampling")]
    pub(super) fn is_sampled(&self, is_recorded: bool) -> bool {
        match self.state() {
            SAMPLED => true,
            RECORDED_AND_SAMPLED => is_recorded,
            _ => false,
        }
    }

    #[cfg(feature = "sampling")]
    pub(super) fn count(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of counted calls; it wraps.
    #[cfg(feature = "sampling")]
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::Relaxed)
    }

    /// For the registry, under its lock.
    pub(super) fn set_state(&self, state: u32) {
        self.state.store(state, Ordering::Release);
    }

    #[cfg(test)]
    pub(super) fn is_unknown(&self) -> bool {
        self.state.load(Ordering::Relaxed) == UNKNOWN
    }

    pub(crate) fn signature(&self) -> Interned {
        self.signature.get(|| self.operation.signature())
    }

    /// Returns the class that declares the operation, from its signature.
    pub(super) fn class(&self) -> Interned {
        self.class
            .get(|| Interned::new(declaring_class(self.signature().as_str())))
    }
}

/// A string that is interned at its first use, perhaps by several threads at once.
///
/// With a `OnceLock` a thread could wait for another thread, which the child of a fork does not
/// have.
#[derive(Debug)]
struct LazyString(
    /// The handle's number plus one; 0 if there is no handle yet.
    AtomicU32,
);

impl LazyString {
    const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn get(&self, make: impl FnOnce() -> Interned) -> Interned {
        if let Some(number) = self.0.load(Ordering::Acquire).checked_sub(1) {
            return Interned::from_number(number);
        }
        let string = make();
        // Equal strings have equal handles.
        self.0
            .store(string.number().wrapping_add(1), Ordering::Release);
        string
    }
}

impl Operation {
    /// Returns the signature as Kieker writes it: `public Receipt shop.Shop.order(Basket, u32)`.
    fn signature(&self) -> Interned {
        match self {
            Self::Named(signature) => Interned::new(signature),
            Self::Function {
                modifiers_and_return,
                here,
                name,
                arguments,
            } => {
                let class = class_of(here());
                Interned::leaked(&format!(
                    "{modifiers_and_return} {class}.{name}({arguments})"
                ))
            }
        }
    }
}

/// A thread's count of the calls at one site: one call of a given number has its turn.
///
/// Each thread begins at a random position, so that threads with a few calls are sampled as well,
/// and equally often in the long run.
#[derive(Debug)]
pub struct Turns {
    /// Calls until the next turn, including that one; 0 if none was counted yet.
    left: Cell<u32>,
}

impl Turns {
    /// Before the first call.
    #[cfg_attr(
        feature = "enable",
        expect(clippy::new_without_default, reason = "made in a constant only")
    )]
    pub const fn new() -> Self {
        Self { left: Cell::new(0) }
    }

    /// Counts a call; returns whether it is one of every `of` calls that has its turn.
    #[inline]
    pub fn next(&self, of: u32) -> bool {
        let left = self.left.get();
        if left > 1 {
            self.left.set(left.wrapping_sub(1));
            return false;
        }
        self.turn(left, of)
    }

    #[cold]
    fn turn(&self, left: u32, of: u32) -> bool {
        if left == 1 {
            self.left.set(of);
            return true;
        }
        // 1 to `of`.
        self.left.set(random_u32() % of.max(1) + 1);
        self.next(of)
    }
}

#[cfg(test)]
mod tests;
