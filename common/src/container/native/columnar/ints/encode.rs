//! Columns of integers, written in their cheapest encoding.

use super::dictionary::Dictionary;
use super::narrow::{Lane, Narrowed, narrow};
use super::patched::Patched;
use super::runs::Runs;
use super::short::{Short, ShortEncoder};
use super::simple::write_constant;
use super::stats::{FEW_LANES, Stats, column_bytes};
use super::stepped::{Found, Step};
use super::{REFERENCE, STEPPED, Shape, Sign};
use crate::container::native::write::prefixed_by_length;
use crate::container::num::to_u64;
use crate::container::varint;

/// Writes columns of integers; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(in crate::container::native) struct IntEncoder {
    lanes: Vec<u64>,
    offsets: Vec<i32>,
    /// What is left of a column whose step is divided out.
    multiples: Vec<i64>,
    search: Search,
    short: ShortEncoder,
}

/// The encodings that have to be looked for.
#[derive(Debug, Default)]
struct Search {
    runs: Runs,
    patched: Patched,
    dictionary: Dictionary,
}

impl IntEncoder {
    /// Appends a column of these lanes in its cheapest encoding; one without a lane takes no byte.
    pub(in crate::container::native) fn write(
        &mut self,
        lanes: impl Iterator<Item = u64>,
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        let mut own = std::mem::take(&mut self.lanes);
        own.clear();
        own.extend(lanes);
        self.write_values(&own, |lane| lane, sign, out);
        self.lanes = own;
    }

    /// Appends a column of what `lane` makes of the values.
    pub(in crate::container::native) fn write_values<T: Copy>(
        &mut self,
        values: &[T],
        lane: impl Fn(T) -> u64,
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        self.write_shaped(values, lane, sign, Shape::Any, out);
    }

    /// As [`Self::write_values`], of numbers that may be times or the like: their step is divided
    /// out where that is shorter.
    pub(in crate::container::native) fn write_numbers<T: Copy>(
        &mut self,
        numbers: &[T],
        lane: impl Fn(T) -> u64 + Copy,
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        let write = |own: &mut Self, multiples: &[i64], out: &mut Vec<u8>| {
            own.write_values(multiples, i64::cast_unsigned, sign, out);
        };
        self.write_divided(numbers, lane, sign, out, write, |own, out| {
            own.write_values(numbers, lane, sign, out);
        });
    }

    /// Appends a column of numbers of things.
    pub(in crate::container::native) fn write_ids(&mut self, ids: &[u32], out: &mut Vec<u8>) {
        let is_long = ids.len() >= LEAST_IDS;
        if is_long || !self.short.write(ids, Sign::Unsigned, out) {
            self.write_shaped(ids, u64::from, Sign::Unsigned, Shape::Ids, out);
        }
    }

    /// Appends a column of numbers that go up and down.
    pub(in crate::container::native) fn write_short<S: Short + Into<i64>>(
        &mut self,
        lanes: &[S],
        sign: Sign,
        out: &mut Vec<u8>,
    ) {
        if !self.short.write(lanes, sign, out) {
            let wide = |lane: S| Into::<i64>::into(lane).cast_unsigned();
            self.write_shaped(lanes, wide, sign, Shape::Level, out);
        }
    }

    /// As [`Self::write_short`], of spans of time.
    pub(in crate::container::native) fn write_spans(&mut self, lanes: &[i64], out: &mut Vec<u8>) {
        self.write_signed(lanes, Self::write_level, out);
    }

    /// As [`Self::write_short`], of signed numbers that may be wide.
    fn write_level(&mut self, lanes: &[i64], out: &mut Vec<u8>) {
        if !self.short.write_near(lanes, out) {
            self.write_shaped(lanes, i64::cast_unsigned, Sign::Signed, Shape::Level, out);
        }
    }

    /// Appends a column of times that mostly rise by steps that are alike.
    pub(in crate::container::native) fn write_times(&mut self, lanes: &[i64], out: &mut Vec<u8>) {
        self.write_signed(lanes, Self::write_rising, out);
    }

    /// As [`Self::write_times`], of numbers that have no clock.
    pub(in crate::container::native) fn write_rising(&mut self, lanes: &[i64], out: &mut Vec<u8>) {
        if !self.short.write_rising(lanes, out) {
            self.write_shaped(lanes, i64::cast_unsigned, Sign::Signed, Shape::Any, out);
        }
    }

    /// Appends a column of signed numbers as `write` does, with their step divided out where that
    /// is shorter.
    fn write_signed(
        &mut self,
        lanes: &[i64],
        write: impl Fn(&mut Self, &[i64], &mut Vec<u8>),
        out: &mut Vec<u8>,
    ) {
        let (lane, sign) = (i64::cast_unsigned, Sign::Signed);
        self.write_divided(lanes, lane, sign, out, &write, |own, out| {
            write(own, lanes, out);
        });
    }

