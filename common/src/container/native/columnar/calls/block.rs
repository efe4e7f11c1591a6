//! Some rows of shallow traces, followed where all that belongs to them is at hand: their columns are
//! all over the memory, and are more than a loop has registers for.

use std::hint::select_unpredictable as select;

use super::shallow::{BEFORE, DEPTH_BITS, DEPTHS, Places, ROW};
use crate::container::native::columnar::{columns, vectors};
use crate::container::num::to_usize;

/// How many rows there are: few enough that what was done to them stays in the first cache.
pub(super) const ROWS: usize = 256;

/// So many rows; kept from chunk to chunk, what is in it is overwritten.
#[derive(Debug)]
pub(in crate::container::native) struct Block {
    /// Steps with what a row adds to a leaf, less one; they become depths.
    depths: [u64; ROWS],
    /// What order indices differ by, which become leaves.
    leaves: [u64; ROWS],
    sessions: [u32; ROWS],
}

impl Default for Block {
    fn default() -> Self {
        Self {
            depths: [0; ROWS],
            leaves: [0; ROWS],
            sessions: [0; ROWS],
        }
    }
}

/// Columns of rows, as they are told and as they are found.
pub(super) struct Told<'a> {
    pub(super) numbers: &'a [u32],
    pub(super) ends: &'a [i64],
    pub(super) depths: &'a mut [i64],
    pub(super) orders: &'a mut [i64],
    pub(super) begins: &'a mut [i64],
    pub(super) traces: &'a mut [i64],
}

impl Block {
    /// Follows up to [`ROWS`] rows; `None` if they are not shallow, or something is wrong. Returns
    /// their sessions.
    pub(super) fn follow(&mut self, mut rows: Told<'_>, places: &mut Places<'_>) -> Option<&[u32]> {
        // What is done to all rows alike is done to several of them at a time, here and at the end.
        if self.take(rows.depths, rows.begins) >= 2 * DEPTHS {
            return None;
        }
        if any(rows.orders) {
            // Leaves have fewer bits for rows than numbers of any size take.
            if columns::outside(rows.orders, i32::MIN.into(), i32::MAX.into()).is_some() {
                return None;
            }
            for (leaf, order) in self.leaves.iter_mut().zip(rows.orders.iter()) {
                *leaf = order.cast_unsigned();
            }
            self.follow_each::<true>(&mut rows, places)?;
        } else {
            self.follow_each::<false>(&mut rows, places)?;
        }
        if !self.number(rows.depths, rows.orders) {
            return None;
        }
        self.sessions.get(..rows.numbers.len())
    }

    /// Takes steps, and negates the gaps of callers, which are measured backwards. Returns all steps,
    /// or-ed together.
    fn take(&mut self, steps: &[i64], gaps: &mut [i64]) -> u64 {
        vectors::wide(
            #[inline(always)]
            || {
                let mut all = 0;
                for ((step, gap), to_step) in steps.iter().zip(gaps).zip(&mut self.depths) {
                    // All bits, or none.
                    let caller = -i64::from(*step == 0);
                    *gap = (*gap ^ caller).wrapping_sub(caller);
                    *to_step = step.cast_unsigned().wrapping_add(ROW - 1);
                    all |= step;
                }
                all.cast_unsigned()
            },
        )
    }

