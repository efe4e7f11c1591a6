//! The packing of a column's integers: as they are, or as differences between neighbours.
//!
//! Next: `encode`, which compares the packing with other layouts.

use super::bits::{pack, packed_bytes, width};
use super::{DELTA_PACKED, PACKED, Sign};
use crate::container::varint::{self, prefixed_by_length};
use crate::number::{to_u64, to_usize};

/// How many numbers of a column are examined to find the frequent widths.
const SAMPLE: usize = 128;

/// How many pairs of neighbours are examined to see whether integers repeat or rise.
const SAMPLED_PAIRS: usize = 32;

/// The bits with which the two parts of patches begin, about.
const PATCHES_HEAD_BITS: u64 = 9 * 8;

/// At most a quarter of the numbers is patched. With more patches, wider numbers cost less.
const MOST_PATCHED: u64 = 4;

/// What the largest gap between patches takes beyond the mean one, about.
const GAP_MARGIN_BITS: u64 = 2;

/// The bytes of a short column before its payload.
const LAYOUT_AND_LENGTH_BYTES: usize = 2;

/// The statistics of a column whose integers are not all equal.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stats {
    /// Whether most integers seem to be equal to the one before.
    pub(super) repeats: bool,
    pub(super) plain: Packing,
    /// The packing of differences, if they may be narrower than the integers.
    pub(super) delta: Option<Packing>,
}

/// The smallest of some numbers, and the bits of the distance to the largest one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) smallest: u64,
    pub(super) bits: u32,
}

impl Span {
    /// Returns the span of signed numbers.
    pub(super) fn of(numbers: impl Iterator<Item = u64>) -> Self {
        let (mut smallest, mut largest) = (i64::MAX, i64::MIN);
        for number in numbers {
            smallest = smallest.min(number as i64);
            largest = largest.max(number as i64);
        }
        Self {
            smallest: smallest as u64,
            bits: width(largest.wrapping_sub(smallest) as u64),
        }
    }
}

impl Stats {
    pub(super) fn of(integers: &[u64], sign: Sign) -> Self {
        // A sample shows whether integers repeat, and whether neighbours are closer than other
        // integers.
        let distance = |from: u64, to: u64| {
            let difference = to.wrapping_sub(from);
            width(varint::zigzag(difference as i64))
        };
        let half = integers.len() / 2;
        let pairs = integers.iter().zip(integers.iter().skip(1));
        let (_, far) = integers.split_at(half);
        let sample = pairs.zip(far).take(half);
        let (mut sampled, mut equal, mut far_bits, mut near_bits) = (0, 0, 0, 0);
        let step = half.div_ceil(SAMPLED_PAIRS).max(1);
        for ((before, integer), far) in sample.step_by(step) {
            sampled += 1;
            equal += u32::from(before == integer);
            far_bits += distance(*before, *far);
            near_bits += distance(*before, *integer);
        }
        let is_narrower = near_bits + sampled <= far_bits || integers.len() < SAMPLED_PAIRS;
        Self {
            repeats: equal * 2 >= sampled,
            plain: Packing::plain(integers, sign),
            delta: is_narrower.then(|| Packing::delta(integers, sign)),
        }
    }

    /// Returns the shorter packing of `count` integers, and the bytes of the column.
    pub(super) fn shortest(&self, count: usize) -> (Packing, usize) {
        let delta = self.delta.unwrap_or(self.plain);
        let bytes = [self.plain, delta].map(|packing| packing.bytes(count));
        match bytes {
            [plain, bytes] if bytes < plain => (delta, bytes),
            [bytes, _] => (self.plain, bytes),
        }
    }
}

/// The packing of a column's numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packing {
    /// The first integer in its written form, if differences are packed.
    pub(super) first: Option<u64>,
    /// The smallest number in its written form.
    pub(super) smallest_code: u64,
    pub(super) span: Span,
}

impl Packing {
    /// Returns the packing of integers as they are.
    pub(super) fn plain(integers: &[u64], sign: Sign) -> Self {
        // If no integer is negative and one is 0, the bits of all integers determine the width.
        let has_zero = integers.iter().take(SAMPLE).any(|integer| *integer == 0);
        let all = integers.iter().fold(0, |all, integer| all | integer);
        let has_negative = all >> 63 == 1;
        let span = if has_zero && !has_negative {
            Span {
                smallest: 0,
                bits: width(all),
            }
        } else {
            // With this bit flipped, integers of either sign compare as signed numbers.
            let flip = sign.bias() ^ 1 << 63;
            let span = Span::of(integers.iter().map(|integer| integer ^ flip));
            Span {
                smallest: span.smallest ^ flip,
                ..span
            }
        };
        Self {
            first: None,
            smallest_code: sign.code(span.smallest),
            span,
        }
    }

