//! Numbers of the same number of bits, taken apart again; `bits` packs them.

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
use fearless_simd::{prelude::*, u32x8, u64x4, x86::Avx2};

#[cfg(all(feature = "simd", target_arch = "x86_64"))]
use super::eights;
use crate::container::native::columnar::vectors;
use crate::container::num::to_usize;

/// What numbers are read into: the widths in which columns keep them.
pub(super) trait Number: Copy + Default {
    /// As much of a lane as fits.
    fn of(lane: u64) -> Self;

    /// The lane, if all of it did fit.
    fn lane(self) -> u64;

    /// Eight lanes, by how much they are above the smallest one.
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    fn eight_above(simd: Avx2, numbers: u32x8<Avx2>, smallest: u64) -> [Self; 8];
}

impl Number for u64 {
    fn of(lane: u64) -> Self {
        lane
    }

    fn lane(self) -> u64 {
        self
    }

    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    #[inline(always)]
    fn eight_above(simd: Avx2, numbers: u32x8<Avx2>, smallest: u64) -> [Self; 8] {
        let smallest = u64x4::splat(simd, smallest);
        let (low, high) = numbers.widen();
        let [a, b, c, d] = (low + smallest).into();
        let [e, f, g, h] = (high + smallest).into();
        [a, b, c, d, e, f, g, h]
    }
}

impl Number for u32 {
    fn of(lane: u64) -> Self {
        let [a, b, c, d, ..] = lane.to_le_bytes();
        Self::from_le_bytes([a, b, c, d])
    }

    fn lane(self) -> u64 {
        self.into()
    }

    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    #[inline(always)]
    fn eight_above(simd: Avx2, numbers: u32x8<Avx2>, smallest: u64) -> [Self; 8] {
        let smallest = u32x8::splat(simd, Self::of(smallest));
        (numbers + smallest).into()
    }
}

/// Eight numbers of up to 32 bits, and the last one's whole word, are within so many bytes.
const WINDOW: usize = 40;

/// The widest number that is read in one go, wherever in its first byte it begins.
const WORD_BITS: u32 = 57;

/// What becomes of packed numbers, one after the other.
///
/// Handed over by value and back, so that what it counts stays in registers.
pub(super) trait Unpacked<T> {
    /// What the next number becomes.
    fn next(&mut self, number: u64) -> T;

    /// What the next numbers become.
    #[inline(always)]
    fn eight(&mut self, numbers: [u64; 8]) -> [T; 8] {
        numbers.map(|number| self.next(number))
    }
}

/// Lanes above the smallest of them.
pub(super) struct Above {
    smallest: u64,
    /// All lanes, or-ed together: those in each place of eight.
    seen: [u64; 8],
}

impl Above {
    pub(super) fn new(smallest: u64) -> Self {
        Self {
            smallest,
            seen: [0; 8],
        }
    }

    /// All lanes, or-ed together.
    pub(super) fn seen(&self) -> u64 {
        self.seen.iter().fold(0, |seen, lane| seen | lane)
    }
}

impl<T: Number> Unpacked<T> for Above {
    #[inline(always)]
    fn next(&mut self, number: u64) -> T {
        let lane = self.smallest.wrapping_add(number);
        let [seen, ..] = &mut self.seen;
        *seen |= lane;
        T::of(lane)
    }

    #[inline(always)]
    fn eight(&mut self, numbers: [u64; 8]) -> [T; 8] {
        let lanes = numbers.map(|number| self.smallest.wrapping_add(number));
        for (seen, lane) in self.seen.iter_mut().zip(lanes) {
            *seen |= lane;
        }
        lanes.map(T::of)
    }
}

/// Lanes whose differences are above the smallest of these.
pub(super) struct Sums {
    /// The lane before.
    pub(super) lane: u64,
    pub(super) smallest: u64,
    /// All lanes, or-ed together.
    pub(super) seen: u64,
}

impl<T: Number> Unpacked<T> for Sums {
    #[inline]
    fn next(&mut self, number: u64) -> T {
        self.lane = self.lane.wrapping_add(self.smallest.wrapping_add(number));
        self.seen |= self.lane;
        T::of(self.lane)
    }
}

/// Fills `out` with packed numbers above the smallest lane; returns a number that is no smaller than
/// any of the lanes. Callers check that `packed` has [`super::bits::packed_bytes`].
pub(super) fn unpack_above<T: Number>(
    packed: &[u8],
    width: u32,
    out: &mut [T],
    smallest: u64,
) -> u64 {
    #[cfg(all(feature = "simd", target_arch = "x86_64"))]
    if let Some(avx2) = fearless_simd::Level::new().as_avx2()
        && eights::has(width)
    {
        return eights::above(avx2, packed, width, out, smallest);
    }
    unpack(packed, width, out, Above::new(smallest)).seen()
}