    /// Follows each row, of which some have another order index than is expected only if `MOVED`.
    ///
    /// A function of its own, whose loop has all registers.
    #[inline(never)]
    fn follow_each<const MOVED: bool>(
        &mut self,
        told: &mut Told<'_>,
        places: &mut Places<'_>,
    ) -> Option<()> {
        let Places {
            all: places,
            started,
            beginnings,
        } = places;
        let places = places.as_mut_slice();
        let rows = self.depths.iter_mut().zip(&mut self.leaves);
        let rows = rows.zip(told.begins.iter_mut()).zip(told.traces.iter_mut());
        let rows = rows.zip(&mut self.sessions);
        let rows = told.numbers.iter().zip(told.ends).zip(rows);
        for ((number, end), ((((depth, to_leaf), begin), trace), session)) in rows {
            let number = to_usize((*number).into());
            let place = places.get_mut(number)?;
            let is_caller = *depth == ROW - 1;
            // The last row's depth is in it; the first row of a trace has a depth before it, and no
            // row.
            let mut last = place.leaf();
            if last % ROW == 0 {
                let is_first = place.start(number, started, *end, beginnings)?;
                if is_first != is_caller {
                    *begin = begin.wrapping_neg();
                }
                last = 1;
            }
            // What could be is computed, and what is, is selected: which it is cannot be foretold.
            let near = to_usize(select(is_caller, last, BEFORE) % DEPTHS);
            let began = place.times.get(near)?.wrapping_add(*begin);
            let mut leaf = *place.leaves.get(near)?;
            // One row more, and another depth.
            let mut next = last.wrapping_add(*depth);
            let reached = next % ROW;
            if MOVED && *to_leaf != 0 {
                // Where the beginning of a trace is in the chunk before.
                (leaf, next) = moved(last, *to_leaf, leaf, reached);
            }
            if reached >= DEPTHS {
                return None;
            }
            // What is remembered stays, or is written again: where this writes must be known soon, or
            // all rows that come next would wait for it.
            let is_neighbour = reached <= leaf % ROW;
            let first_time = place.times.get_mut(to_usize(reached))?;
            *first_time = select(is_neighbour, *first_time, began);
            let first_leaf = place.leaves.get_mut(to_usize(reached))?;
            *first_leaf = select(is_neighbour, *first_leaf, leaf);
            place.set_before(*end, next);
            (*depth, *to_leaf, *begin) = (reached, leaf, began);
            (*trace, *session) = (place.trace, place.session);
        }
        Some(())
    }

    /// Gives depths and order indices, which follow from leaves, whose rows are those that came
    /// before; says whether all indices are some.
    fn number(&self, depths: &mut [i64], orders: &mut [i64]) -> bool {
        vectors::wide(
            #[inline(always)]
            || {
                let mut all = 0;
                let found = self.depths.iter().zip(&self.leaves);
                for ((to_depth, order), (depth, leaf)) in depths.iter_mut().zip(orders).zip(found) {
                    *to_depth = depth.cast_signed();
                    *order = (leaf.cast_signed() >> DEPTH_BITS).wrapping_add(depth.cast_signed());
                    all |= *order;
                }
                (0..=i32::MAX.into()).contains(&all)
            },
        )
    }
}

/// Whether any number is not 0.
fn any(numbers: &[i64]) -> bool {
    vectors::wide(
        #[inline(always)]
        || numbers.iter().fold(0, |all, number| all | number) != 0,
    )
}

/// The leaf of a row, and that of the next one, where the order index is told and not expected.
#[cold]
#[inline(never)]
fn moved(last: u64, order: u64, leaf: u64, reached: u64) -> (u64, u64) {
    // An index below the depth has fewer rows than none before it.
    let rows_in = |leaf: u64| (leaf.cast_signed() >> DEPTH_BITS).cast_unsigned();
    let order = rows_in(leaf).wrapping_add(reached).wrapping_add(order);
    // The largest one so far is as much above the depth as rows came before this one, less one.
    let (rows, depth) = (rows_in(last), last % ROW);
    let largest = rows.wrapping_add(depth).wrapping_sub(1);
    let largest = largest.cast_signed().max(order.cast_signed());
    let above = largest
        .cast_unsigned()
        .wrapping_sub(reached)
        .wrapping_add(1);
    let next = above.wrapping_mul(ROW).wrapping_add(reached);
    let rows = order.wrapping_sub(reached).wrapping_mul(ROW);
    (rows | (leaf % ROW), next)
}
