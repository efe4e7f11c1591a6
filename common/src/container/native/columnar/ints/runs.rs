//! Run length: the lane of each run, and how long it is.

use super::narrow::Lane;
use super::parts::Parts;
use super::stats::{Stats, column_bytes};
use super::unpack::Number;
use super::{RUN_LENGTH, Sign};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::write::prefixed_by_length;
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// The runs of a column; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(super) struct Runs {
    lanes: Vec<u64>,
    /// How many more lanes a run has beyond its first.
    repeats: Vec<u64>,
}

impl Runs {
    /// Finds the runs, if they can be worth it; returns how many bytes the column would have.
    pub(super) fn find<L: Lane>(&mut self, lanes: &[L], stats: &Stats) -> Option<usize> {
        if stats.runs > stats.count / 2 {
            return None;
        }
        self.collect(lanes, stats.first);
        Some(self.bytes(stats.sign))
    }

    /// Finds the runs of lanes the last of which is there so many times more; returns how many
    /// bytes the column would have.
    pub(super) fn find_settled(&mut self, lanes: &[u64], more: usize, sign: Sign) -> usize {
        self.collect(lanes, 0);
        if let Some(last) = self.repeats.last_mut() {
            *last += to_u64(more);
        }
        self.bytes(sign)
    }

    fn collect<L: Lane>(&mut self, lanes: &[L], first: u64) {
        self.lanes.clear();
        self.repeats.clear();
        for run in lanes.chunk_by(|a, b| a == b) {
            self.lanes.extend(run.first().map(|lane| lane.wide(first)));
            self.repeats.push(to_u64(run.len() - 1));
        }
    }

    fn bytes(&self, sign: Sign) -> usize {
        let (lanes, repeats) = self.stats(sign);
        column_bytes(
            varint::size(to_u64(self.lanes.len()))
                + lanes.cheapest_column()
                + repeats.cheapest_column(),
        )
    }

    /// Appends the column that was found last.
    pub(super) fn write(&self, sign: Sign, out: &mut Vec<u8>) {
        let (lanes, repeats) = self.stats(sign);
        out.push(RUN_LENGTH);
        prefixed_by_length(out, self.lanes.len(), |out| {
            varint::write(out, to_u64(self.lanes.len()));
            lanes.cheapest().0.write(&self.lanes, &lanes, out);
            repeats.cheapest().0.write(&self.repeats, &repeats, out);
        });
    }

    fn stats(&self, sign: Sign) -> (Stats, Stats) {
        let lanes = Stats::of(&self.lanes, sign);
        (lanes, Stats::of(&self.repeats, Sign::Unsigned))
    }
}

/// Fills `out` from the payload; returns all lanes, or-ed together.
pub(super) fn read<T: Number>(
    payload: &mut Cursor<'_>,
    sign: Sign,
    out: &mut [T],
    parts: &mut Parts<'_>,
    reading: &'static str,
) -> Result<u64, DecodeError> {
    let at = payload.clone();
    let count = out.len();
    let runs = payload.count(count, reading)?;
    let (values, repeats) = parts.two(payload, runs, sign, reading, &at)?;
    let mut seen = 0;
    let mut rest = out;
    for (lane, repeat) in values.iter().zip(repeats) {
        let run = to_usize(*repeat).saturating_add(1);
        let left = rest.len();
        let Some((lanes, behind)) = rest.split_at_mut_checked(run) else {
            let kind = DecodeErrorKind::Length {
                declared: to_u64(count),
                found: to_u64((count - left).saturating_add(run)),
            };
            return Err(at.error(reading, kind));
        };
        lanes.fill(T::of(*lane));
        seen |= *lane;
        rest = behind;
    }
    if !rest.is_empty() {
        let kind = DecodeErrorKind::Length {
            declared: to_u64(count),
            found: to_u64(count - rest.len()),
        };
        return Err(at.error(reading, kind));
    }
    payload.finish(reading)?;
    Ok(seen)
}