/// Fills `out` with what becomes of the numbers. Numbers that are not there are 0: callers check
/// that `packed` has [`super::bits::packed_bytes`].
pub(super) fn unpack<T: Copy, U: Unpacked<T>>(
    packed: &[u8],
    width: u32,
    out: &mut [T],
    unpacked: U,
) -> U {
    vectors::wide(
        #[inline(always)]
        || of_width(packed, width, out, unpacked),
    )
}

/// Inlined, with all that it calls, into what is compiled for vectors.
#[inline(always)]
pub(super) fn of_width<T: Copy, U: Unpacked<T>>(
    packed: &[u8],
    width: u32,
    out: &mut [T],
    unpacked: U,
) -> U {
    // A loop of its own for each width, in which every shift and mask is a constant.
    macro_rules! by_width {
        ($($narrow:literal)*) => {
            match width {
                // Nothing is packed: equal differences, say.
                0 => equal(out, unpacked),
                $($narrow => narrow::<$narrow, T, U>(packed, out, unpacked),)*
                _ => any(packed, width, out, unpacked),
            }
        };
    }
    by_width!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32)
}

/// Numbers of no bit.
#[inline(always)]
fn equal<T, U: Unpacked<T>>(out: &mut [T], mut unpacked: U) -> U {
    for to in out {
        *to = unpacked.next(0);
    }
    unpacked
}

/// Numbers of up to 32 bits: eight of them take `WIDTH` bytes.
#[inline(always)]
fn narrow<const WIDTH: usize, T: Copy, U: Unpacked<T>>(
    packed: &[u8],
    out: &mut [T],
    mut unpacked: U,
) -> U {
    let (eights, last) = out.as_chunks_mut::<8>();
    let mut eights = eights.iter_mut();
    let mut rest = packed;
    while let Some(window) = rest.first_chunk()
        && let Some(to) = eights.next()
    {
        *to = unpacked.eight(eight::<WIDTH>(window));
        rest = rest.get(WIDTH..).unwrap_or_default();
    }
    // Near the end words reach beyond it: as many zeros follow.
    let mut end = [0; 2 * WINDOW];
    if let Some(start) = end.get_mut(..rest.len()) {
        start.copy_from_slice(rest);
    }
    let mut rest = end.as_slice();
    let mut next = || {
        let window = rest.first_chunk().unwrap_or(&[0; WINDOW]);
        rest = rest.get(WIDTH..).unwrap_or_default();
        eight::<WIDTH>(window)
    };
    for to in eights {
        *to = unpacked.eight(next());
    }
    for (to, number) in last.iter_mut().zip(next()) {
        *to = unpacked.next(number);
    }
    unpacked
}

/// As many of the numbers as fit are taken out of each word, wherever in its first byte they begin.
#[inline(always)]
fn eight<const WIDTH: usize>(window: &[u8; WINDOW]) -> [u64; 8] {
    let mask = u64::MAX >> (64 - WIDTH);
    // The first of four begins in the middle of a byte at most; that of two at its sixth bit.
    let together = match WIDTH {
        ..=8 => 8,
        9..=16 => 4,
        17..=29 => 2,
        _ => 1,
    };
    let mut numbers = [0; 8];
    for (number, to) in numbers.iter_mut().enumerate() {
        let first = number / together * together * WIDTH;
        let word = window.get(first / 8..).and_then(<[u8]>::first_chunk);
        let word = word.map_or(0, |word| u64::from_le_bytes(*word));
        let shift = first % 8 + number % together * WIDTH;
        *to = word >> shift & mask;
    }
    numbers
}

/// Numbers of any width.
#[inline(always)]
fn any<T, U: Unpacked<T>>(packed: &[u8], width: u32, out: &mut [T], mut unpacked: U) -> U {
    let bits = to_usize(width.into());
    let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
    for (number, to) in out.iter_mut().enumerate() {
        let bit = number * bits;
        let shift = bit % 8;
        let mut found = word(packed, bit / 8) >> shift;
        if width >= WORD_BITS {
            // The second word begins where the first one ends.
            found |= (word(packed, bit / 8 + 8) << 1) << (63 - shift);
        }
        *to = unpacked.next(found & mask);
    }
    unpacked
}

/// The eight bytes from here on, zeros where there are none.
fn word(packed: &[u8], at: usize) -> u64 {
    let bytes = packed.get(at..).unwrap_or_default();
    if let Some(eight) = bytes.first_chunk() {
        return u64::from_le_bytes(*eight);
    }
    let mut eight = [0; 8];
    eight
        .iter_mut()
        .zip(bytes)
        .for_each(|(to, from)| *to = *from);
    u64::from_le_bytes(eight)
}
