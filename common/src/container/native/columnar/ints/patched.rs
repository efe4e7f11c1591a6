//! Packed numbers of which a few are larger than the others: what those have above the width is
//! told apart ("patched frame of reference": Zukowski, Heman, Nes, Boncz, "Super-Scalar RAM-CPU
//! Cache Compression", section 4).

use super::bits::{Packer, packed_bytes, width};
use super::narrow::Lane;
use super::parts::Parts;
use super::simple::take_packed;
use super::stats::{Stats, column_bytes};
use super::sums::sum_up;
use super::unpack::{Number, unpack_above};
use super::{DELTA_PATCHED, PATCHED, Sign};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// Fewer lanes are not worth it, nor are narrow ones.
const LEAST_LANES: usize = 64;
const LEAST_BITS: u32 = 6;

/// How many lanes tell the width.
const SAMPLE: usize = 256;

/// The large numbers of a column; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(super) struct Patched {
    /// Whether differences to the lane before are packed.
    delta: bool,
    bits: u32,
    payload_bytes: usize,
    /// How many numbers there are between a large one and the one before.
    gaps: Vec<u64>,
    /// What large numbers have above the width.
    above: Vec<u64>,
    /// What is known of both.
    stats: Option<[Stats; 2]>,
}

impl Patched {
    /// Finds the width, if it makes the column shorter than `best` bytes; returns how many bytes
    /// the column would have.
    pub(super) fn find<L: Lane>(
        &mut self,
        lanes: &[L],
        stats: &Stats,
        best: usize,
    ) -> Option<usize> {
        let (plain_bits, delta_bits) = (width(stats.range), width(stats.delta_range));
        let widest = plain_bits.min(delta_bits);
        if stats.count < LEAST_LANES || widest < LEAST_BITS {
            return None;
        }
        self.delta = delta_bits < plain_bits;
        let mut counts = [0_u32; 65];
        // A part of many tells the width.
        let sample = lanes.get(..SAMPLE).unwrap_or(lanes);
        self.each(sample, stats, |number| {
            if let Some(count) = counts.get_mut(to_usize(width(number).into())) {
                *count = count.wrapping_add(1);
            }
        });
        self.bits = cheapest(&counts, widest, lanes.len())?;
        let bits = self.bits;
        let (mut gaps, mut above) = (
            std::mem::take(&mut self.gaps),
            std::mem::take(&mut self.above),
        );
        gaps.clear();
        above.clear();
        let mut gap = 0;
        self.each(lanes, stats, |number| {
            let high = number >> bits;
            if high == 0 {
                gap += 1;
            } else {
                gaps.push(gap);
                above.push(high);
                gap = 0;
            }
        });
        (self.gaps, self.above) = (gaps, above);
        let numbers = stats.count - usize::from(self.delta);
        let start = if self.delta {
            stats.first
        } else {
            stats.smallest
        };
        let stats_of = |part: &[u64]| Stats::of(part, Sign::Unsigned);
        let parts = [stats_of(&self.gaps), stats_of(&self.above)];
        let [gaps, above] = parts.map(|part| part.cheapest_column());
        self.stats = Some(parts);
        let step = varint::size(varint::zigzag(stats.smallest_delta));
        self.payload_bytes = varint::size(stats.sign.code(start))
            + if self.delta { step } else { 0 }
            + 1
            + packed_bytes(numbers, bits)
            + varint::size(to_u64(self.gaps.len()))
            + gaps
            + above;
        let bytes = column_bytes(self.payload_bytes);
        (bytes < best).then_some(bytes)
    }

    /// Hands what is packed to `take`: how far lanes, or their differences, are above the least.
    fn each<L: Lane>(&self, lanes: &[L], stats: &Stats, mut take: impl FnMut(u64)) {
        if self.delta {
            let smallest = stats.smallest_delta.cast_unsigned();
            for (before, lane) in lanes.iter().zip(lanes.iter().skip(1)) {
                take(lane.delta_above(*before, smallest));
            }
        } else {
            let above = |lane: &L| lane.above(stats.smallest, stats.first);
            lanes.iter().map(above).for_each(take);
        }
    }

