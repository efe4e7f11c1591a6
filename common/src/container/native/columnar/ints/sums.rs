//! Sums of differences.

/// Adds to each number all those before it and the first one; returns the sums or-ed together.
pub(super) fn sum_up(numbers: &mut [u64], first: u64) -> u64 {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    if let Some(avx2) = fearless_simd::Level::new().as_avx2() {
        return vectors::sum_up(avx2, numbers, first);
    }
    one_by_one(numbers, first, 0)
}

/// As [`sum_up`]; to what is returned, `seen` is or-ed.
#[inline(always)]
fn one_by_one(numbers: &mut [u64], first: u64, mut seen: u64) -> u64 {
    let mut sum = first;
    for number in numbers {
        sum = sum.wrapping_add(*number);
        *number = sum;
        seen |= sum;
    }
    seen
}

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
mod vectors {
    use fearless_simd::prelude::*;
    use fearless_simd::u64x4;
    use fearless_simd::x86::Avx2;

    use super::one_by_one;

    /// Four at a time: numbers are added to those behind them, then pairs.
    pub(super) fn sum_up(simd: Avx2, numbers: &mut [u64], first: u64) -> u64 {
        simd.vectorize(
            #[inline(always)]
            || {
                let none = u64x4::splat(simd, 0);
                let (mut before, mut seen) = (u64x4::splat(simd, first), none);
                let (fours, rest) = numbers.as_chunks_mut::<4>();
                for four in fours {
                    let each = u64x4::simd_from(simd, *four);
                    let pairs = each + none.slide::<3>(each);
                    let all = pairs + none.slide::<2>(pairs);
                    let sums = all + before;
                    *four = sums.into();
                    seen |= sums;
                    // Only this waits for the four before.
                    let [.., last]: [u64; 4] = all.into();
                    before += u64x4::splat(simd, last);
                }
                let seen: [u64; 4] = seen.into();
                let seen = seen.into_iter().fold(0, |seen, sum| seen | sum);
                let [.., last]: [u64; 4] = before.into();
                one_by_one(rest, last, seen)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_the_sum_of_all_before() {
        for count in 0..20 {
            let numbers: Vec<u64> = (1..=count).map(|it| it << 60 | it).collect();
            let mut expected = numbers.clone();
            let seen = one_by_one(&mut expected, 7, 0);
            let mut found = numbers.clone();
            assert_eq!(sum_up(&mut found, 7), seen);
            assert_eq!(found, expected);
            let sum = numbers.iter().fold(7, |sum: u64, it| sum.wrapping_add(*it));
            assert_eq!(found.last().copied().unwrap_or(7), sum);
        }
    }
}
