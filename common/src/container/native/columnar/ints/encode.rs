//! Columns of integers, written in the shortest of a few layouts.
//!
//! One pass over the integers finds how wide they and their differences are. What is packed is either
//! the distance of each integer from the smallest one, or that of each difference from the smallest
//! difference. Runs, patches and a dictionary are written to a buffer of their own where that pass
//! says that they may pay, and taken if they are shorter.

use super::bits::{pack, packed_bytes, width};
use super::stepped::Step;
use super::{
    CONSTANT, DELTA_PACKED, DELTA_PATCHED, DICTIONARY, PACKED, PATCHED, REFERENCE, RUN_LENGTH,
    STEPPED, Sign, VARINT,
};
use crate::container::cursor::{to_u64, to_usize};
use crate::container::varint::{self, prefixed_by_length};

/// Columns that are packed in fewer bytes have no other layout.
const LEAST_BYTES: usize = 80;

/// Columns of fewer integers may have numbers of a variable length.
const LEAST_PACKED: usize = 64;

/// The most entries of a dictionary: beyond it the search costs more than it saves.
const MAX_ENTRIES: usize = 1_024;

/// The most entries that the first `EARLY` integers of a dictionary may have.
const MAX_EARLY: usize = 48;
const EARLY: usize = 64;

/// How many numbers of a column are examined to find the frequent widths.
const SAMPLE: usize = 128;

/// How many pairs of neighbours are examined to see whether integers repeat or rise.
const SAMPLED_PAIRS: usize = 32;

/// Writes columns of integers; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(in crate::container::native) struct IntEncoder {
    integers: Vec<u64>,
    /// What is left of the integers when their step is divided out.
    multiples: Vec<u64>,
    /// What is packed.
    numbers: Vec<u64>,
    /// The shortest column so far, if it is not simply packed, and the next candidate.
    best: Vec<u8>,
    candidate: Vec<u8>,
    /// The parts of the candidate: runs, or a dictionary.
    parts: [Vec<u64>; 2],
    /// Gaps and high bits of patches. They never shrink, so that nothing is cleared for a column.
    patches: [Vec<u64>; 2],
    /// The numbers of a part.
    part_numbers: Vec<u64>,
    /// The position of an entry of the dictionary, plus one, by the hash of the entry.
    slots: Vec<u16>,
}

/// What is known of a column of at least one integer.
#[derive(Debug, Clone, Copy)]
struct Stats {
    first: u64,
    /// Whether most integers seem to be equal to the one before.
    repeats: bool,
    integers: Span,
    /// The differences between neighbours, where they may be narrower than the integers.
    deltas: Option<Span>,
}

/// The smallest of some numbers, and how many bits the largest one has above it.
#[derive(Debug, Clone, Copy)]
struct Span {
    smallest: u64,
    bits: u32,
}