    /// Appends a column as `plain` does; or its step and, as `write` does, the multiples of that,
    /// where this is shorter.
    #[inline]
    fn write_divided<T: Copy>(
        &mut self,
        numbers: &[T],
        lane: impl Fn(T) -> u64 + Copy,
        sign: Sign,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Self, &[i64], &mut Vec<u8>),
        plain: impl FnOnce(&mut Self, &mut Vec<u8>),
    ) {
        match Step::find(numbers, lane, sign) {
            None => plain(self, out),
            Some(found) => {
                let multiples = &mut self.multiples;
                found.step.divide(numbers, lane, sign, multiples);
                self.write_stepped(found, out, write, plain);
            }
        }
    }

    /// As [`Self::write_divided`], where the multiples have been found.
    #[cold]
    #[inline(never)]
    fn write_stepped(
        &mut self,
        found: Found,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Self, &[i64], &mut Vec<u8>),
        plain: impl FnOnce(&mut Self, &mut Vec<u8>),
    ) {
        let start = out.len();
        let multiples = std::mem::take(&mut self.multiples);
        out.push(STEPPED);
        prefixed_by_length(out, multiples.len(), |out| {
            found.step.write(out);
            write(self, &multiples, out);
        });
        self.multiples = multiples;
        let end = out.len();
        if found.pays(end - start) {
            return;
        }
        plain(self, out);
        if out.len() - end <= end - start {
            drop(out.drain(start..end));
        } else {
            out.truncate(end);
        }
    }

    /// As [`Self::write_values`], of a column whose shape is known: less is tried.
    fn write_shaped<T: Copy>(
        &mut self,
        values: &[T],
        lane: impl Fn(T) -> u64,
        sign: Sign,
        shape: Shape,
        out: &mut Vec<u8>,
    ) {
        let Some(first) = values.first().map(|value| lane(*value)) else {
            return;
        };
        match narrow(values, &lane, first, &mut self.offsets) {
            Narrowed::Constant => return write_constant(first, sign, out),
            Narrowed::Near => {
                if let Some(stats) = Stats::of_near(&self.offsets, first, sign, shape) {
                    return self.search.write(&self.offsets, &stats, shape, out);
                }
            }
            Narrowed::Far => {}
        }
        self.lanes.clear();
        self.lanes.extend(values.iter().map(|value| lane(*value)));
        let stats = Stats::of(&self.lanes, sign);
        self.search.write(&self.lanes, &stats, Shape::Any, out);
    }
}

/// How many bits a lane takes that is long.
const LONG_BITS: usize = 12;

/// Fewer ids than that have no dictionary: they count the strings of a chunk from 0.
const LEAST_IDS: usize = 2_048;

impl Search {
    fn write<L: Lane>(&mut self, lanes: &[L], stats: &Stats, shape: Shape, out: &mut Vec<u8>) {
        let (simple, payload_bytes) = stats.cheapest();
        let is_small = lanes.len() < FEW_LANES && payload_bytes * 8 < lanes.len() * LONG_BITS;
        if is_small {
            return simple.write(lanes, stats, out);
        }
        let simple_bytes = column_bytes(payload_bytes);
        let run_bytes = self
            .runs
            .find(lanes, stats)
            .filter(|bytes| *bytes < simple_bytes);
        let best = run_bytes.unwrap_or(simple_bytes);
        let patched_bytes = match shape {
            Shape::Ids => None,
            _ => self.patched.find(lanes, stats, best),
        };
        let best = patched_bytes.unwrap_or(best);
        let is_dictionary = match shape {
            Shape::Any | Shape::Ids => self.dictionary.find(lanes, stats, best).is_some(),
            Shape::Level => false,
        };
        if is_dictionary {
            self.dictionary.write(stats.sign, out);
        } else if patched_bytes.is_some() {
            self.patched.write(lanes, stats, out);
        } else if run_bytes.is_some() {
            self.runs.write(stats.sign, out);
        } else {
            simple.write(lanes, stats, out);
        }
    }
}

