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

use super::decode::{Rows, Session};
use crate::container::num::to_usize;

/// The first depth that is not shallow, and what a leaf's rows are counted in.
const DEPTHS: i64 = 32;

/// A depth that is not remembered is put so far behind, where nobody looks.
const ROOM: usize = 64;

/// What is known of a place behind its last row.
#[derive(Debug, Clone)]
pub(super) struct Shallow {
    /// How deep the last row was; 0 if no trace is open.
    depth: i64,
    /// The leaf of the next row, if that has none beneath it.
    leaf: i64,
    /// When the last row ended.
    last: i64,
    trace: i64,
    session: u32,
    /// By depth the first execution whose caller is still to come: when it began, and its leaf.
    first: [(i64, i64); ROOM],
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
    let mut places: Vec<Shallow> = Vec::with_capacity(most);
    let Rows {
        places: numbers,
        ends,
        depths,
        orders,
        begins,
        traces,
    } = rows;
    let told = numbers.iter().zip(ends.iter());
    let rows = depths.iter_mut().zip(orders).zip(begins);
    let rows = rows.zip(traces).zip(sessions);
    // Or-ed together, so that one look at the end tells whether any is out of bounds.
    let (mut all_depths, mut all_orders) = (0, 0);
    for ((number, end), ((((depth, order), begin), trace), session)) in told.zip(rows) {
        let number = to_usize((*number).into());
        let step = *depth;
        // All bits, or none.
        let caller = -i64::from(step == 0);
        let mut before = caller;
        if places.get(number).is_none_or(|place| place.depth == 0) {
            before = -i64::from(start(&mut places, number, *end, &mut beginnings)?);
        }
        let place = places.get_mut(number)?;
        let (first_begin, first_leaf) = *place.first.get(index(place.depth))?;
        // What could be is computed, and what is, is selected by its bits: which it is cannot be
        // foretold.
        let near = either(caller, first_begin, place.last);
        let mut leaf = either(caller, first_leaf, place.leaf);
        let gap = (*begin ^ before).wrapping_sub(before);
        let began = near.wrapping_add(gap);
        let reached = place.depth.wrapping_add(step).wrapping_sub(1);
        let mut position = (leaf >> DEPTHS.ilog2()).wrapping_add(reached);
        let mut next = (place.leaf | (DEPTHS - 1))
            .wrapping_add(1)
            .wrapping_add(reached);
        if *order != 0 {
            // Where the beginning of a trace is in the chunk before.
            (position, leaf, next) = moved(place, position.wrapping_add(*order), leaf, reached);
        }
        let neighbour = reached <= leaf & (DEPTHS - 1);
        let at = index(reached) + if neighbour { ROOM / 2 } else { 0 };
        *place.first.get_mut(at)? = (began, leaf);
        (place.depth, place.leaf, place.last) = (reached, next, *end);
        all_depths |= reached | step;
        all_orders |= position;
        (*depth, *order, *begin) = (reached, position, began);
        *trace = place.trace;
        session.set(place.session);
    }
    let shallow = (0..DEPTHS).contains(&all_depths) && (0..=i32::MAX.into()).contains(&all_orders);
    shallow.then(|| beginnings.traces.len())
}

/// Where a depth is remembered; anywhere, if it is not shallow.
#[inline(always)]
fn index(depth: i64) -> usize {
    to_usize(depth.cast_unsigned() % DEPTHS.cast_unsigned())
}

/// One of two numbers: the first one if all bits are set, the second one if none is.
#[inline(always)]
fn either(bits: i64, first: i64, second: i64) -> i64 {
    second ^ ((first ^ second) & bits)
}

/// Begins a trace in a place whose next row ends then; says whether it is the first one there.
#[cold]
#[inline(never)]
fn start(
    places: &mut Vec<Shallow>,
    number: usize,
    end: i64,
    beginnings: &mut Beginnings<'_>,
) -> Option<bool> {
    let is_first = number == places.len();
    if is_first {
        places.push(Shallow {
            depth: 0,
            leaf: 0,
            last: end,
            trace: 0,
            session: 0,
            first: [(0, 0); ROOM],
        });
    }
    let place = places.get_mut(number)?;
    place.trace = *beginnings.traces.next()?;
    place.session = beginnings.sessions.next().copied().unwrap_or(0);
    (place.depth, place.leaf) = (1, 0);
    // Without a row before there is none to call: the end of the trace before takes its place.
    *place.first.get_mut(1)? = (place.last, 0);
    Some(is_first)
}

/// The order index, the leaf, and that of the next row, where the order index is told and not
/// expected.
#[cold]
#[inline(never)]
fn moved(place: &Shallow, order: i64, leaf: i64, reached: i64) -> (i64, i64, i64) {
    // The largest one so far is as much above the depth as rows came before this one, less one.
    let rows = place.leaf >> DEPTHS.ilog2();
    let largest = rows.wrapping_add(place.depth.wrapping_sub(1));
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