    /// Appends the column that was found last.
    pub(super) fn write<L: Lane>(&self, lanes: &[L], stats: &Stats, out: &mut Vec<u8>) {
        out.push(if self.delta { DELTA_PATCHED } else { PATCHED });
        varint::write(out, to_u64(self.payload_bytes));
        let start = out.len();
        let mask = u64::MAX >> (64 - self.bits);
        if self.delta {
            stats.sign.write(stats.first, out);
            varint::write_signed(out, stats.smallest_delta);
        } else {
            stats.sign.write(stats.smallest, out);
        }
        out.extend(u8::try_from(self.bits));
        if self.delta {
            let smallest = stats.smallest_delta.cast_unsigned();
            let low = |(before, lane): (&L, &L)| lane.delta_above(*before, smallest) & mask;
            let behind = lanes.get(1..).unwrap_or_default();
            let before = lanes.get(..behind.len()).unwrap_or_default();
            let (fours_before, rest_before) = before.as_chunks::<4>();
            let (fours, rest) = behind.as_chunks::<4>();
            let fours = fours_before.iter().zip(fours);
            let fours =
                fours.map(|([a, b, c, d], [e, f, g, h])| [(a, e), (b, f), (c, g), (d, h)].map(low));
            let rest = rest_before.iter().zip(rest).map(low);
            Packer::new(behind.len(), self.bits, out).add(fours, rest);
        } else {
            let low = |lane: &L| lane.above(stats.smallest, stats.first) & mask;
            let (fours, rest) = lanes.as_chunks::<4>();
            let fours = fours.iter().map(|four| four.each_ref().map(low));
            Packer::new(lanes.len(), self.bits, out).add(fours, rest.iter().map(low));
        }
        varint::write(out, to_u64(self.gaps.len()));
        let parts = [&self.gaps, &self.above];
        for (part, stats) in parts.into_iter().zip(self.stats.iter().flatten()) {
            stats.cheapest().0.write(part, stats, out);
        }
        debug_assert_eq!(
            out.len() - start,
            self.payload_bytes,
            "the length was foretold"
        );
    }
}

/// The width at which so many lanes take the fewest bits, if it leaves some above it: counted are
/// how many of a part of them have how many bits.
pub(super) fn cheapest(counts: &[u32; 65], widest: u32, lanes: usize) -> Option<u32> {
    let total: u64 = counts.iter().copied().map(u64::from).sum();
    // Both columns of what is above have their own beginnings.
    let beginnings = (8 * 9 * total).checked_div(to_u64(lanes)).unwrap_or(0);
    let mut best = (total * u64::from(widest), widest);
    let mut above = 0_u64;
    // From the widest down; those that are counted are above the width.
    for bits in (1..widest).rev() {
        let count = counts.get(to_usize(u64::from(bits) + 1));
        above += u64::from(count.copied().unwrap_or(0));
        if above * 4 > total {
            break;
        }
        let gap_bits = u64::from(width(total.checked_div(above).unwrap_or(0))) + 2;
        let patch_bits = above * (u64::from(widest - bits) + gap_bits);
        let cost = total * u64::from(bits) + patch_bits + beginnings;
        if above > 0 && cost < best.0 {
            best = (cost, bits);
        }
    }
    (best.1 < widest).then_some(best.1)
}

/// Fills `out` from the payload of [`PATCHED`]; returns its lanes or-ed together, and perhaps a bit
/// more. Those of more than 32 bits, in `out` or before they were patched, are told by that.
pub(super) fn read<T: Number>(
    payload: &mut Cursor<'_>,
    sign: Sign,
    out: &mut [T],
    parts: &mut Parts<'_>,
    reading: &'static str,
) -> Result<u64, DecodeError> {
    let smallest = sign.read(payload, reading)?;
    let seen = read_numbers(payload, smallest, out, parts, reading)?;
    payload.finish(reading)?;
    Ok(seen)
}

/// As [`read`], of [`DELTA_PATCHED`], whose sums need all bits.
pub(super) fn read_deltas(
    payload: &mut Cursor<'_>,
    sign: Sign,
    lanes: &mut [u64],
    parts: &mut Parts<'_>,
    reading: &'static str,
) -> Result<u64, DecodeError> {
    let first = sign.read(payload, reading)?;
    let smallest = payload.signed(reading)?.cast_unsigned();
    let (start, behind) = lanes.split_first_mut().unzip();
    if let Some(start) = start {
        *start = first;
    }
    let deltas = behind.unwrap_or_default();
    read_numbers(payload, smallest, deltas, parts, reading)?;
    let seen = first | sum_up(deltas, first);
    payload.finish(reading)?;
    Ok(seen)
}

/// Fills `numbers` with what is packed above the smallest of them, and patches them.
fn read_numbers<T: Number>(
    payload: &mut Cursor<'_>,
    smallest: u64,
    numbers: &mut [T],
    parts: &mut Parts<'_>,
    reading: &'static str,
) -> Result<u64, DecodeError> {
    let (packed, bits) = take_packed(payload, numbers.len(), reading)?;
    let mut seen = unpack_above(packed, bits, numbers, smallest);
    let at = payload.clone();
    let large = payload.count(numbers.len(), reading)?;
    if large == 0 {
        let kind = DecodeErrorKind::Invalid { found: 0 };
        return Err(at.error(reading, kind));
    }
    let (gaps, above) = parts.two(payload, large, Sign::Unsigned, reading, &at)?;
    let mut place = 0_usize;
    for (gap, above) in gaps.iter().zip(above) {
        place = place.saturating_add(to_usize(*gap));
        let number = numbers.get_mut(place).ok_or_else(|| {
            let kind = DecodeErrorKind::Invalid { found: *gap };
            at.error(reading, kind)
        })?;
        let high = above.checked_shl(bits).unwrap_or(0);
        let lane = number.lane().wrapping_add(high);
        *number = T::of(lane);
        seen |= lane;
        place = place.saturating_add(1);
    }
    Ok(seen)
}