/// Appends a column that is equal to that of an earlier field of its table.
pub(in crate::container::native) fn write_reference(field: u64, out: &mut Vec<u8>) {
    out.push(REFERENCE);
    varint::write(out, to_u64(varint::size(field)));
    varint::write(out, field);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::tests::decode;
    use super::super::{Scope, low_half};
    use super::*;

    /// The column as it is written when no lane is near another.
    fn wide(lanes: &[u64], sign: Sign) -> Vec<u8> {
        let mut column = Vec::new();
        Search::default().write(lanes, &Stats::of(lanes, sign), Shape::Any, &mut column);
        column
    }

    /// Columns in which every encoding is the cheapest at times, near one another or not.
    fn lanes() -> impl Strategy<Value = Vec<u64>> {
        let first = prop_oneof![Just(0), Just(1 << 63), Just(u64::MAX), any::<u64>()];
        let bits = prop_oneof![4 => 0_u32..12, 2 => 12_u32..34, 1 => 34_u32..65];
        let step = prop_oneof![Just(0), Just(1_000_u64), any::<u64>()];
        let repeats = prop_oneof![Just(1_usize), 1_usize..9];
        let count = prop_oneof![3 => 1_usize..70, 1 => 250_usize..1_200];
        (first, bits, step, repeats, count).prop_flat_map(|(first, bits, step, repeats, count)| {
            vec(any::<u64>(), count).prop_map(move |noise| {
                let lane = |(number, noise): (u64, u64)| {
                    let above = noise & u64::MAX.checked_shr(64 - bits).unwrap_or(0);
                    first
                        .wrapping_add(step.wrapping_mul(number))
                        .wrapping_add(above)
                };
                let runs = (0..).zip(noise).map(lane);
                runs.flat_map(|lane| std::iter::repeat_n(lane, repeats))
                    .collect()
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn lanes_in_half_the_width_yield_the_same_bytes(lanes in lanes()) {
            let mut encoder = IntEncoder::default();
            for sign in [Sign::Signed, Sign::Unsigned] {
                let mut column = Vec::new();
                encoder.write_values(&lanes, |lane| lane, sign, &mut column);
                prop_assert_eq!(&column, &wide(&lanes, sign));
                column.clear();
                encoder.write(lanes.iter().copied(), sign, &mut column);
                prop_assert_eq!(&column, &wide(&lanes, sign));
            }
        }

        #[test]
        fn lanes_of_any_shape_are_read_whatever_their_writer_said(lanes in lanes()) {
            let mut encoder = IntEncoder::default();
            for shape in [Shape::Any, Shape::Ids, Shape::Level] {
                for sign in [Sign::Signed, Sign::Unsigned] {
                    let mut column = Vec::new();
                    encoder.write_shaped(&lanes, |lane| lane, sign, shape, &mut column);
                    let scope = Scope::plain(sign);
                    let (found, _) = decode(&column, lanes.len(), scope, 1 << 20).unwrap();
                    prop_assert_eq!(&found, &lanes, "{:?}", shape);
                }
            }
        }

        #[test]
        fn lanes_that_are_told_to_be_short_are_read(lanes in lanes()) {
            let mut encoder = IntEncoder::default();
            let check = |column: &[u8], lanes: &[u64], sign| {
                let (found, _) = decode(column, lanes.len(), Scope::plain(sign), 1 << 20).unwrap();
                prop_assert_eq!(found, lanes);
                Ok(())
            };
            let signed: Vec<i64> = lanes.iter().map(|lane| lane.cast_signed()).collect();
            let mut column = Vec::new();
            encoder.write_level(&signed, &mut column);
            check(&column, &lanes, Sign::Signed)?;
            column.clear();
            encoder.write_rising(&signed, &mut column);
            check(&column, &lanes, Sign::Signed)?;
            let short: Vec<i32> = signed.iter().map(|lane| low_half(*lane)).collect();
            column.clear();
            encoder.write_short(&short, Sign::Signed, &mut column);
            let lanes: Vec<u64> = short.iter().map(|it| i64::from(*it).cast_unsigned()).collect();
            check(&column, &lanes, Sign::Signed)?;
            let short: Vec<u32> = short.iter().map(|it| it.cast_unsigned()).collect();
            let lanes: Vec<u64> = short.iter().copied().map(u64::from).collect();
            column.clear();
            encoder.write_short(&short, Sign::Unsigned, &mut column);
            check(&column, &lanes, Sign::Unsigned)?;
            column.clear();
            encoder.write_ids(&short, &mut column);
            check(&column, &lanes, Sign::Unsigned)?;
        }

        #[test]
        fn dictionary_is_found_unless_it_would_be_longer(lanes in lanes()) {
            // What was ruled out beforehand: with no limit, the search goes to its end.
            for sign in [Sign::Signed, Sign::Unsigned] {
                let stats = Stats::of(&lanes, sign);
                let best = stats.cheapest_column();
                let unlimited = Dictionary::default().find(&lanes, &stats, usize::MAX);
                let found = Dictionary::default().find(&lanes, &stats, best);
                prop_assert_eq!(found, unlimited.filter(|bytes| *bytes < best));
            }
        }
    }
}
