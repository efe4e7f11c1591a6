//! The monitored application of `MooBench` (van Hoorn, Waller et al.): a method that calls itself
//! to a depth, and waits busily in the last call.
//!
//! Every variant has a copy of it, made by [`monitored!`](crate::monitored), so that two variants
//! differ in their probe and in nothing else.

use std::time::{Duration, Instant};

/// One call from outside: how deep to nest, and how long the innermost call is busy, in
/// nanoseconds.
///
/// It is called through a pointer, so that the loop around it is the same machine code for every
/// variant.
pub type Outer = fn(u32, u64) -> u64;

/// The innermost call: busy for so many nanoseconds by the monotonic clock, at once back for 0.
#[inline]
pub fn innermost(method_time_ns: u64) -> u64 {
    if method_time_ns == 0 {
        return 0;
    }
    busy(method_time_ns)
}

/// Out of line, and opaque in what it returns, so that the calls above it save no register for its
/// sake.
#[inline(never)]
fn busy(method_time_ns: u64) -> u64 {
    let begin = Instant::now();
    let time = Duration::from_nanos(method_time_ns);
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
    std::hint::black_box(method_time_ns)
}

/// Makes a copy of the monitored application, a function of type
/// [`Outer`](crate::overhead::Outer), with a probe: attributes, what stands before and after the
/// body, or what the body is handed to.
///
/// ```
/// use std::time::Instant;
/// use baler_rig::monitored;
///
/// monitored! { fn plain {} }
/// monitored! { fn timed { let begin = Instant::now(); } after { std::hint::black_box(begin.elapsed()); } }
/// monitored! { fn wrapped around |body| body() }
///
/// assert_eq!(plain(10, 0) + timed(10, 0) + wrapped(10, 0), 0);
/// ```
#[macro_export]
macro_rules! monitored {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident { $($before:tt)* } $(after { $($after:tt)* })?) => {
        $(#[$attribute])*
        #[inline(never)]
        $visibility fn $name(depth: u32, method_time_ns: u64) -> u64 {
            $($before)*
            let result = $crate::monitored!(@body $name depth method_time_ns);
            $($($after)*)?
            result
        }
    };
    ($visibility:vis fn $name:ident around |$body:ident| $wrapped:expr) => {
        #[inline(never)]
        $visibility fn $name(depth: u32, method_time_ns: u64) -> u64 {
            let $body = move || $crate::monitored!(@body $name depth method_time_ns);
            $wrapped
        }
    };
    // What comes back is opaque: otherwise the calls would become a loop.
    (@body $name:ident $depth:ident $method_time_ns:ident) => {
        if $depth > 1 {
            ::std::hint::black_box($name($depth - 1, $method_time_ns))
        } else {
            $crate::overhead::innermost($method_time_ns)
        }
    };
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        static CALLS: Cell<u32> = const { Cell::new(0) };
        static OPEN: Cell<u32> = const { Cell::new(0) };
        static DEEPEST: Cell<u32> = const { Cell::new(0) };
    }

    crate::monitored! {
        fn counted {
            CALLS.set(CALLS.get() + 1);
            OPEN.set(OPEN.get() + 1);
            DEEPEST.set(DEEPEST.get().max(OPEN.get()));
        } after {
            OPEN.set(OPEN.get() - 1);
        }
    }

    #[test]
    fn calls_nest_to_the_depth_that_is_asked_for() {
        for depth in [1, 2, 128] {
            CALLS.set(0);
            DEEPEST.set(0);
            counted(depth, 0);
            assert_eq!((CALLS.get(), DEEPEST.get(), OPEN.get()), (depth, depth, 0));
        }
    }

    #[test]
    fn the_innermost_call_is_busy_for_the_time_that_is_asked_for() {
        const TIME_NS: u64 = 2_000_000;
        let begin = Instant::now();
        assert_eq!(counted(3, TIME_NS), TIME_NS);
        assert!(begin.elapsed() >= Duration::from_nanos(TIME_NS));
    }
}
