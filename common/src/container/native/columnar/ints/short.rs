//! Columns whose numbers fit into 32 bits, as whoever writes them knows: packed above 0 or their
//! smallest, with patches for the few that are larger.
//!
//! The bits that any number has set say how wide all are, so that most columns are looked at once
//! before they are written.

use super::bits::{pack_short, packed_bytes, width};
use super::patched::cheapest;
use super::runs::Runs;
use super::simple::write_constant;
use super::stats::column_bytes;
use super::{DELTA_PACKED, DELTA_PATCHED, PACKED, PATCHED, Sign, low_half};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// Fewer lanes are not patched, nor are narrow ones.
const LEAST_PATCHED: usize = 64;
const LEAST_BITS: u32 = 6;

/// Wider ones that are too few for patches are worth a look at other encodings.
const MOST_BITS: u32 = 20;

/// How many lanes tell the width, at least, if there are that many.
const SAMPLE: usize = 128;

/// From so many lanes on it is looked whether they settle.
const LEAST_SETTLED: usize = 128;

/// Writes columns of short numbers; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(super) struct ShortEncoder {
    lanes: Vec<i32>,
    /// Where large numbers are, or how many others there are before each, and what they have above
    /// the width, less one.
    patches: Vec<(u32, u32)>,
    wide: Vec<u64>,
    runs: Runs,
}

/// A number of 32 bits, signed or not.
pub(in crate::container::native) trait Short: Copy {
    /// Its bits.
    fn bits(self) -> u32;
}

impl Short for u32 {
    fn bits(self) -> u32 {
        self
    }
}

impl Short for i32 {
    fn bits(self) -> u32 {
        self.cast_unsigned()
    }
}

/// What stands before packed numbers.
#[derive(Debug, Clone, Copy)]
enum Head {
    /// The smallest one.
    Plain { smallest: u64 },
    /// The first lane and the smallest difference, as they are written.
    Delta { first: u64, smallest: u64 },
}

impl Head {
    fn size(self) -> usize {
        match self {
            Self::Plain { smallest } => varint::size(smallest),
            Self::Delta { first, smallest } => varint::size(first) + varint::size(smallest),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Plain { smallest } => varint::write(out, smallest),
            Self::Delta { first, smallest } => {
                varint::write(out, first);
                varint::write(out, smallest);
            }
        }
    }
}

/// The smallest of some numbers, and bits as many as the largest has above it.
#[derive(Debug, Clone, Copy)]
struct Span {
    smallest: u32,
    range: u32,
}

impl Span {
    fn of<S: Short>(lanes: &[S], sign: Sign) -> Self {
        let all = lanes.iter().fold(0, |all, lane| all | lane.bits());
        Self::of_all(lanes, all, sign)
    }

    /// Of lanes that are this, or-ed together.
    #[inline(always)]
    fn of_all<S: Short>(lanes: &[S], all: u32, sign: Sign) -> Self {
        if sign == Sign::Unsigned || all.cast_signed() >= 0 {
            let smallest = 0;
            return Self {
                smallest,
                range: all,
            };
        }
        let lanes = lanes.iter().map(|lane| lane.bits().cast_signed());
        let (smallest, largest) = lanes.fold((i32::MAX, i32::MIN), |(smallest, largest), lane| {
            (smallest.min(lane), largest.max(lane))
        });
        Self {
            smallest: smallest.cast_unsigned(),
            range: largest.wrapping_sub(smallest).cast_unsigned(),
        }
    }

    fn bits(self) -> u32 {
        width(self.range.into())
    }
}

impl ShortEncoder {
    /// Appends a column of short numbers; `false`, and nothing, if it is worth a longer look.
    pub(super) fn write<S: Short>(&mut self, lanes: &[S], sign: Sign, out: &mut Vec<u8>) -> bool {
        let Some(last) = lanes.last().map(|lane| lane.bits()) else {
            return true;
        };
        if lanes.len() < LEAST_PATCHED {
            return self.write_few(lanes, last, sign, out);
        }
        let differs = |part: &[S]| {
            let differing = part.iter().fold(0, |it, lane| it | (lane.bits() ^ last));
            differing != 0
        };
        let mut settled = 0;
        for part in lanes.rchunks(64) {
            if differs(part) {
                break;
            }
            settled += part.len();
        }
        if settled == lanes.len() {
            write_constant(lane_of(last, sign), sign, out);
            return true;
        }
        let span = Span::of(lanes, sign);
        let smallest = sign.code(lane_of(span.smallest, sign));
        let head = Head::Plain { smallest };
        if lanes.len() >= LEAST_SETTLED && settled > lanes.len() / 4 * 3 {
            let bytes = self.find_runs(lanes, settled - 1, sign);
            if bytes < packed_bytes(lanes.len(), span.bits()) {
                self.runs.write(sign, out);
                return true;
            }
        } else if changes(lanes) <= lanes.len() / 4 {
            let bytes = self.find_runs(lanes, 0, sign);
            let start = out.len();
            let is_written = self.write_above(lanes, span, head, out);
            if is_written && out.len() - start > bytes {
                out.truncate(start);
                self.runs.write(sign, out);
            }
            return is_written;
        }
        self.write_above(lanes, span, head, out)
    }

