//! Columns of integers, written in their cheapest encoding.

use super::bits::width;
use super::dictionary::Dictionary;
use super::narrow::{Lane, Narrowed, narrow};
use super::patched::Patched;
use super::runs::Runs;
use super::simple::write_constant;
use super::stats::{FEW_LANES, Stats, column_bytes};
use super::{REFERENCE, Shape, Sign};
use crate::container::native::write::prefixed_by_length;
use crate::container::serializer::Effort;
use crate::container::varint;

/// Writes columns of integers; keeps its memory from column to column.
#[derive(Debug, Default)]
pub(in crate::container::native) struct IntEncoder {
    lanes: Vec<u64>,
    offsets: Vec<i32>,
    search: Search,
    effort: Effort,
}

/// The encodings that have to be looked for.
#[derive(Debug, Default)]
struct Search {
    runs: Runs,
    patched: Patched,
    dictionary: Dictionary,
}

impl IntEncoder {
    /// What the columns to come are worth.
    pub(in crate::container::native) fn set_effort(&mut self, effort: Effort) {
        self.effort = effort;
    }

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

    /// As [`Self::write_values`], of a column whose shape is known: less is tried.
    pub(in crate::container::native) fn write_shaped<T: Copy>(
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
                let stats = Stats::of_near(&self.offsets, first, sign, (shape, self.effort));
                if let Some(stats) = stats {
                    return match self.effort {
                        Effort::Fast => stats.cheapest().0.write(&self.offsets, &stats, out),
                        Effort::Full => self.search.write(&self.offsets, &stats, shape, out),
                    };
                }
            }
            Narrowed::Far => {}
        }
        self.lanes.clear();
        self.lanes.extend(values.iter().map(|value| lane(*value)));
        let stats = Stats::of(&self.lanes, sign);
        self.search.write(&self.lanes, &stats, Shape::Any, out);
    }

    /// Appends a column of numbers that begin near 0 and go up and down, with full effort: less is
    /// looked at, and less is tried.
    pub(in crate::container::native) fn write_level<L: Lane>(
        &mut self,
        lanes: &[L],
        sign: Sign,
        shape: Shape,
        out: &mut Vec<u8>,
    ) {
        let Some(first) = lanes.first().map(|lane| lane.wide(0)) else {
            return;
        };
        let (mut differing, mut all) = (0, 0);
        for lane in lanes {
            let lane = lane.wide(0);
            differing |= lane ^ first;
            all |= lane;
        }
        if differing == 0 {
            write_constant(first, sign, out);
        } else if width(all) > LEVEL_BITS {
            self.write_shaped(lanes, |lane| lane.wide(0), sign, shape, out);
        } else {
            let stats = Stats::of_level(lanes, all, sign, shape);
            self.search.write(lanes, &stats, shape, out);
        }
    }
}

/// Lanes up to this width are taken to begin at 0; beyond it most are negative.
const LEVEL_BITS: u32 = 48;

/// How many bits a lane takes that is long.
const LONG_BITS: usize = 12;

/// Fewer ids than that have no dictionary: they count the strings of a chunk from 0.
const LEAST_IDS: usize = 256;

impl Search {
    fn write<L: Lane>(&mut self, lanes: &[L], stats: &Stats, shape: Shape, out: &mut Vec<u8>) {
        let (simple, payload_bytes) = stats.cheapest();
        let is_small = lanes.len() < FEW_LANES && payload_bytes * 8 < lanes.len() * LONG_BITS;
        if is_small || shape == Shape::Ids && lanes.len() < LEAST_IDS {
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
            Shape::Level | Shape::Rising => false,
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
    prefixed_by_length(out, |out| varint::write(out, field));
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::super::Scope;
    use super::super::tests::decode;
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
            for shape in [Shape::Any, Shape::Ids, Shape::Level, Shape::Rising] {
                for sign in [Sign::Signed, Sign::Unsigned] {
                    let mut column = Vec::new();
                    encoder.write_shaped(&lanes, |lane| lane, sign, shape, &mut column);
                    let scope = Scope::plain(sign);
                    let (found, _) = decode(&column, lanes.len(), scope, 1 << 20).unwrap();
                    prop_assert_eq!(&found, &lanes, "{:?}", shape);
                    column.clear();
                    encoder.write_level(&lanes, sign, shape, &mut column);
                    let (found, _) = decode(&column, lanes.len(), scope, 1 << 20).unwrap();
                    prop_assert_eq!(&found, &lanes, "{:?}", shape);
                }
            }
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