    /// Returns the packing of the differences between neighbours.
    pub(super) fn delta(integers: &[u64], sign: Sign) -> Self {
        let pairs = integers.iter().zip(integers.iter().skip(1));
        let span = Span::of(pairs.map(|(before, integer)| integer.wrapping_sub(*before)));
        Self {
            first: integers.first().map(|first| sign.code(*first)),
            smallest_code: varint::zigzag(span.smallest as i64),
            span,
        }
    }

    /// Returns the bytes of a column of `count` integers.
    pub(super) fn bytes(self, count: usize) -> usize {
        let head =
            varint::encoded_len(self.smallest_code) + self.first.map_or(0, varint::encoded_len);
        let count = count - usize::from(self.first.is_some());
        let payload = head + 1 + packed_bytes(count, self.span.bits);
        1 + varint::encoded_len(to_u64(payload)) + payload
    }

    /// Fills `numbers` with the numbers to pack.
    pub(super) fn numbers(self, integers: &[u64], numbers: &mut Vec<u64>) {
        let smallest = self.span.smallest;
        numbers.clear();
        if self.first.is_some() {
            let pairs = integers.iter().zip(integers.iter().skip(1));
            let deltas = pairs.map(|(before, integer)| integer.wrapping_sub(*before));
            numbers.extend(deltas.map(|delta| delta.wrapping_sub(smallest)));
        } else {
            numbers.extend(
                integers
                    .iter()
                    .map(|integer| integer.wrapping_sub(smallest)),
            );
        }
    }

    /// Returns the width at which a sample takes the fewest bits, if some numbers are above it.
    pub(super) fn patched_width(self, integers: &[u64]) -> Option<u32> {
        let widest = self.span.bits;
        let smallest = self.span.smallest;
        let is_delta = self.first.is_some();
        let others = match integers {
            [_, others @ ..] if is_delta => others,
            all => all,
        };
        let step = others.len().div_ceil(SAMPLE).max(1);
        let mut counts = [0_u64; 65];
        for (before, integer) in integers.iter().zip(others).step_by(step) {
            let before = if is_delta { *before } else { 0 };
            let number = integer.wrapping_sub(before).wrapping_sub(smallest);
            if let Some(count) = counts.get_mut(to_usize(width(number))) {
                *count += 1;
            }
        }
        // The largest number has this width, even if it is not in the sample.
        if let Some(count) = counts.get_mut(to_usize(widest)) {
            *count = (*count).max(1);
        }
        let total: u64 = counts.iter().sum();
        let head_bits = PATCHES_HEAD_BITS * total / to_u64(others.len().max(1));
        let (mut best, mut best_bits) = (total * u64::from(widest), None);
        let mut above = 0;
        for bits in (1..widest).rev() {
            if let Some(count) = counts.get(to_usize(bits + 1)) {
                above += *count;
            }
            if above > total / MOST_PATCHED {
                break;
            }
            if above == 0 {
                continue;
            }
            let mean_gap = total / above;
            let gap_bits = u64::from(width(mean_gap)) + GAP_MARGIN_BITS;
            let patches = above * (u64::from(widest - bits) + gap_bits) + head_bits;
            let cost = total * u64::from(bits) + patches;
            if cost < best {
                (best, best_bits) = (cost, Some(bits));
            }
        }
        best_bits
    }

    /// Appends the payload up to the packed numbers, which have `bits` bits.
    pub(super) fn write(self, numbers: &[u64], bits: u32, out: &mut Vec<u8>) {
        if let Some(first) = self.first {
            varint::write(out, first);
        }
        varint::write(out, self.smallest_code);
        let [width, ..] = bits.to_le_bytes();
        out.push(width);
        pack(numbers, bits, out);
    }

    pub(super) fn layout(self) -> u8 {
        let is_delta = self.first.is_some();
        if is_delta { DELTA_PACKED } else { PACKED }
    }

    /// Appends a packed column.
    pub(super) fn write_column(self, integers: &[u64], numbers: &mut Vec<u64>, out: &mut Vec<u8>) {
        self.numbers(integers, numbers);
        out.push(self.layout());
        prefixed_by_length(
            out,
            self.bytes(integers.len()) - LAYOUT_AND_LENGTH_BYTES,
            |out| {
                self.write(numbers, self.span.bits, out);
            },
        );
    }
}
