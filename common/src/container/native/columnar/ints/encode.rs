//! Writes columns of integers in the shortest of a few layouts.
//!
//! The packed numbers are the distances of the integers from the smallest integer, or the distances
//! of the differences between neighbours from the smallest difference. Runs, patches, a dictionary
//! and a step are written to a separate buffer if a sample shows that they may pay, and are used if
//! they are shorter. The columns of one field are similar from chunk to chunk. So the layout of the
//! last chunk is used again, and all layouts are compared only in every sixteenth chunk.

use super::bits::{pack, width};
use super::packing::{Packing, Span, Stats};
use super::stepped::Step;
use super::{
    CONSTANT, DELTA_PACKED, DELTA_PATCHED, DICTIONARY, PACKED, PATCHED, REFERENCE, RUN_LENGTH,
    STEPPED, Sign, VARINT,
};
use crate::container::varint::{self, prefixed_by_length};
use crate::number::{to_u64, to_usize};

/// Columns that are packed in fewer bytes have no other layout.
const LEAST_BYTES: usize = 80;

/// Columns of fewer integers may have numbers of a variable length.
const LEAST_PACKED: usize = 64;

/// The most entries of a dictionary: beyond it the search costs more than it saves.
const MAX_ENTRIES: usize = 1_024;

/// The most entries that the first `EARLY` integers of a dictionary may have.
const MAX_EARLY: usize = 48;
const EARLY: usize = 64;

/// A column keeps its layout for this number of chunks before all layouts are compared again.
const CHUNKS_BETWEEN_CHOICES: u8 = 15;

/// Writes columns of integers; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(in crate::container::native) struct IntEncoder {
    integers: Vec<u64>,
    /// The integers divided by their step.
    multiples: Vec<u64>,
    /// The numbers to pack.
    numbers: Vec<u64>,
    /// The shortest column so far, if it is not simply packed, and the next candidate.
    best: Vec<u8>,
    candidate: Vec<u8>,
    /// The parts of the candidate: runs, patches, or a dictionary.
    parts: [Vec<u64>; 2],
    /// The numbers of a part.
    part_numbers: Vec<u64>,
    /// The position of an entry of the dictionary, plus one, by the hash of the entry.
    slots: Vec<u16>,
    /// The choices for the columns of each table in the last chunk.
    choices: Vec<Vec<Choice>>,
    /// The table and the column that come next.
    next: (usize, usize),
}

/// The choice for a column in the last chunk.
#[derive(Debug, Clone, Copy, Default)]
struct Choice {
    layout: u8,
    has_step: bool,
    integers: usize,
    bytes: usize,
    /// The number of further chunks before layouts are compared again.
    chunks: u8,
}

impl Choice {
    /// Whether a column of these sizes takes hardly more bytes an integer.
    fn is_as_short(self, integers: usize, bytes: usize) -> bool {
        let bytes = to_u64(bytes - bytes / 8);
        bytes * to_u64(self.integers) <= to_u64(self.bytes) * to_u64(integers)
    }
}

impl IntEncoder {
    /// Begins the table with this number, which finds the last layouts of its columns.
    pub(in crate::container::native) fn begin_table(&mut self, number: usize) {
        self.next = (number, 0);
    }

    /// Appends a column of these integers. A column without an integer takes no byte.
    pub(in crate::container::native) fn write(
        &mut self,
        integers: impl Iterator<Item = u64>,
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        let mut own = std::mem::take(&mut self.integers);
        own.clear();
        own.extend(integers);
        let (table, column) = self.next;
        self.next.1 += 1;
        match constant(&own) {
            Some(integer) => write_constant(integer, sign, out),
            None if !own.is_empty() => {
                let columns = self.choices.get(table).and_then(|it| it.get(column));
                let before = columns.copied().filter(|before| before.chunks > 0);
                let choice = self.write_column(&own, before, sign, out);
                self.remember(table, column, choice);
            }
            None => {}
        }
        self.integers = own;
    }

