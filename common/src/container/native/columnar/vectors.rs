//! Loops compiled for the vectors of the machine that they run on.

/// Does the work as the compiler makes it for AVX2 where the machine has that (feature `simd`), and as
/// for any machine where not.
///
/// What is to profit must be inlined into the closure.
#[inline(always)]
pub(super) fn wide<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    if let Some(avx2) = fearless_simd::Level::new().as_avx2() {
        return fearless_simd::Simd::vectorize(avx2, work);
    }
    work()
}
