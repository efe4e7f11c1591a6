//! What is known of the lanes of a column, and its cheapest simple encoding.

use super::bits::{packed_bytes, width};
use super::narrow::Lane;
use super::simple::Simple;
use super::sizes::{delta_varint_bytes, varint_bytes};
use super::{Shape, Sign};
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// So few lanes are not worth a search, unless they are long.
pub(super) const FEW_LANES: usize = 64;

/// What is known of a column of at least one lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct Stats {
    pub(super) sign: Sign,
    pub(super) count: usize,
    /// Runs of equal lanes.
    pub(super) runs: usize,
    pub(super) first: u64,
    /// The smallest lane, as a number of its sign.
    pub(super) smallest: u64,
    /// By how much the largest lane is larger.
    pub(super) range: u64,
    /// The smallest difference between neighbours.
    pub(super) smallest_delta: i64,
    /// By how much the largest difference is larger.
    pub(super) delta_range: u64,
    cheapest: (Simple, usize),
}

impl Stats {
    /// Of lanes of any numbers.
    pub(super) fn of(lanes: &[u64], sign: Sign) -> Self {
        let first = lanes.first().copied().unwrap_or(0);
        let bias = sign.bias();
        let (mut smallest, mut largest) = (first ^ bias, first ^ bias);
        let (mut smallest_delta, mut largest_delta) = (i64::MAX, i64::MIN);
        let mut runs = 1;
        let mut before = first;
        for lane in lanes.iter().skip(1) {
            let key = *lane ^ bias;
            smallest = key.min(smallest);
            largest = key.max(largest);
            let delta = lane.wrapping_sub(before).cast_signed();
            smallest_delta = delta.min(smallest_delta);
            largest_delta = delta.max(largest_delta);
            runs += usize::from(delta != 0);
            before = *lane;
        }
        let stats = Self {
            sign,
            count: lanes.len(),
            runs,
            first,
            smallest: smallest ^ bias,
            range: largest.wrapping_sub(smallest),
            smallest_delta,
            delta_range: largest_delta.wrapping_sub(smallest_delta).cast_unsigned(),
            cheapest: (Simple::Constant, 0),
        };
        stats.finish(lanes)
    }

    /// Of lanes that are near the first one, as far as lanes of this shape need it; `None` where
    /// they are on both sides of the end of the numbers.
    pub(super) fn of_near(offsets: &[i32], first: u64, sign: Sign, shape: Shape) -> Option<Self> {
        let mut stats = Self {
            sign,
            count: offsets.len(),
            runs: offsets.len(),
            first,
            smallest: first,
            range: u64::MAX,
            smallest_delta: 0,
            delta_range: u64::MAX,
            cheapest: (Simple::Constant, 0),
        };
        // Nothing depends on what precedes it, so that the compiler takes several at a time.
        let (smallest, largest) = span(offsets.iter().copied());
        let key = first ^ sign.bias();
        let [low, high] = [smallest, largest].map(|it: i32| key.checked_add_signed(it.into()));
        let (low, high) = low.zip(high)?;
        stats.smallest = low ^ sign.bias();
        stats.range = high.wrapping_sub(low);
        let deltas = || {
            let behind = offsets.get(1..).unwrap_or_default();
            let pairs = offsets.iter().zip(behind);
            pairs.map(|(before, offset)| offset.wrapping_sub(*before))
        };
        if shape == Shape::Any {
            let (smallest, largest) = span(deltas());
            stats.smallest_delta = smallest.into();
            let range = i64::from(largest).wrapping_sub(smallest.into());
            stats.delta_range = range.cast_unsigned();
        }
        let has_runs = match shape {
            Shape::Any => true,
            Shape::Level => offsets.len() >= FEW_LANES,
            Shape::Ids => false,
        };
        if has_runs {
            let changes: u32 = deltas().map(|delta| u32::from(delta != 0)).sum();
            stats.runs = to_usize(changes.into()).saturating_add(1);
        }
        Some(match shape {
            Shape::Any => stats.finish(offsets),
            _ => stats.finish_shaped(offsets),
        })
    }

    /// Packed as the shape says, or in a variable length where that may be shorter.
    fn finish_shaped<L: Lane>(mut self, lanes: &[L]) -> Self {
        let packed = (Simple::Packed, self.packed_bytes());
        let delta = (Simple::DeltaPacked, self.delta_packed_bytes());
        self.cheapest = if delta.1 < packed.1 { delta } else { packed };
        // Within a byte nothing is shorter than packed; of many, few large ones are patched.
        if self.delta_range == u64::MAX
            && self.count < FEW_LANES
            && width(self.range) > 8
            && let Some(bytes) = varint_bytes(lanes, &self, packed.1)
        {
            self.cheapest = (Simple::Varint, bytes);
        }
        self
    }

