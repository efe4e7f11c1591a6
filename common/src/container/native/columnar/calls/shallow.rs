//! Places of traces that stay shallow, followed row by row in fewer steps than [`super::place`]
//! takes.
//!
//! While no step is negative and no row is as deep as 32, what is remembered of a place follows from
//! two facts: behind a row its own depth has a first execution and no deeper one has, and depth only
//! falls by a caller, which takes that one away.
//! So a row is a neighbour of an earlier one exactly if it is no deeper than the row that came before
//! the first leaf beneath it; and its order index is its depth, and how many rows of its trace came
//! before that leaf.
//! Both are kept in one number, the *leaf*: how many rows times 32, and that depth.

use std::hint::select_unpredictable as select;

use super::decode::{Rows, Session};
use crate::container::native::columnar::vectors;
use crate::container::num::to_usize;

/// The first depth that is not shallow, and what a leaf's rows are counted in.
const DEPTHS: i64 = 32;

/// How many depths are remembered.
const ROOM: usize = 32;

/// What is known of a place behind its last row.
#[derive(Debug, Clone)]
pub(super) struct Shallow {
    /// The leaf of the next row, if that has none beneath it; so its depth is that of the last row,
    /// which is 0 if no trace is open.
    leaf: i64,
    /// When the last row ended.
    last: i64,
    trace: i64,
    session: u32,
    /// By depth the first execution whose caller is still to come: when it began, and its leaf.
    first: [(i64, i64); ROOM],
}

impl Shallow {
    /// Without a row.
    const NEW: Self = Self {
        leaf: 0,
        last: 0,
        trace: 0,
        session: 0,
        first: [(0, 0); ROOM],
    };
}

/// Takes the traces that begin, and their sessions.
#[derive(Debug, Clone)]
pub(super) struct Beginnings<'a> {
    pub(super) traces: std::slice::Iter<'a, i64>,
    pub(super) sessions: std::slice::Iter<'a, u32>,
}

/// Follows the rows as [`super::place::Place::follow`] does, if all are shallow; `None` if some are
/// not, or something is wrong: then what has become of the rows means nothing. Else how many traces
/// have not begun.
///
/// A function of its own, whose loop has all registers.
#[inline(never)]
pub(super) fn follow<S: Session>(
    rows: &mut Rows,
    sessions: &mut [S],
    most: usize,
    mut beginnings: Beginnings<'_>,
) -> Option<usize> {
    let mut places = vec![Shallow::NEW; most];
    let mut started = 0;
    let Rows {
        places: numbers,
        ends,
        depths,
        orders,
        begins,
        traces,
    } = rows;
    // What is done to all rows alike is done to several of them at a time, here and at the end.
    if negate(depths, begins) < 0 {
        return None;
    }
    let told = numbers.iter().zip(ends.iter());
    let rows = depths.iter_mut().zip(orders.iter_mut()).zip(begins);
    let rows = rows.zip(traces).zip(sessions);
    for ((number, end), ((((depth, order), begin), trace), session)) in told.zip(rows) {
        let step = *depth;
        let number = to_usize((*number).into());
        let place = places.get_mut(number)?;
        // The last row's depth is in it; the first row of a trace has a depth before it, and no row.
        let mut last = place.leaf;
        let mut leaf = last;
        if last % DEPTHS == 0 {
            let is_first = start(place, number, &mut started, *end, &mut beginnings)?;
            if is_first != (step == 0) {
                *begin = begin.wrapping_neg();
            }
            (last, leaf) = (1, 0);
        }
        // What could be is computed, and what is, is selected: which it is cannot be foretold.
        let calls = step == 0;
        let (first_begin, first_leaf) = place.first.get(index(last))?;
        let near = select(calls, *first_begin, place.last);
        leaf = select(calls, *first_leaf, leaf);
        let began = near.wrapping_add(*begin);
        let reached = (last & (DEPTHS - 1)).wrapping_add(step).wrapping_sub(1);
        let mut position = (leaf >> DEPTHS.ilog2()).wrapping_add(reached);
        // One row more, and a depth of `reached`.
        let mut next = last.wrapping_add(DEPTHS - 1).wrapping_add(step);
        if *order != 0 {
            // Where the beginning of a trace is in the chunk before.
            (position, leaf, next) = moved(last, position.wrapping_add(*order), leaf, reached);
        }
        if !(0..DEPTHS).contains(&reached) {
            return None;
        }
        // What is remembered stays, or is written again: where this writes must be known soon, or all
        // rows that come next would wait for it.
        let neighbour = reached <= leaf & (DEPTHS - 1);
        let (first_begin, first_leaf) = place.first.get_mut(index(reached))?;
        *first_begin = select(neighbour, *first_begin, began);
        *first_leaf = select(neighbour, *first_leaf, leaf);
        (place.leaf, place.last) = (next, *end);
        (*depth, *order, *begin) = (reached, position, began);
        *trace = place.trace;
        session.set(place.session);
    }
    let all_orders = orders.iter().fold(0, |all, order| all | order);
    let shallow = (0..=i32::MAX.into()).contains(&all_orders);
    shallow.then(|| beginnings.traces.len())
}