    /// As [`Self::write`], without a step.
    #[cfg(test)]
    pub(super) fn write_plain(&mut self, integers: &[u64], sign: Sign, out: &mut Vec<u8>) {
        match constant(integers) {
            Some(integer) => write_constant(integer, sign, out),
            None => drop(self.write_shortest(integers, &Stats::of(integers, sign), sign, out)),
        }
    }

    fn remember(&mut self, table: usize, column: usize, choice: Choice) {
        let tables = self.choices.len().max(table + 1);
        self.choices.resize_with(tables, Vec::new);
        if let Some(choices) = self.choices.get_mut(table) {
            choices.resize(choices.len().max(column + 1), Choice::default());
            choices
                .get_mut(column)
                .into_iter()
                .for_each(|it| *it = choice);
        }
    }

    /// Appends a column as in the last chunk, if that choice holds, or in its shortest layout.
    fn write_column(
        &mut self,
        integers: &[u64],
        before: Option<Choice>,
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> Choice {
        let start = out.len();
        if let Some(before) = before {
            let is_written = self.write_as_before(integers, before, sign, out);
            if is_written && before.is_as_short(integers.len(), out.len() - start) {
                let chunks = before.chunks - 1;
                return Choice { chunks, ..before };
            }
            out.truncate(start);
        }
        let stats = Stats::of(integers, sign);
        let mut layout = self.write_shortest(integers, &stats, sign, out);
        let end = out.len();
        let delta_bits = stats.delta.map_or(u32::MAX, |packing| packing.span.bits);
        let bits = stats.plain.span.bits.min(delta_bits);
        let mut has_step = false;
        if let Some(step) = Step::find(integers, stats.plain.span.smallest, bits, sign) {
            let smallest = stats.plain.span.smallest;
            let layout_of_multiples = self.write_divided(integers, smallest, step, None, sign, out);
            has_step = out.len() - end < end - start;
            if has_step {
                layout = layout_of_multiples;
                drop(out.drain(start..end));
            } else {
                out.truncate(end);
            }
        }
        // Short columns are compared in every chunk.
        let is_long = stats.shortest(integers.len()).1 >= LEAST_BYTES;
        Choice {
            layout,
            has_step,
            integers: integers.len(),
            bytes: out.len() - start,
            chunks: if is_long { CHUNKS_BETWEEN_CHOICES } else { 0 },
        }
    }

    /// Appends a column in the layout of the last chunk. Returns `false` if that is impossible; the
    /// caller then cuts off what was appended.
    fn write_as_before(
        &mut self,
        integers: &[u64],
        before: Choice,
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> bool {
        if !before.has_step {
            return self.write_layout(before.layout, integers, sign, out);
        }
        let Span { smallest, bits } = Packing::plain(integers, sign).span;
        let Some(step) = Step::find(integers, smallest, bits, sign) else {
            return false;
        };
        let layout = Some(before.layout);
        self.write_divided(integers, smallest, step, layout, sign, out) == before.layout
    }

    /// Appends a column with its step divided out, in the given layout if there is one. Returns the
    /// layout of the multiples.
    fn write_divided(
        &mut self,
        integers: &[u64],
        smallest: u64,
        step: Step,
        layout: Option<u8>,
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> u8 {
        let mut multiples = std::mem::take(&mut self.multiples);
        step.divide(integers, smallest, sign, &mut multiples);
        let mut written = CONSTANT;
        out.push(STEPPED);
        prefixed_by_length(out, integers.len(), |out| {
            step.write(out);
            written = match (constant(&multiples), layout) {
                (Some(integer), _) => {
                    write_constant(integer, sign, out);
                    CONSTANT
                }
                (None, Some(layout)) if self.write_layout(layout, &multiples, sign, out) => layout,
                (None, Some(_)) => CONSTANT,
                (None, None) => {
                    let stats = Stats::of(&multiples, sign);
                    self.write_shortest(&multiples, &stats, sign, out)
                }
            };
        });
        self.multiples = multiples;
        written
    }

    /// Appends a column in this layout. Returns `false`, and appends nothing, if that is
    /// impossible.
    fn write_layout(
        &mut self,
        layout: u8,
        integers: &[u64],
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> bool {
        match layout {
            PACKED | DELTA_PACKED | PATCHED | DELTA_PATCHED => {
                let packing = match layout {
                    PACKED | PATCHED => Packing::plain(integers, sign),
                    _ => Packing::delta(integers, sign),
                };
                let is_patched = matches!(layout, PATCHED | DELTA_PATCHED);
                if !(is_patched && self.write_patches(integers, packing, out)) {
                    packing.write_column(integers, &mut self.numbers, out);
                }
                true
            }
            RUN_LENGTH => self.write_runs(integers, sign, out),
            DICTIONARY => {
                let bits = Packing::plain(integers, sign).span.bits;
                self.write_dictionary(integers, bits, sign, out)
            }
            VARINT => write_varints(integers, sign, out),
            _ => false,
        }
    }

    /// Appends a column in its shortest layout without a step. Returns the layout.
    fn write_shortest(
        &mut self,
        integers: &[u64],
        stats: &Stats,
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> u8 {
        let (shortest, mut best_bytes) = stats.shortest(integers.len());
        let patched = stats.delta.unwrap_or(stats.plain);
        if best_bytes < LEAST_BYTES {
            shortest.write_column(integers, &mut self.numbers, out);
            return shortest.layout();
        }
        let [mut best, mut candidate] = [&mut self.best, &mut self.candidate].map(std::mem::take);
        best.clear();
        for layout in [RUN_LENGTH, PATCHED, DICTIONARY, VARINT] {
            candidate.clear();
            let out = &mut candidate;
            let is_written = match layout {
                RUN_LENGTH => stats.repeats && self.write_runs(integers, sign, out),
                PATCHED => self.write_patches(integers, patched, out),
                DICTIONARY => self.write_dictionary(integers, shortest.span.bits, sign, out),
                _ => integers.len() < LEAST_PACKED && write_varints(integers, sign, out),
            };
            if is_written && candidate.len() < best_bytes {
                best_bytes = candidate.len();
                std::mem::swap(&mut best, &mut candidate);
            }
        }
        let layout = match best.first() {
            Some(layout) => {
                out.extend_from_slice(&best);
                *layout
            }
            None => {
                shortest.write_column(integers, &mut self.numbers, out);
                shortest.layout()
            }
        };
        (self.best, self.candidate) = (best, candidate);
        layout
    }

    /// Appends a column of runs.
    fn write_runs(&mut self, integers: &[u64], sign: Sign, out: &mut Vec<u8>) -> bool {
        let [values, repeats] = &mut self.parts;
        values.clear();
        repeats.clear();
        for run in integers.chunk_by(|a, b| a == b) {
            values.extend(run.first());
            repeats.push(to_u64(run.len() - 1));
        }
        let numbers = &mut self.part_numbers;
        out.push(RUN_LENGTH);
        prefixed_by_length(out, integers.len(), |out| {
            varint::write(out, to_u64(values.len()));
            write_simple(values, sign, numbers, out);
            write_simple(repeats, Sign::Unsigned, numbers, out);
        });
        true
    }

    /// Appends a column with patches, if a sample of the numbers shows that a few are larger than
    /// the others ("patched frame of reference": Zukowski, Heman, Nes, Boncz, "Super-Scalar RAM-CPU
    /// Cache Compression", section 4).
    fn write_patches(&mut self, integers: &[u64], packing: Packing, out: &mut Vec<u8>) -> bool {
        let Some(bits) = packing.patched_width(integers) else {
            return false;
        };
        packing.numbers(integers, &mut self.numbers);
        let [gaps, highs] = &mut self.parts;
        gaps.clear();
        highs.clear();
        let mut next = 0;
        for (at, number) in (0..).zip(&self.numbers) {
            let high = number >> bits;
            if high != 0 {
                gaps.push(at - next);
                highs.push(high);
                next = at + 1;
            }
        }
        let is_delta = packing.first.is_some();
        let code = if is_delta { DELTA_PATCHED } else { PATCHED };
        let part_numbers = &mut self.part_numbers;
        out.push(code);
        prefixed_by_length(out, self.numbers.len(), |out| {
            packing.write(&self.numbers, bits, out);
            varint::write(out, to_u64(gaps.len()));
            write_simple(gaps, Sign::Unsigned, part_numbers, out);
            write_simple(highs, Sign::Unsigned, part_numbers, out);
        });
        true
    }

    /// Appends a column with a dictionary, if few integers are distinct.
    fn write_dictionary(
        &mut self,
        integers: &[u64],
        bits: u32,
        sign: Sign,
        out: &mut Vec<u8>,
    ) -> bool {
        // Positions must be narrower by two bits; otherwise the entries take the saved bytes.
        let most = 1_usize.checked_shl(bits.max(2) - 2);
        let most = most
            .unwrap_or(MAX_ENTRIES)
            .min(MAX_ENTRIES)
            .min(integers.len() / 2);
        self.slots.clear();
        self.slots.resize((2 * most).next_power_of_two(), 0);
        let mask = self.slots.len() - 1;
        let [entries, positions] = &mut self.parts;
        entries.clear();
        positions.clear();
        for integer in integers {
            // Fibonacci hashing: the upper bits of the product depend on all bits of the integer.
            let hash = integer.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
            let mut place = to_usize(hash) & mask;
            let position = loop {
                let Some(slot) = self.slots.get_mut(place) else {
                    return false;
                };
                match slot.checked_sub(1) {
                    Some(known) if entries.get(usize::from(known)) == Some(integer) => break known,
                    Some(_) => place = (place + 1) & mask,
                    None => {
                        // If most of the first integers are distinct, the others probably are, too.
                        let is_early = positions.len() < EARLY;
                        let most = if is_early { most.min(MAX_EARLY) } else { most };
                        let Some(next) = u16::try_from(entries.len() + 1).ok() else {
                            return false;
                        };
                        if entries.len() >= most {
                            return false;
                        }
                        entries.push(*integer);
                        *slot = next;
                        break next - 1;
                    }
                }
            };
            positions.push(position.into());
        }
        let numbers = &mut self.part_numbers;
        out.push(DICTIONARY);
        prefixed_by_length(out, integers.len(), |out| {
            varint::write(out, to_u64(entries.len()));
            write_simple(entries, sign, numbers, out);
            pack(positions, width(to_u64(entries.len() - 1)), out);
        });
        true
    }
}

/// Appends a column of numbers of a variable length: for few numbers of which some are far below
/// the others.
fn write_varints(integers: &[u64], sign: Sign, out: &mut Vec<u8>) -> bool {
    out.push(VARINT);
    prefixed_by_length(out, integers.len(), |out| {
        integers
            .iter()
            .for_each(|integer| varint::write(out, sign.code(*integer)));
    });
    true
}

/// Appends a column in a layout that other layouts are built from: constant or packed.
fn write_simple(integers: &[u64], sign: Sign, numbers: &mut Vec<u64>, out: &mut Vec<u8>) {
    match constant(integers) {
        Some(integer) => write_constant(integer, sign, out),
        None if !integers.is_empty() => {
            let (packing, _) = Stats::of(integers, sign).shortest(integers.len());
            packing.write_column(integers, numbers, out);
        }
        None => {}
    }
}

/// Returns the integer that all of them equal, if there is one.
fn constant(integers: &[u64]) -> Option<u64> {
    let (first, others) = integers.split_first()?;
    others.iter().all(|it| it == first).then_some(*first)
}

/// Appends a column of equal integers.
fn write_constant(integer: u64, sign: Sign, out: &mut Vec<u8>) {
    let code = sign.code(integer);
    out.push(CONSTANT);
    varint::write(out, to_u64(varint::encoded_len(code)));
    varint::write(out, code);
}

/// Appends a column that equals the column of an earlier field of its table.
pub(in crate::container::native) fn write_reference(field: u64, out: &mut Vec<u8>) {
    out.push(REFERENCE);
    varint::write(out, to_u64(varint::encoded_len(field)));
    varint::write(out, field);
}

#[cfg(test)]
mod tests;
