//! The monitored application of `MooBench` (van Hoorn, Waller et al.): a function that calls itself
//! until it has reached a depth.
//!
//! Every variant has a copy of it, made by [`monitored!`](crate::monitored), so that two variants
//! differ only in their probe.

/// One call from outside, which nests this deep.
///
/// It is called through a pointer, so that the loop around it is the same machine code for every
/// variant.
pub type Outer = fn(u32) -> u64;

/// Makes a copy of the monitored application, a function of type
/// [`Outer`](crate::overhead::Outer), with a probe: attributes, code before and after the body, or a
/// call that takes the body.
///
/// ```
/// use std::time::Instant;
/// use baler_rig::monitored;
///
/// monitored! { fn plain {} }
/// monitored! { fn timed { let begin = Instant::now(); } after { std::hint::black_box(begin.elapsed()); } }
/// monitored! { fn wrapped around |body| body() }
///
/// assert_eq!(plain(10) + timed(10) + wrapped(10), 0);
/// ```
#[macro_export]
macro_rules! monitored {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident { $($before:tt)* } $(after { $($after:tt)* })?) => {
        $(#[$attribute])*
        #[inline(never)]
        $visibility fn $name(depth: u32) -> u64 {
            $($before)*
            let result = $crate::monitored!(@body $name depth);
            $($($after)*)?
            result
        }
    };
    ($visibility:vis fn $name:ident around |$body:ident| $wrapped:expr) => {
        #[inline(never)]
        $visibility fn $name(depth: u32) -> u64 {
            let $body = move || $crate::monitored!(@body $name depth);
            $wrapped
        }
    };
    // The result is opaque: otherwise the optimiser makes a loop of the calls.
    (@body $name:ident $depth:ident) => {
        if $depth > 1 {
            ::std::hint::black_box($name($depth - 1))
        } else {
            0
        }
    };
}

#[cfg(test)]
mod tests;
