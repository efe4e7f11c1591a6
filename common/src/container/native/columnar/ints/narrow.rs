//! Lanes that are near one another, in half the width: what is done to four of them at a time is
//! done to two of the wide ones, or to one.

use crate::container::num::to_usize;
use crate::container::varint;

/// A lane as it is kept while its column is encoded.
pub(in crate::container::native) trait Lane: Copy + Eq {
    /// The lane in full; `first` is the first one of its column.
    fn wide(self, first: u64) -> u64;

    /// How far the lane is above another one, which is given in full.
    fn above(self, smallest: u64, first: u64) -> u64 {
        self.wide(first).wrapping_sub(smallest)
    }

    /// How far the difference to the lane before is above another one.
    fn delta_above(self, before: Self, smallest_delta: u64) -> u64 {
        let delta = self.wide(0).wrapping_sub(before.wide(0));
        delta.wrapping_sub(smallest_delta)
    }

    /// How many bytes the differences of the lanes behind to those before take in a variable
    /// length.
    fn delta_bytes(before: &[Self], behind: &[Self]) -> usize {
        let deltas = before.iter().zip(behind);
        let deltas = deltas.map(|(before, lane)| lane.wide(0).wrapping_sub(before.wide(0)));
        deltas
            .map(|delta| varint::size(varint::zigzag(delta.cast_signed())))
            .sum()
    }
}

impl Lane for u64 {
    fn wide(self, _first: u64) -> u64 {
        self
    }
}

/// How much it is above the first lane of its column: less than [`NEAR`] either way.
impl Lane for i32 {
    fn wide(self, first: u64) -> u64 {
        first.wrapping_add_signed(self.into())
    }

    // Those that are near are less than 2^31 above the smallest of them, and their differences less
    // than 2^32: the lower half says it all.

    fn above(self, smallest: u64, first: u64) -> u64 {
        let above = self.wrapping_sub(low_half(smallest.wrapping_sub(first).cast_signed()));
        above.cast_unsigned().into()
    }

    fn delta_above(self, before: Self, smallest_delta: u64) -> u64 {
        let delta = self.wrapping_sub(before);
        let above = delta.wrapping_sub(low_half(smallest_delta.cast_signed()));
        above.cast_unsigned().into()
    }

    fn delta_bytes(before: &[Self], behind: &[Self]) -> usize {
        let longer = |code: u32, limit: u32| u32::from(code >= limit);
        let pairs = before.chunks(BLOCK).zip(behind.chunks(BLOCK));
        let blocks = pairs.map(|(before, behind)| {
            let mut bytes = 0;
            for (before, offset) in before.iter().zip(behind) {
                let delta = offset.wrapping_sub(*before);
                let code = ((delta << 1) ^ (delta >> 31)).cast_unsigned();
                // Comparisons instead of a table or a logarithm: four codes share each.
                bytes += 1 + longer(code, 1 << 7) + longer(code, 1 << 14);
                bytes += longer(code, 1 << 21) + longer(code, 1 << 28);
            }
            to_usize(bytes.into())
        });
        blocks.sum()
    }
}

/// So many lanes that their bytes can be counted in 32 bits.
const BLOCK: usize = 1 << 16;

/// Differences to the first lane stay below this, so that differences of two of them fit, too.
const NEAR: u64 = 1 << 30;

/// What was found when lanes were narrowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Narrowed {
    /// All are equal.
    Constant,
    /// All are near the first one.
    Near,
    /// They are not; the offsets mean nothing.
    Far,
}

/// Fills `offsets` with how much each lane is above the first one.
pub(super) fn narrow<T: Copy>(
    values: &[T],
    lane: impl Fn(T) -> u64,
    first: u64,
    offsets: &mut Vec<i32>,
) -> Narrowed {
    // What was in it is overwritten.
    offsets.resize(values.len(), 0);
    let (mut differing, mut beyond) = (0, 0);
    for (offset, value) in offsets.iter_mut().zip(values) {
        let above = lane(*value).wrapping_sub(first);
        differing |= above;
        beyond |= above.wrapping_add(NEAR);
        *offset = low_half(above.cast_signed());
    }
    if differing == 0 {
        Narrowed::Constant
    } else if beyond < 2 * NEAR {
        Narrowed::Near
    } else {
        Narrowed::Far
    }
}

/// The lower 32 bits.
pub(in crate::container::native::columnar) fn low_half(number: i64) -> i32 {
    let [a, b, c, d, ..] = number.to_le_bytes();
    i32::from_le_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrowed(lanes: &[u64]) -> (Narrowed, Vec<u64>) {
        let mut offsets = vec![1, 2, 3];
        let found = narrow(lanes, |lane| lane, lanes[0], &mut offsets);
        let wide = offsets.iter().map(|offset| offset.wide(lanes[0]));
        (found, wide.collect())
    }

    #[test]
    fn near_lanes_are_found_again() {
        for first in [0, 5, 1 << 31, 1 << 63, u64::MAX] {
            for other in [1, NEAR - 1, NEAR.wrapping_neg(), u64::MAX] {
                let lanes = [first, first.wrapping_add(other), first];
                assert_eq!(narrowed(&lanes), (Narrowed::Near, lanes.to_vec()));
            }
            for other in [NEAR, NEAR.wrapping_neg() - 1, 1 << 32, 1 << 63] {
                let lanes = [first, first.wrapping_add(other)];
                assert_eq!(narrowed(&lanes).0, Narrowed::Far);
            }
            assert_eq!(narrowed(&[first; 3]).0, Narrowed::Constant);
        }
    }
}
