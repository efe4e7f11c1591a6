//! Dictionary: the distinct lanes in order of appearance, and the position of each value in them.

use super::bits::{Packer, packed_bytes, width};
use super::narrow::Lane;
use super::parts::Parts;
use super::stats::{Stats, column_bytes};
use super::unpack::{Number, Unpacked, unpack};
use super::{DICTIONARY, Sign, distinct};
use crate::container::cursor::Cursor;
use crate::container::error::{DecodeError, DecodeErrorKind};
use crate::container::native::write::prefixed_by_length;
use crate::container::num::{to_u64, to_usize};
use crate::container::varint;

/// The most entries: beyond it the search costs more than it saves.
const MAX_ENTRIES: usize = 1_024;

/// From so many lanes on the different ones are counted first.
const MANY: usize = 256;

/// Up to this range a table of all numbers in it takes the place of hashing.
const MAX_TABLE: u64 = 1 << 12;

/// A dictionary of a column; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(super) struct Dictionary {
    entries: Vec<u64>,
    /// The position of an entry, plus one: in the place of its number above the smallest, or by
    /// open addressing with linear probing in a power of two of them, at most half of them full.
    slots: Vec<u16>,
    positions: Vec<u16>,
}

impl Dictionary {
    /// Makes the dictionary, if it makes the column shorter than `best` bytes; returns how many
    /// bytes the column would have.
    pub(super) fn find<L: Lane>(
        &mut self,
        lanes: &[L],
        stats: &Stats,
        best: usize,
    ) -> Option<usize> {
        let most = (lanes.len() / 2).min(MAX_ENTRIES);
        let most = most.min(entries_within(lanes.len(), best));
        if stats.least_distinct() > most {
            return None;
        }
        self.entries.clear();
        self.positions.resize(lanes.len(), 0);
        if stats.range < MAX_TABLE {
            self.by_number(lanes, stats, most)?;
        } else {
            // Most such columns end here, before anything is made that would be thrown away.
            let many = lanes.len() >= MANY;
            if many && distinct::at_least(lanes, stats.first) > most {
                return None;
            }
            self.by_hash(lanes, stats, most)?;
        }
        let bytes = column_bytes(
            varint::size(to_u64(self.entries.len()))
                + Stats::of(&self.entries, stats.sign).cheapest_column()
                + packed_bytes(lanes.len(), self.position_bits()),
        );
        (bytes < best).then_some(bytes)
    }

    /// Appends the column that was found last.
    pub(super) fn write(&self, sign: Sign, out: &mut Vec<u8>) {
        let stats = Stats::of(&self.entries, sign);
        out.push(DICTIONARY);
        prefixed_by_length(out, self.positions.len(), |out| {
            varint::write(out, to_u64(self.entries.len()));
            stats.cheapest().0.write(&self.entries, &stats, out);
            let (fours, rest) = self.positions.as_chunks::<4>();
            Packer::new(self.positions.len(), self.position_bits(), out).add(
                fours.iter().map(|four| four.map(u64::from)),
                rest.iter().copied().map(u64::from),
            );
        });
    }

    fn position_bits(&self) -> u32 {
        width(to_u64(self.entries.len().saturating_sub(1)))
    }

    /// Finds the entries and positions of lanes in a small range; `None` when there are too many.
    fn by_number<L: Lane>(&mut self, lanes: &[L], stats: &Stats, most: usize) -> Option<()> {
        self.slots.clear();
        self.slots.resize(to_usize(stats.range) + 1, 0);
        for (position, lane) in self.positions.iter_mut().zip(lanes) {
            let lane = lane.wide(stats.first);
            let above = to_usize(lane.wrapping_sub(stats.smallest));
            let slot = self.slots.get_mut(above)?;
            if *slot == 0 {
                *slot = add(&mut self.entries, lane, most)?;
            }
            *position = slot.wrapping_sub(1);
        }
        Some(())
    }

    /// As [`Self::by_number`], whatever the range.
    fn by_hash<L: Lane>(&mut self, lanes: &[L], stats: &Stats, most: usize) -> Option<()> {
        self.slots.clear();
        self.slots.resize((2 * most).next_power_of_two(), 0);
        let mask = self.slots.len() - 1;
        for (position, lane) in self.positions.iter_mut().zip(lanes) {
            let lane = lane.wide(stats.first);
            // Fibonacci hashing: the upper bits of the product depend on all bits of the lane.
            let hash = lane.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let mut place = to_usize(hash) & mask;
            *position = loop {
                let slot = self.slots.get_mut(place)?;
                match slot.checked_sub(1) {
                    Some(known) if self.entries.get(usize::from(known)) == Some(&lane) => {
                        break known;
                    }
                    Some(_) => place = (place + 1) & mask,
                    None => {
                        *slot = add(&mut self.entries, lane, most)?;
                        break slot.wrapping_sub(1);
                    }
                }
            };
        }
        Some(())
    }
}

/// Adds an entry and returns its position, plus one; `None` when there are too many.
fn add(entries: &mut Vec<u64>, lane: u64, most: usize) -> Option<u16> {
    if entries.len() >= most {
        return None;
    }
    entries.push(lane);
    u16::try_from(entries.len()).ok()
}

/// How many entries a dictionary of so many lanes may have that is to be shorter than `best` bytes.
fn entries_within(lanes: usize, best: usize) -> usize {
    // The column's own encoding and length, the number of entries, and the shortest column of two
    // numbers that differ: encoding, length, and a byte each.
    let around = 1 + 1 + 1 + 4;
    let positions = best.saturating_sub(around + 1);
    let bits = positions.saturating_mul(8) / lanes.max(1);
    // A width of 0 is that of a single entry.
    let entries = |bits| 1_usize.checked_shl(bits);
    u32::try_from(bits)
        .ok()
        .and_then(entries)
        .unwrap_or(usize::MAX)
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
    let invalid = |found| at.error(reading, DecodeErrorKind::Invalid { found });
    let count = payload.count(out.len(), reading)?;
    if count == 0 {
        return Err(invalid(0));
    }
    let entries = parts.one(payload, count, sign, reading, &at)?;
    let bits = width(to_u64(count - 1));
    let packed = payload.take(packed_bytes(out.len(), bits), reading)?;
    let lookup = Lookup {
        entries,
        seen: 0,
        beyond: 0,
    };
    let lookup = unpack(packed, bits, out, lookup);
    if lookup.beyond > 0 {
        return Err(invalid(lookup.beyond));
    }
    let seen = lookup.seen;
    payload.finish(reading)?;
    Ok(seen)
}

/// Positions, each of which becomes the entry there.
struct Lookup<'a> {
    entries: &'a [u64],
    /// All lanes, or-ed together.
    seen: u64,
    /// A position where there is no entry; 0 if there is none: it always has one.
    beyond: u64,
}

impl<T: Number> Unpacked<T> for Lookup<'_> {
    #[inline]
    fn next(&mut self, position: u64) -> T {
        let entry = self.entries.get(to_usize(position)).copied();
        let entry = entry.unwrap_or_else(|| {
            self.beyond = position;
            0
        });
        self.seen |= entry;
        T::of(entry)
    }
}
