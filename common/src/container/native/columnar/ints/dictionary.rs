//! Dictionary: the distinct lanes in order of appearance, and the position of each value in them.

use super::bits::{pack, packed_bytes, unpack, width};
use super::simple::read_part;
use super::stats::{Stats, column_bytes};
use super::{DICTIONARY, Sign};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::write::prefixed_by_length;
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// The most entries: beyond it the search costs more than it saves.
const MAX_ENTRIES: usize = 1_024;

/// A dictionary of a column; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    entries: Vec<u64>,
    /// Open addressing with linear probing: the position of an entry, plus one. A power of two of
    /// them, at most half of them full.
    slots: Vec<u16>,
    positions: Vec<u64>,
}

impl Dictionary {
    /// Makes the dictionary, if it can be worth it; returns how many bytes the column would have.
    pub(super) fn find(&mut self, lanes: &[u64], sign: Sign) -> Option<usize> {
        let most = (lanes.len() / 2).min(MAX_ENTRIES);
        self.entries.clear();
        self.positions.clear();
        self.slots.clear();
        self.slots.resize((2 * most).next_power_of_two(), 0);
        for lane in lanes {
            let position = self.position(*lane, most)?;
            self.positions.push(position);
        }
        Some(column_bytes(
            varint::size(to_u64(self.entries.len()))
                + Stats::of(&self.entries, sign).cheapest_column()
                + packed_bytes(lanes.len(), self.position_bits()),
        ))
    }

    /// Appends the column that was found last.
    pub(super) fn write(&self, sign: Sign, out: &mut Vec<u8>) {
        let stats = Stats::of(&self.entries, sign);
        out.push(DICTIONARY);
        prefixed_by_length(out, |out| {
            varint::write(out, to_u64(self.entries.len()));
            stats.cheapest().0.write(&self.entries, &stats, out);
            pack(self.positions.iter().copied(), self.position_bits(), out);
        });
    }

    fn position_bits(&self) -> u32 {
        width(to_u64(self.entries.len().saturating_sub(1)))
    }

    /// The lane's position among the entries; `None` when there are too many.
    fn position(&mut self, lane: u64, most: usize) -> Option<u64> {
        // Fibonacci hashing: the upper bits of the product depend on all bits of the lane.
        let hash = lane.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let mask = self.slots.len() - 1;
        let mut slot = to_usize(hash) & mask;
        loop {
            let at = self.slots.get_mut(slot)?;
            match usize::from(*at).checked_sub(1) {
                Some(position) if self.entries.get(position) == Some(&lane) => {
                    return Some(to_u64(position));
                }
                Some(_) => slot = (slot + 1) & mask,
                None => {
                    let position = self.entries.len();
                    if position >= most {
                        return None;
                    }
                    *at = u16::try_from(position + 1).ok()?;
                    self.entries.push(lane);
                    return Some(to_u64(position));
                }
            }
        }
    }
}

/// Reads the payload; `charge` is told how many lanes it needs beside those of the column.
pub(super) fn read(
    payload: &mut Cursor<'_>,
    count: usize,
    sign: Sign,
    lanes: &mut Vec<u64>,
    trace: &mut Option<Vec<&'static str>>,
    reading: &'static str,
    charge: impl FnOnce(usize) -> Result<(), DecodeErrorKind>,
) -> Result<(), DecodeError> {
    let at = payload.clone();
    let entries = payload.count(count, reading)?;
    charge(entries).map_err(|kind| at.error(reading, kind))?;
    let invalid = |found| at.error(reading, DecodeErrorKind::Invalid { found });
    if entries == 0 {
        return Err(invalid(0));
    }
    let entries = read_part(payload, entries, sign, trace, reading)?;
    let bits = width(to_u64(entries.len() - 1));
    let packed = payload.take(packed_bytes(count, bits), reading)?;
    let mut beyond = None;
    unpack(packed, count, bits, |position| {
        match entries.get(to_usize(position)) {
            Some(lane) => lanes.push(*lane),
            None => beyond = Some(position),
        }
    });
    match beyond {
        Some(position) => Err(invalid(position)),
        None => payload.finish(reading),
    }
}
