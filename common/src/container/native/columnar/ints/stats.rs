//! What one pass over the lanes tells: the exact size of every simple encoding.

use super::Sign;
use super::bits::{packed_bytes, width};
use super::simple::Simple;
use crate::container::num::to_u64;
use crate::container::varint;

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
    varint_bytes: usize,
    delta_varint_bytes: usize,
}

impl Stats {
    pub(super) fn of(lanes: &[u64], sign: Sign) -> Self {
        let first = lanes.first().copied().unwrap_or(0);
        let bias = sign.bias();
        let (mut smallest, mut largest) = (u64::MAX, 0);
        let (mut smallest_delta, mut largest_delta) = (i64::MAX, i64::MIN);
        let (mut varint_bytes, mut delta_varint_bytes) = (0, 0);
        let mut runs = 1;
        let mut before = first;
        for lane in lanes {
            let key = *lane ^ bias;
            smallest = key.min(smallest);
            largest = key.max(largest);
            varint_bytes += varint::size(sign.code(*lane));
        }
        for lane in lanes.iter().skip(1) {
            let delta = lane.wrapping_sub(before).cast_signed();
            smallest_delta = delta.min(smallest_delta);
            largest_delta = delta.max(largest_delta);
            delta_varint_bytes += varint::size(varint::zigzag(delta));
            runs += usize::from(delta != 0);
            before = *lane;
        }
        if lanes.len() < 2 {
            (smallest_delta, largest_delta) = (0, 0);
        }
        Self {
            sign,
            count: lanes.len(),
            runs,
            first,
            smallest: smallest ^ bias,
            range: largest.wrapping_sub(smallest),
            smallest_delta,
            delta_range: largest_delta.wrapping_sub(smallest_delta).cast_unsigned(),
            varint_bytes,
            delta_varint_bytes,
        }
    }

    /// The cheapest simple encoding, and how many bytes its payload has.
    ///
    /// Among equals the one that is decoded fastest wins.
    pub(super) fn cheapest(&self) -> (Simple, usize) {
        if self.runs == 1 {
            return (Simple::Constant, self.number(self.first));
        }
        let fixed = self.fixed_width();
        let deltas = self.count.saturating_sub(1);
        let first = self.number(self.first);
        let candidates = [
            (Simple::Fixed, 1 + self.count * usize::from(fixed)),
            (
                Simple::Packed,
                self.number(self.smallest) + 1 + packed_bytes(self.count, width(self.range)),
            ),
            (
                Simple::DeltaPacked,
                first
                    + varint::size(varint::zigzag(self.smallest_delta))
                    + 1
                    + packed_bytes(deltas, width(self.delta_range)),
            ),
            (Simple::Varint, self.varint_bytes),
            (Simple::DeltaVarint, first + self.delta_varint_bytes),
        ];
        let cheapest = candidates.into_iter().min_by_key(|(_, bytes)| *bytes);
        cheapest.unwrap_or((Simple::Varint, self.varint_bytes))
    }

    /// How many bytes the whole column has in its cheapest simple encoding.
    pub(super) fn cheapest_column(&self) -> usize {
        column_bytes(self.cheapest().1)
    }

    /// 1, 2, 4 or 8 bytes: what every lane fits into.
    pub(super) fn fixed_width(&self) -> u8 {
        let largest = self.smallest.wrapping_add(self.range);
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

/// How many bytes a column with this payload has.
pub(super) fn column_bytes(payload_bytes: usize) -> usize {
    1 + varint::size(to_u64(payload_bytes)) + payload_bytes
}
