//! How many bytes numbers take in a variable length, counted only where that can matter.

use super::Sign;
use super::narrow::Lane;
use super::stats::Stats;
use crate::container::varint;

/// How many bytes the lanes take in a variable length; `None` if not less than `limit`.
pub(super) fn varint_bytes<L: Lane>(lanes: &[L], stats: &Stats, limit: usize) -> Option<usize> {
    let (sign, smallest, largest) = (stats.sign, stats.smallest, stats.largest());
    let (least, most) = match sign {
        Sign::Unsigned => (smallest, largest),
        Sign::Signed => codes(smallest.cast_signed(), largest.cast_signed()),
    };
    total(lanes.len(), least, most, limit, || {
        let lanes = lanes.iter().map(|lane| lane.wide(stats.first));
        match sign {
            Sign::Unsigned => lanes.map(varint::size).sum(),
            Sign::Signed => lanes.map(|lane| varint::size(sign.code(lane))).sum(),
        }
    })
}

/// How many bytes the differences between neighbours take in a variable length, without the first
/// lane; `None` if not less than `limit`.
pub(super) fn delta_varint_bytes<L: Lane>(
    lanes: &[L],
    stats: &Stats,
    limit: usize,
) -> Option<usize> {
    let (least, most) = codes(stats.smallest_delta, stats.largest_delta());
    let behind = lanes.get(1..).unwrap_or_default();
    total(behind.len(), least, most, limit, || {
        L::delta_bytes(lanes, behind)
    })
}

/// The smallest and the largest zigzag form of the numbers in a range.
fn codes(smallest: i64, largest: i64) -> (u64, u64) {
    let (a, b) = (varint::zigzag(smallest), varint::zigzag(largest));
    let least = if smallest < 0 && largest >= 0 {
        0
    } else {
        a.min(b)
    };
    (least, a.max(b))
}

/// The sum over so many numbers from `least` to `most`, counted only if they differ in length and
/// may be below the limit.
fn total(
    numbers: usize,
    least: u64,
    most: u64,
    limit: usize,
    count: impl FnOnce() -> usize,
) -> Option<usize> {
    let [least, most] = [least, most].map(varint::size);
    let bytes = numbers.saturating_mul(least);
    if bytes >= limit {
        return None;
    }
    let bytes = if least == most { bytes } else { count() };
    (bytes < limit).then_some(bytes)
}