    fn finish<L: Lane>(mut self, lanes: &[L]) -> Self {
        if self.count < 2 {
            (self.smallest_delta, self.delta_range) = (0, 0);
        }
        self.cheapest = self.find_cheapest(lanes);
        self
    }

    /// The cheapest simple encoding, and how many bytes its payload has.
    ///
    /// Among equals the one that is decoded fastest wins.
    pub(super) fn cheapest(&self) -> (Simple, usize) {
        self.cheapest
    }

    /// How many bytes the whole column has in its cheapest simple encoding.
    pub(super) fn cheapest_column(&self) -> usize {
        column_bytes(self.cheapest.1)
    }

    fn find_cheapest<L: Lane>(&self, lanes: &[L]) -> (Simple, usize) {
        if self.runs == 1 {
            return (Simple::Constant, self.number(self.first));
        }
        let first = self.number(self.first);
        let mut best = (
            Simple::Fixed,
            1 + self.count * usize::from(self.fixed_width()),
        );
        let mut consider = |simple, bytes| {
            if bytes < best.1 {
                best = (simple, bytes);
            }
            best.1
        };
        consider(Simple::Packed, self.packed_bytes());
        let limit = consider(Simple::DeltaPacked, self.delta_packed_bytes());
        // Those of a variable length take another pass, if they can win at all.
        let limit =
            varint_bytes(lanes, self, limit).map_or(limit, |bytes| consider(Simple::Varint, bytes));
        if let Some(bytes) = delta_varint_bytes(lanes, self, limit.saturating_sub(first)) {
            consider(Simple::DeltaVarint, first + bytes);
        }
        best
    }

    fn packed_bytes(&self) -> usize {
        self.number(self.smallest) + 1 + packed_bytes(self.count, width(self.range))
    }

    fn delta_packed_bytes(&self) -> usize {
        let deltas = self.count.saturating_sub(1);
        self.number(self.first)
            + varint::size(varint::zigzag(self.smallest_delta))
            + 1
            + packed_bytes(deltas, width(self.delta_range))
    }

    /// The largest lane, as a number of its sign.
    pub(super) fn largest(&self) -> u64 {
        self.smallest.wrapping_add(self.range)
    }

    /// The largest difference between neighbours.
    pub(super) fn largest_delta(&self) -> i64 {
        self.smallest_delta.wrapping_add_unsigned(self.delta_range)
    }

    /// How many different lanes there are at least, without looking at them again: exact where
    /// they never fall, nor rise by so much that they could begin anew.
    pub(super) fn least_distinct(&self) -> usize {
        let steps = to_u64(self.count);
        let rise = u64::try_from(self.largest_delta()).ok();
        let rises =
            self.smallest_delta >= 0 && rise.is_some_and(|rise| rise.checked_mul(steps).is_some());
        if rises { self.runs } else { 2.min(self.runs) }
    }

    /// 1, 2, 4 or 8 bytes: what every lane fits into.
    pub(super) fn fixed_width(&self) -> u8 {
        let largest = self.largest();
        let bits = match self.sign {
            Sign::Unsigned => width(largest),
            // One bit more for the sign.
            Sign::Signed => {
                let magnitude = |lane: u64| {
                    let number = lane.cast_signed();
                    (number ^ (number >> 63)).cast_unsigned()
                };
                1 + width(magnitude(self.smallest).max(magnitude(largest)))
            }
        };
        match bits {
            0..=8 => 1,
            9..=16 => 2,
            17..=32 => 4,
            _ => 8,
        }
    }

    fn number(&self, lane: u64) -> usize {
        varint::size(self.sign.code(lane))
    }
}

/// The smallest and the largest of some numbers.
#[inline]
fn span(numbers: impl Iterator<Item = i32>) -> (i32, i32) {
    numbers.fold((i32::MAX, i32::MIN), |(smallest, largest), number| {
        (smallest.min(number), largest.max(number))
    })
}

/// How many bytes a column with this payload has.
pub(super) fn column_bytes(payload_bytes: usize) -> usize {
    1 + varint::size(to_u64(payload_bytes)) + payload_bytes
}
