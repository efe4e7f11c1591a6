//! Narrow numbers taken apart by the vectors of the machine, eight at a time.

use fearless_simd::prelude::*;
use fearless_simd::x86::Avx2;
use fearless_simd::{u8x16, u8x32, u32x8};

use super::unpack::Number;
use crate::container::num::to_usize;

/// The widest numbers that are taken apart here.
const WIDEST: usize = 32;

/// Four numbers are within so many bytes, wherever in the first one they begin.
const WINDOW: usize = 16;

/// What is left of numbers behind the last ones whose windows end before them has fewer bytes, with as
/// many zeros as a window reaches beyond them.
const END: usize = 192;

/// Whether numbers of this width are taken apart here: wherever in a byte they begin, they end
/// within 32 bits.
pub(super) fn has(width: u32) -> bool {
    matches!(width, 1..=26 | 28 | 32)
}

/// Fills `out` with packed numbers above the smallest lane; returns a number that is no smaller than
/// any of the lanes. Callers check that all numbers are there.
pub(super) fn above<T: Number>(
    simd: Avx2,
    packed: &[u8],
    width: u32,
    out: &mut [T],
    smallest: u64,
) -> u64 {
    simd.vectorize(
        #[inline(always)]
        || fill_all(simd, packed, width, out, smallest),
    )
}

#[inline(always)]
fn fill_all<T: Number>(simd: Avx2, packed: &[u8], width: u32, out: &mut [T], smallest: u64) -> u64 {
    let width = to_usize(width.into());
    let Some(mut numbers) = Numbers::new(simd, width, smallest) else {
        return 0;
    };
    let (pairs, last) = out.as_chunks_mut();
    let taken = numbers.fill(packed, pairs);
    let pairs = pairs.get_mut(taken..).unwrap_or_default();
    let rest = packed.get(taken * 2 * width..).unwrap_or_default();
    // Near the end windows reach beyond it: as many zeros follow.
    let mut end = [0; END];
    if let Some(start) = end.get_mut(..rest.len()) {
        start.copy_from_slice(rest);
    }
    let taken = numbers.fill(&end, pairs);
    if !last.is_empty() {
        let mut pair = [[T::default(); 16]];
        numbers.fill(end.get(taken * 2 * width..).unwrap_or_default(), &mut pair);
        let lanes = pair.as_flattened().iter();
        last.iter_mut()
            .zip(lanes)
            .for_each(|(to, lane)| *to = *lane);
    }
    smallest.saturating_add(numbers.largest())
}

/// Numbers of a width above the smallest lane.
struct Numbers {
    simd: Avx2,
    width: usize,
    smallest: u64,
    bytes: u8x32<Avx2>,
    shifts: u32x8<Avx2>,
    mask: u32x8<Avx2>,
    largest: u32x8<Avx2>,
}

impl Numbers {
    #[inline(always)]
    fn new(simd: Avx2, width: usize, smallest: u64) -> Option<Self> {
        let Places {
            bytes,
            shifts,
            mask,
        } = PLACES.get(width)?;
        Some(Self {
            simd,
            width,
            smallest,
            bytes: u8x32::simd_from(simd, *bytes),
            shifts: u32x8::simd_from(simd, *shifts),
            mask: u32x8::splat(simd, *mask),
            largest: u32x8::splat(simd, 0),
        })
    }

    /// Fills two eights at a time, as many as have windows; returns how many.
    #[inline(always)]
    fn fill<T: Number>(&mut self, packed: &[u8], pairs: &mut [[T; 16]]) -> usize {
        // Eight numbers take as many bytes as one has bits. The second four of them begin where half
        // of these end, or in the middle of the next one.
        let (width, half) = (self.width, self.width / 2);
        let windows = packed.windows(width + half + WINDOW);
        let windows = windows.step_by((2 * width).max(1));
        let mut taken = 0;
        let mut largest = self.largest;
        for (to, window) in pairs.iter_mut().zip(windows) {
            let four = |begin: usize| {
                let four = window.get(begin..).and_then(<[u8]>::first_chunk);
                u8x16::simd_from(self.simd, *four.unwrap_or(&[0; WINDOW]))
            };
            let eight = |begin| {
                let windows = four(begin).combine(four(begin + half));
                let words = windows.swizzle_dyn_within_blocks(self.bytes);
                (words.bitcast::<u32x8<Avx2>>() >> self.shifts) & self.mask
            };
            let (first, second) = (eight(0), eight(width));
            largest = largest.max(first.max(second));
            let (low, high) = to.split_at_mut(8);
            if let (Some(low), Some(high)) = (low.first_chunk_mut(), high.first_chunk_mut()) {
                *low = T::eight_above(self.simd, first, self.smallest);
                *high = T::eight_above(self.simd, second, self.smallest);
            }
            taken += 1;
        }
        self.largest = largest;
        taken
    }

    #[inline(always)]
    fn largest(&self) -> u64 {
        let lanes: [u32; 8] = self.largest.into();
        lanes.into_iter().max().unwrap_or(0).into()
    }
}

/// Where eight numbers of a width are.
#[derive(Clone, Copy)]
struct Places {
    /// For each byte of a number where it is in the window of its four.
    bytes: [u8; 32],
    /// How many bits are before each number there.
    shifts: [u32; 8],
    mask: u32,
}

/// By width.
static PLACES: [Places; WIDEST + 1] = places();

const fn places() -> [Places; WIDEST + 1] {
    let mut all = [Places {
        bytes: [0; 32],
        shifts: [0; 8],
        mask: 0,
    }; WIDEST + 1];
    let mut rest = all.as_mut_slice();
    let mut width = 0;
    while let Some((places, behind)) = rest.split_first_mut() {
        if width > 0 {
            places.mask = u32::MAX >> (32 - width);
        }
        let mut bytes = places.bytes.as_mut_slice();
        let mut shifts = places.shifts.as_mut_slice();
        let mut number = 0;
        while let (Some((shift, other_shifts)), Some((four, other_bytes))) =
            (shifts.split_first_mut(), bytes.split_first_chunk_mut::<4>())
        {
            // The second four begin in the middle of a byte if the width is odd.
            let begin = number % 4 * width + number / 4 * (4 * width % 8);
            *shift = begin % 8;
            let [byte, ..] = (begin / 8).to_le_bytes();
            *four = [byte, byte + 1, byte + 2, byte + 3];
            (shifts, bytes) = (other_shifts, other_bytes);
            number += 1;
        }
        rest = behind;
        width += 1;
    }
    all
}