    /// Finds the runs of lanes of which so many at the end are like the one before; how many bytes
    /// the column would have.
    fn find_runs<S: Short>(&mut self, lanes: &[S], settled: usize, sign: Sign) -> usize {
        let (unsettled, _) = lanes.split_at(lanes.len().saturating_sub(settled));
        self.wide.clear();
        let wide = unsettled.iter().map(|lane| lane_of(lane.bits(), sign));
        self.wide.extend(wide);
        self.runs.find_settled(&self.wide, settled, sign)
    }

    /// As [`Self::write`], of lanes too few for anything but packing, the last of which is given.
    fn write_few<S: Short>(
        &mut self,
        lanes: &[S],
        last: u32,
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> bool {
        let (mut all, mut differing) = (0, 0);
        for lane in lanes {
            all |= lane.bits();
            differing |= lane.bits() ^ last;
        }
        if differing == 0 {
            write_constant(lane_of(last, sign), sign, out);
            return true;
        }
        let span = Span::of_all(lanes, all, sign);
        let smallest = sign.code(lane_of(span.smallest, sign));
        self.write_above(lanes, span, Head::Plain { smallest }, out)
    }

    /// Appends a column of signed numbers that are near 0; `false`, and nothing, if one is not, or
    /// they are worth a longer look.
    pub(super) fn write_near(&mut self, values: &[i64], out: &mut Vec<u8>) -> bool {
        self.with_lanes(|own, lanes| {
            let short = shorten(values.iter().copied(), lanes);
            short && own.write(lanes, Sign::Signed, out)
        })
    }

    /// Appends a column of signed numbers, each of which is near the one before; `false`, and
    /// nothing, if one is not, or they are worth a longer look.
    pub(super) fn write_rising(&mut self, values: &[i64], out: &mut Vec<u8>) -> bool {
        let Some((first, behind)) = values.split_first() else {
            return true;
        };
        self.with_lanes(|own, lanes| {
            let pairs = values.iter().zip(behind);
            if !shorten(
                pairs.map(|(before, value)| value.wrapping_sub(*before)),
                lanes,
            ) {
                return false;
            }
            let span = Span::of(lanes, Sign::Signed);
            let smallest = i64::from(span.smallest.cast_signed());
            if (smallest, span.range) == (0, 0) {
                write_constant(first.cast_unsigned(), Sign::Signed, out);
                return true;
            }
            let head = Head::Delta {
                first: varint::zigzag(*first),
                smallest: varint::zigzag(smallest),
            };
            own.write_above(lanes, span, head, out)
        })
    }

    /// Lends the memory for lanes.
    fn with_lanes<T>(&mut self, act: impl FnOnce(&mut Self, &mut Vec<i32>) -> T) -> T {
        let mut lanes = std::mem::take(&mut self.lanes);
        let done = act(self, &mut lanes);
        self.lanes = lanes;
        done
    }

    /// Appends lanes as what they are above the smallest.
    fn write_above<S: Short>(
        &mut self,
        lanes: &[S],
        span: Span,
        head: Head,
        out: &mut Vec<u8>,
    ) -> bool {
        let bits = span.bits();
        if lanes.len() < LEAST_PATCHED {
            if bits > MOST_BITS {
                return false;
            }
        } else if bits >= LEAST_BITS && self.write_patched(lanes, span, head, out) {
            return true;
        }
        out.push(match head {
            Head::Plain { .. } => PACKED,
            Head::Delta { .. } => DELTA_PACKED,
        });
        let payload = head.size() + 1 + packed_bytes(lanes.len(), bits);
        varint::write(out, to_u64(payload));
        head.write(out);
        out.extend(u8::try_from(bits));
        let above = |lane: &S| lane.bits().wrapping_sub(span.smallest);
        pack_short(lanes, above, bits, out);
        true
    }

    /// Appends lanes with patches; `false`, and nothing, if that is not shorter.
    fn write_patched<S: Short>(
        &mut self,
        lanes: &[S],
        span: Span,
        head: Head,
        out: &mut Vec<u8>,
    ) -> bool {
        let above = |lane: &S| lane.bits().wrapping_sub(span.smallest);
        let mut counts = [0_u32; 65];
        for lane in lanes.iter().step_by((lanes.len() / SAMPLE).max(2)) {
            let bits = to_usize(width(above(lane).into()).into());
            if let Some(count) = counts.get_mut(bits) {
                *count = count.wrapping_add(1);
            }
        }
        // One lane at least is as wide as that, also where no other one was looked at.
        if let Some(count) = counts.get_mut(to_usize(span.bits().into())) {
            *count = (*count).max(1);
        }
        let Some(bits) = cheapest(&counts, span.bits(), lanes.len()) else {
            return false;
        };
        // Which lanes are large cannot be foretold: all are put down, and only large ones kept.
        self.patches.resize(lanes.len(), (0, 0));
        let mut large = 0;
        for (at, lane) in (0_u32..).zip(lanes) {
            let high = above(lane) >> bits;
            if let Some(patch) = self.patches.get_mut(large) {
                *patch = (at, high.wrapping_sub(1));
            }
            large += usize::from(high != 0);
        }
        let patches = self.patches.get_mut(..large).unwrap_or_default();
        let (mut next, mut gaps, mut highs) = (0, 0, 0);
        for (at, high) in &mut *patches {
            (next, *at) = (at.wrapping_add(1), at.wrapping_sub(next));
            gaps |= *at;
            highs |= *high;
        }
        let parts = [width(gaps.into()), width(highs.into())];
        let part_bytes = parts.map(|bits| column_bytes(2 + packed_bytes(large, bits)));
        let packed = head.size() + 1 + packed_bytes(lanes.len(), bits);
        let payload = packed + varint::size(to_u64(large)) + part_bytes.iter().sum::<usize>();
        if large == 0 || payload > head.size() + packed_bytes(lanes.len(), span.bits()) {
            return false;
        }
        out.push(match head {
            Head::Plain { .. } => PATCHED,
            Head::Delta { .. } => DELTA_PATCHED,
        });
        varint::write(out, to_u64(payload));
        head.write(out);
        out.extend(u8::try_from(bits));
        let mask = u32::MAX >> (32 - bits.clamp(1, 32));
        pack_short(lanes, |lane| above(lane) & mask, bits, out);
        varint::write(out, to_u64(large));
        let patches = &*patches;
        let [gap_bits, high_bits] = parts;
        write_part(patches, (0, gap_bits), |(gap, _)| *gap, out);
        write_part(patches, (1, high_bits), |(_, high)| *high, out);
        true
    }
}

/// Appends a part of patches, packed above the smallest of its numbers, which `above` leaves out.
fn write_part(
    patches: &[(u32, u32)],
    (smallest, bits): (u8, u32),
    above: impl Fn(&(u32, u32)) -> u32,
    out: &mut Vec<u8>,
) {
    out.push(PACKED);
    varint::write(out, to_u64(2 + packed_bytes(patches.len(), bits)));
    out.push(smallest);
    out.extend(u8::try_from(bits));
    pack_short(patches, above, bits, out);
}

/// Fills `lanes` with the lower halves of numbers; whether these say it all.
fn shorten(numbers: impl ExactSizeIterator<Item = i64>, lanes: &mut Vec<i32>) -> bool {
    lanes.resize(numbers.len(), 0);
    let mut beyond = 0;
    for (lane, number) in lanes.iter_mut().zip(numbers) {
        beyond |= number.wrapping_sub(i32::MIN.into());
        *lane = low_half(number);
    }
    beyond.cast_unsigned() >> 32 == 0
}

/// How many lanes differ from the one before.
fn changes<S: Short>(lanes: &[S]) -> usize {
    let pairs = lanes.iter().zip(lanes.get(1..).unwrap_or_default());
    let differ = pairs.map(|(before, lane)| u32::from(before.bits() != lane.bits()));
    to_usize(differ.sum::<u32>().into())
}

/// The lane of a short number.
fn lane_of(bits: u32, sign: Sign) -> u64 {
    match sign {
        Sign::Signed => i64::from(bits.cast_signed()).cast_unsigned(),
        Sign::Unsigned => bits.into(),
    }
}