impl Span {
    /// The span of signed numbers.
    fn of(numbers: impl Iterator<Item = u64>) -> Self {
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
    fn of(integers: &[u64], sign: Sign) -> Option<Self> {
        let (first, others) = integers.split_first()?;
        let (all, differing) = others
            .iter()
            .fold((*first, 0), |(all, differing), integer| {
                (all | integer, differing | (integer ^ first))
            });
        if differing == 0 {
            return Some(Self {
                first: *first,
                repeats: true,
                integers: Span {
                    smallest: *first,
                    bits: 0,
                },
                deltas: None,
            });
        }
        // Where no integer is negative and one is 0, the bits of all integers say how wide they are.
        let has_zero = integers.iter().take(SAMPLE).any(|integer| *integer == 0);
        let span = if has_zero && all >> 63 == 0 {
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
        let pairs = integers.iter().zip(others);
        // A sample says whether integers repeat, and whether neighbours are nearer than other integers.
        let distance = |from: u64, to: u64| {
            let difference = to.wrapping_sub(from);
            width(varint::zigzag(difference as i64))
        };
        let half = integers.len() / 2;
        let far = integers.get(half..).unwrap_or_default();
        let sample = pairs.clone().zip(far).take(half);
        let (mut sampled, mut equal, mut far_bits, mut near_bits) = (0, 0, 0, 0);
        for ((before, integer), far) in sample.step_by(half.div_ceil(SAMPLED_PAIRS)) {
            sampled += 1;
            equal += u32::from(before == integer);
            far_bits += distance(*before, *far);
            near_bits += distance(*before, *integer);
        }
        let is_narrower = near_bits + sampled <= far_bits || integers.len() < SAMPLED_PAIRS;
        let differences = pairs.map(|(before, integer)| integer.wrapping_sub(*before));
        let deltas = is_narrower.then(|| Span::of(differences));
        Some(Self {
            first: *first,
            repeats: equal * 2 >= sampled,
            integers: span,
            deltas,
        })
    }

    /// How the integers are packed.
    fn plain(&self, sign: Sign) -> Packing {
        Packing {
            first: None,
            smallest: sign.code(self.integers.smallest),
            span: self.integers,
        }
    }

    /// How the differences are packed, where they may be narrower than the integers.
    fn delta(&self, sign: Sign) -> Option<Packing> {
        self.deltas.map(|span| Packing {
            first: Some(sign.code(self.first)),
            smallest: varint::zigzag(span.smallest as i64),
            span,
        })
    }

    /// The shorter way to pack `count` integers, and how many bytes the column has then.
    fn shortest(&self, count: usize, sign: Sign) -> (Packing, usize) {
        let plain = self.plain(sign);
        let delta = self.delta(sign).unwrap_or(plain);
        let bytes = [plain, delta].map(|packing| packing.bytes(count));
        match bytes {
            [plain, bytes] if bytes < plain => (delta, bytes),
            [bytes, _] => (plain, bytes),
        }
    }
}

/// How the numbers of a column are packed.
#[derive(Debug, Clone, Copy)]
struct Packing {
    /// The first integer, as it is written, if differences are packed, and not integers.
    first: Option<u64>,
    /// The smallest number, as it is written.
    smallest: u64,
    span: Span,
}

impl Packing {
    /// How many bytes a column of `count` integers has.
    fn bytes(self, count: usize) -> usize {
        let head = varint::size(self.smallest) + self.first.map_or(0, varint::size);
        let count = count - usize::from(self.first.is_some());
        let payload = head + 1 + packed_bytes(count, self.span.bits);
        1 + varint::size(to_u64(payload)) + payload
    }

    /// Fills `numbers` with the numbers to pack.
    fn numbers(self, integers: &[u64], numbers: &mut Vec<u64>) {
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

    /// Appends the payload up to the packed numbers, of which `bits` are packed.
    fn write(self, numbers: &[u64], bits: u32, out: &mut Vec<u8>) {
        self.first
            .into_iter()
            .for_each(|first| varint::write(out, first));
        varint::write(out, self.smallest);
        out.extend(u8::try_from(bits));
        pack(numbers, bits, out);
    }

    /// Appends a packed column.
    fn write_column(self, integers: &[u64], numbers: &mut Vec<u64>, out: &mut Vec<u8>) {
        self.numbers(integers, numbers);
        let is_delta = self.first.is_some();
        out.push(if is_delta { DELTA_PACKED } else { PACKED });
        prefixed_by_length(out, self.bytes(integers.len()) - 2, |out| {
            self.write(numbers, self.span.bits, out);
        });
    }
}

impl IntEncoder {
    /// Appends a column of these integers; one without an integer takes no byte.
    pub(in crate::container::native) fn write(
        &mut self,
        integers: impl Iterator<Item = u64>,
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        let mut own = std::mem::take(&mut self.integers);
        own.clear();
        own.extend(integers);
        if let Some(stats) = Stats::of(&own, sign) {
            self.write_column(&own, &stats, sign, out);
        }
        self.integers = own;
    }

    /// As [`Self::write`], without a step.
    #[cfg(test)]
    pub(super) fn write_plain(&mut self, integers: &[u64], sign: Sign, out: &mut Vec<u8>) {
        if let Some(stats) = Stats::of(integers, sign) {
            self.write_undivided(integers, &stats, sign, out);
        }
    }

    /// Appends a column, with its step divided out where that is shorter.
    fn write_column(&mut self, integers: &[u64], stats: &Stats, sign: Sign, out: &mut Vec<u8>) {
        let start = out.len();
        self.write_undivided(integers, stats, sign, out);
        let delta_bits = stats.deltas.map_or(u32::MAX, |span| span.bits);
        let bits = stats.integers.bits.min(delta_bits);
        let smallest = stats.integers.smallest;
        let Some(step) = Step::find(integers, smallest, bits, sign) else {
            return;
        };
        let end = out.len();
        let mut multiples = std::mem::take(&mut self.multiples);
        step.divide(integers, smallest, sign, &mut multiples);
        out.push(STEPPED);
        prefixed_by_length(out, end - start, |out| {
            step.write(out);
            if let Some(stats) = Stats::of(&multiples, sign) {
                self.write_undivided(&multiples, &stats, sign, out);
            }
        });
        self.multiples = multiples;
        if out.len() - end < end - start {
            drop(out.drain(start..end));
        } else {
            out.truncate(end);
        }
    }

    /// Appends a column in its shortest layout but a step.
    fn write_undivided(&mut self, integers: &[u64], stats: &Stats, sign: Sign, out: &mut Vec<u8>) {
        if stats.integers.bits == 0 {
            return write_constant(stats.first, sign, out);
        }
        let (shortest, mut best_bytes) = stats.shortest(integers.len(), sign);
        let patched = stats.delta(sign).unwrap_or_else(|| stats.plain(sign));
        let bits = shortest.span.bits;
        if best_bytes < LEAST_BYTES {
            return shortest.write_column(integers, &mut self.numbers, out);
        }
        self.best.clear();
        for layout in [RUN_LENGTH, PATCHED, DICTIONARY, VARINT] {
            self.candidate.clear();
            let is_written = match layout {
                RUN_LENGTH => stats.repeats && self.with_runs(integers, sign),
                PATCHED => self.with_patches(integers, patched),
                DICTIONARY => self.with_dictionary(integers, bits, sign),
                _ => integers.len() < LEAST_PACKED && self.with_varints(integers, sign),
            };
            if is_written && self.candidate.len() < best_bytes {
                best_bytes = self.candidate.len();
                std::mem::swap(&mut self.best, &mut self.candidate);
            }
        }
        if self.best.is_empty() {
            shortest.write_column(integers, &mut self.numbers, out);
        } else {
            out.extend_from_slice(&self.best);
        }
    }

    /// Makes a column of numbers of a variable length the candidate: few numbers of which some are
    /// far below the others.
    fn with_varints(&mut self, integers: &[u64], sign: Sign) -> bool {
        self.candidate.push(VARINT);
        prefixed_by_length(&mut self.candidate, integers.len(), |out| {
            integers
                .iter()
                .for_each(|integer| varint::write(out, sign.code(*integer)));
        });
        true
    }

    /// Makes a column of runs the candidate.
    fn with_runs(&mut self, integers: &[u64], sign: Sign) -> bool {
        let [values, repeats] = &mut self.parts;
        values.clear();
        repeats.clear();
        for run in integers.chunk_by(|a, b| a == b) {
            values.extend(run.first());
            repeats.push(to_u64(run.len() - 1));
        }
        let numbers = &mut self.part_numbers;
        self.candidate.push(RUN_LENGTH);
        prefixed_by_length(&mut self.candidate, integers.len(), |out| {
            varint::write(out, to_u64(values.len()));
            write_simple(values, sign, numbers, out);
            write_simple(repeats, Sign::Unsigned, numbers, out);
        });
        true
    }

    /// Makes a column with patches the candidate, if a sample of the numbers says that a few are
    /// larger than the others ("patched frame of reference": Zukowski, Heman, Nes, Boncz,
    /// "Super-Scalar RAM-CPU Cache Compression", section 4).
    fn with_patches(&mut self, integers: &[u64], packing: Packing) -> bool {
        packing.numbers(integers, &mut self.numbers);
        let Some(bits) = patched_width(&self.numbers, packing.span.bits) else {
            return false;
        };
        let [gaps, highs] = &mut self.patches;
        // Which numbers are large cannot be predicted: each is written, and the next one takes its
        // place if it is not large.
        for part in [&mut *gaps, &mut *highs] {
            part.resize(part.len().max(self.numbers.len()), 0);
        }
        let mut large = 0;
        for (at, number) in (0..).zip(&self.numbers) {
            let high = number >> bits;
            if let Some((to_gap, to_high)) = gaps.get_mut(large).zip(highs.get_mut(large)) {
                (*to_gap, *to_high) = (at, high);
            }
            large += usize::from(high != 0);
        }
        let gaps = gaps.get_mut(..large).unwrap_or_default();
        let highs = highs.get(..large).unwrap_or_default();
        let mut next = 0;
        for gap in &mut *gaps {
            (next, *gap) = (*gap + 1, *gap - next);
        }
        let is_delta = packing.first.is_some();
        let code = if is_delta { DELTA_PATCHED } else { PATCHED };
        let part_numbers = &mut self.part_numbers;
        self.candidate.push(code);
        prefixed_by_length(&mut self.candidate, self.numbers.len(), |out| {
            packing.write(&self.numbers, bits, out);
            varint::write(out, to_u64(gaps.len()));
            write_simple(gaps, Sign::Unsigned, part_numbers, out);
            write_simple(highs, Sign::Unsigned, part_numbers, out);
        });
        true
    }

    /// Makes a column with a dictionary the candidate, if few integers are distinct.
    fn with_dictionary(&mut self, integers: &[u64], bits: u32, sign: Sign) -> bool {
        // Positions have to be narrower by two bits, or the entries take what that saves.
        let most = 1_usize.checked_shl(bits.saturating_sub(2));
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
                        // Where most of the first integers are distinct, the others are, too.
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
        self.candidate.push(DICTIONARY);
        prefixed_by_length(&mut self.candidate, integers.len(), |out| {
            varint::write(out, to_u64(entries.len()));
            write_simple(entries, sign, numbers, out);
            pack(positions, width(to_u64(entries.len() - 1)), out);
        });
        true
    }
}

/// The width at which the numbers take the fewest bits, if some of them are above it.
fn patched_width(numbers: &[u64], widest: u32) -> Option<u32> {
    let mut counts = [0_u64; 65];
    for number in numbers
        .iter()
        .step_by(numbers.len().div_ceil(SAMPLE).max(1))
    {
        if let Some(count) = counts.get_mut(to_usize(width(*number).into())) {
            *count += 1;
        }
    }
    // The largest number has this width, whether it is in the sample or not.
    if let Some(count) = counts.get_mut(to_usize(widest.into())) {
        *count = (*count).max(1);
    }
    let total: u64 = counts.iter().sum();
    // The two parts of patches begin with about nine bytes.
    let parts = (8 * 9 * total)
        .checked_div(to_u64(numbers.len()))
        .unwrap_or(0);
    let (mut best, mut best_bits) = (total * u64::from(widest), None);
    let mut above = 0;
    for bits in (1..widest).rev() {
        let count = counts.get(to_usize(u64::from(bits) + 1));
        above += count.copied().unwrap_or(0);
        if above * 4 > total {
            break;
        }
        let gap_bits = u64::from(width(total.checked_div(above).unwrap_or(0))) + 2;
        let patches = above * (u64::from(widest - bits) + gap_bits) + parts;
        let cost = total * u64::from(bits) + patches;
        if above > 0 && cost < best {
            (best, best_bits) = (cost, Some(bits));
        }
    }
    best_bits
}

/// Appends a column that other layouts are made of: constant or packed.
fn write_simple(integers: &[u64], sign: Sign, numbers: &mut Vec<u64>, out: &mut Vec<u8>) {
    let Some(stats) = Stats::of(integers, sign) else {
        return;
    };
    if stats.integers.bits == 0 {
        return write_constant(stats.first, sign, out);
    }
    let (packing, _) = stats.shortest(integers.len(), sign);
    packing.write_column(integers, numbers, out);
}

/// Appends a column of equal integers.
fn write_constant(integer: u64, sign: Sign, out: &mut Vec<u8>) {
    let code = sign.code(integer);
    out.push(CONSTANT);
    varint::write(out, to_u64(varint::size(code)));
    varint::write(out, code);
}

/// Appends a column that is equal to that of an earlier field of its table.
pub(in crate::container::native) fn write_reference(field: u64, out: &mut Vec<u8>) {
    out.push(REFERENCE);
    varint::write(out, to_u64(varint::size(field)));
    varint::write(out, field);
}

#[cfg(test)]
mod tests;
