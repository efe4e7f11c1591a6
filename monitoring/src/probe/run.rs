//! Bodies of functions that are run as calls.
//!
//! What `#[probe]` makes of a function calls the body, a closure, in up to three places:
//!
//! - while nothing is recorded, as if there were no probe;
//! - between the beginning and the end of a call of which nothing is unusual;
//! - far away, with a guard that knows all cases ([`run_slowly`]).
//!
//! The last one is the last thing that the function does, so that no argument has to be kept over a
//! call that hardly ever takes place.

use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::LocalKey;

use super::aggregate::{self, CellSlot};
use super::record::Begun;
use super::site::{OFF, Site};
use super::{duration, record};
use crate::clock::ticks;

/// A call site, by a function that always returns the same one: it takes no place.
pub trait Where: Fn() -> &'static Site + Copy {}

impl<S: Fn() -> &'static Site + Copy> Where for S {}

/// Runs a body as a call of which an operation's record is made.
#[inline(always)]
pub fn run_operation<T>(site: impl Where, body: impl FnOnce() -> T) -> T {
    let state = site().state();
    if state == OFF {
        body()
    } else if let Some(Begun { tin, at }) = record::begin_usually(state) {
        run([tin, at], body, move |[tin, at]| {
            let begun = || Begun {
                tin: tin.load(Ordering::Relaxed),
                at: at.load(Ordering::Relaxed),
            };
            record::end_begun(site(), begun);
        })
    } else {
        run_slowly(move || site().enter(), body)
    }
}

/// Runs a body as a call of which a duration is recorded.
#[inline(always)]
pub fn run_duration<T>(site: impl Where, body: impl FnOnce() -> T) -> T {
    let state = site().state();
    if state == OFF {
        body()
    } else if state.cast_signed() > 0 {
        run([ticks::read()], body, move |[tin]| {
            duration::end(site(), || tin.load(Ordering::Relaxed));
        })
    } else {
        run_slowly(move || site().enter_duration(), body)
    }
}

/// Runs a body as a call that is added up.
#[inline(always)]
pub fn run_aggregated<const HISTOGRAM: bool, const EVERY: u64, T>(
    (site, slot): (impl Where, impl Fn() -> &'static LocalKey<CellSlot> + Copy),
    body: impl FnOnce() -> T,
) -> T {
    let state = site().state();
    if state == OFF {
        body()
    } else if state.cast_signed() > 0 {
        run([ticks::read()], body, move |[tin]| {
            let tin = || tin.load(Ordering::Relaxed);
            aggregate::end::<HISTOGRAM, EVERY>(site(), slot(), tin);
        })
    } else {
        run_slowly(
            move || site().enter_aggregated::<HISTOGRAM, EVERY>(slot()),
            body,
        )
    }
}

/// What is known of a call while its body runs, and how the call is ended.
///
/// It stays in memory: the compiler does not replace an atomic load by what was stored before, as
/// long as the place is known to anybody else, here to the end after a panic.
/// In a register it would have to survive the body, and such a register is saved first by every call
/// of the function, also by one that is not recorded.
struct Running<const N: usize, E: Fn(&[AtomicU64; N]) + Copy> {
    words: [AtomicU64; N],
    end: E,
}

impl<const N: usize, E: Fn(&[AtomicU64; N]) + Copy> Drop for Running<N, E> {
    #[cold]
    #[inline(never)]
    fn drop(&mut self) {
        (self.end)(&self.words);
    }
}

/// Runs a body and ends its call, whether it returns or panics.
#[inline(always)]
fn run<const N: usize, T>(
    begun: [u64; N],
    body: impl FnOnce() -> T,
    end: impl Fn(&[AtomicU64; N]) + Copy,
) -> T {
    let running = Running {
        words: begun.map(AtomicU64::new),
        end,
    };
    let output = body();
    end(&running.words);
    mem::forget(running);
    output
}

/// Runs a body as a call of which something is unusual: the first one of its site, one in a trace
/// that spreads, one that has no ticks.
#[cold]
#[inline(never)]
fn run_slowly<G, T>(begin: impl FnOnce() -> G, body: impl FnOnce() -> T) -> T {
    let _guard = begin();
    body()
}
