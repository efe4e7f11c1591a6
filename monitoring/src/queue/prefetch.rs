//! Asks for memory that will be read soon.
//!
//! The rows of a queue lie in the cache of the processor that wrote them. Whoever fetches them when it
//! comes to them waits for that; asked for a batch of rows ahead, they are there.

#![expect(
    unsafe_code,
    reason = "one instruction that reads and changes nothing, whatever the address"
)]

use super::sync::AtomicU64;

/// Asks for the line of the processor's cache in which a word lies.
#[inline(always)]
pub(super) fn prefetch(word: &AtomicU64) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: it is a hint: no address makes it fault, and this one is that of a live word.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(word).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = word;
}