/// Negates the gaps of callers, which are measured backwards; returns all steps, or-ed together.
fn negate(steps: &[i64], gaps: &mut [i64]) -> i64 {
    vectors::wide(
        #[inline(always)]
        || {
            let mut all = 0;
            for (step, gap) in steps.iter().zip(gaps) {
                // All bits, or none.
                let caller = -i64::from(*step == 0);
                *gap = (*gap ^ caller).wrapping_sub(caller);
                all |= step;
            }
            all
        },
    )
}

/// Where a depth is remembered; anywhere, if it is not shallow.
#[inline(always)]
fn index(depth: i64) -> usize {
    to_usize(depth.cast_unsigned() % DEPTHS.cast_unsigned())
}

/// Begins a trace in a place whose next row ends then; says whether it is the first one there.
#[cold]
#[inline(never)]
fn start(
    place: &mut Shallow,
    number: usize,
    started: &mut usize,
    end: i64,
    beginnings: &mut Beginnings<'_>,
) -> Option<bool> {
    let is_first = number == *started;
    if is_first {
        *started += 1;
        place.last = end;
    } else if number > *started {
        return None;
    }
    place.trace = *beginnings.traces.next()?;
    place.session = beginnings.sessions.next().copied().unwrap_or(0);
    // Without a row before there is none to call: the end of the trace before takes its place.
    *place.first.get_mut(1)? = (place.last, 0);
    Some(is_first)
}

/// The order index, the leaf, and that of the next row, where the order index is told and not
/// expected.
#[cold]
#[inline(never)]
fn moved(last: i64, order: i64, leaf: i64, reached: i64) -> (i64, i64, i64) {
    // The largest one so far is as much above the depth as rows came before this one, less one.
    let (rows, depth) = (last >> DEPTHS.ilog2(), last & (DEPTHS - 1));
    let largest = rows.wrapping_add(depth.wrapping_sub(1));
    let above = largest.max(order).wrapping_sub(reached).wrapping_add(1);
    let next = above.wrapping_mul(DEPTHS).wrapping_add(reached);
    let rows = order.wrapping_sub(reached).wrapping_mul(DEPTHS);
    (order, rows | leaf & (DEPTHS - 1), next)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::decode::Follower;
    use super::*;

    /// Any rows; those of most tables are shallow, and the largest order indices are told.
    fn rows() -> impl Strategy<Value = Rows> {
        let step = prop_oneof![
            20 => Just(0_i64), 20 => 1_i64..4, 1 => 4_i64..20, 1 => Just(-1), 1 => any::<i64>(),
        ];
        let order = prop_oneof![
            60 => Just(0_i64), 3 => -3_i64..40, 1 => any::<i64>(),
        ];
        let row = (0_u32..4, step, order, any::<i32>(), any::<i32>());
        proptest::collection::vec(row, 1..120).prop_map(|rows| {
            let mut used = 0;
            let place = |place: &u32| {
                let place = (*place).min(used);
                used = used.max(place + 1);
                place
            };
            Rows {
                places: rows
                    .iter()
                    .map(|row| row.0)
                    .collect::<Vec<_>>()
                    .iter()
                    .map(place)
                    .collect(),
                depths: rows.iter().map(|row| row.1).collect(),
                orders: rows.iter().map(|row| row.2).collect(),
                ends: rows.iter().map(|row| row.3.into()).collect(),
                begins: rows.iter().map(|row| row.4.into()).collect(),
                traces: vec![0; rows.len()],
            }
        })
    }

    fn follow_both(told: &Rows) -> Option<()> {
        let traces: Vec<i64> = (100..).take(told.places.len()).collect();
        let sessions: Vec<u32> = (200..).take(told.places.len()).collect();
        let beginnings = Beginnings {
            traces: traces.iter(),
            sessions: sessions.iter(),
        };
        let mut found = (told.clone(), sessions.clone());
        let left = follow(&mut found.0, &mut found.1, 4, beginnings.clone())?;
        let mut expected = (told.clone(), sessions.clone());
        let follower = Follower {
            places: Vec::new(),
            beginnings,
        };
        assert_eq!(follower.follow(&mut expected.0, &mut expected.1), Ok(left));
        assert_eq!(found, expected);
        Some(())
    }

    proptest! {
        #[test]
        fn shallow_rows_are_followed_as_any_are(told in rows()) {
            follow_both(&told);
        }
    }

    /// A caller of two, each a caller, again and again; and what makes it no longer shallow.
    #[test]
    fn what_is_not_shallow_is_left_to_others() {
        let steps = [3, 0, 2, 0, 0, 0].repeat(10);
        let rows = |depths: Vec<i64>| Rows {
            places: vec![0; depths.len()],
            ends: (0..).map(|row| 10 * row).take(depths.len()).collect(),
            orders: vec![0; depths.len()],
            begins: vec![1; depths.len()],
            traces: vec![0; depths.len()],
            depths,
        };
        assert!(follow_both(&rows(steps.clone())).is_some());
        for (at, step) in [(0, 32), (4, -1), (4, i64::MIN), (5, i64::MAX)] {
            let mut steps = steps.clone();
            steps[at] = step;
            assert!(follow_both(&rows(steps)).is_none(), "{step}");
        }
        let mut told = rows(steps);
        told.orders[7] = 1 << 31;
        assert!(follow_both(&told).is_none());
    }
}
