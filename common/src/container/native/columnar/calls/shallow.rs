//! Places of traces that stay shallow, followed row by row in fewer steps than [`super::place`]
//! takes.
//!
//! While no step is negative and no row is as deep as 32, what is remembered of a place follows from
//! two facts: behind a row its own depth has a first execution and no deeper one has, and depth only
//! falls by a caller, which takes that one away.
//! So a row is a neighbour of an earlier one exactly if it is no deeper than the row that came before
//! the first leaf beneath it; and its order index is its depth, and how many rows of its trace came
//! before that leaf.
//! Both are kept in one number, the *leaf*: how many rows times 256, and that depth.

use super::block::{Block, ROWS, Told};
use super::decode::{Rows, Session};

/// The first depth that is not shallow.
pub(super) const DEPTHS: u64 = 32;

/// How many bits of a leaf are its depth: a byte is had for nothing.
pub(super) const DEPTH_BITS: u32 = 8;

/// A row, as a leaf counts it.
pub(super) const ROW: u64 = 1 << DEPTH_BITS;

/// Where a place remembers the row before: what is as deep as 0 has no caller.
pub(super) const BEFORE: u64 = 0;

/// How much a place remembers.
const ROOM: usize = 32;

/// What is known of a place behind its last row.
#[derive(Debug, Clone)]
pub(super) struct Shallow {
    /// By depth when the first execution began whose caller is still to come; at [`BEFORE`] when the
    /// last row ended.
    pub(super) times: [i64; ROOM],
    /// The leaves of the first executions; at [`BEFORE`] that of the next row, if that has none
    /// beneath it: so its depth is that of the last row, which is 0 if no trace is open.
    pub(super) leaves: [u64; ROOM],
    pub(super) trace: i64,
    pub(super) session: u32,
}

impl Shallow {
    /// Without a row.
    const NEW: Self = Self {
        times: [0; ROOM],
        leaves: [0; ROOM],
        trace: 0,
        session: 0,
    };

    /// The leaf of the next row, if that has none beneath it.
    #[inline(always)]
    pub(super) fn leaf(&self) -> u64 {
        let [leaf, ..] = &self.leaves;
        *leaf
    }

    /// Remembers the row before: when it ended, and the leaf of the next one.
    #[inline(always)]
    pub(super) fn set_before(&mut self, end: i64, next: u64) {
        let ([last, ..], [leaf, ..]) = (&mut self.times, &mut self.leaves);
        (*last, *leaf) = (end, next);
    }

    /// Begins a trace in this place, whose next row ends then; says whether it is the first one there.
    /// `None` if there is no such place yet, or no other trace.
    #[cold]
    #[inline(never)]
    pub(super) fn start(
        &mut self,
        number: usize,
        started: &mut usize,
        end: i64,
        beginnings: &mut Beginnings<'_>,
    ) -> Option<bool> {
        let is_first = number == *started;
        let ([last, first, ..], [leaf, first_leaf, ..]) = (&mut self.times, &mut self.leaves);
        if is_first {
            *started += 1;
            *last = end;
        } else if number > *started {
            return None;
        }
        self.trace = *beginnings.traces.next()?;
        self.session = beginnings.sessions.next().copied().unwrap_or(0);
        // Without a row before there is none to call: the end of the trace before takes its place.
        *first = *last;
        (*first_leaf, *leaf) = (0, 0);
        Some(is_first)
    }
}

/// Takes the traces that begin, and their sessions.
#[derive(Debug, Clone)]
pub(super) struct Beginnings<'a> {
    pub(super) traces: std::slice::Iter<'a, i64>,
    pub(super) sessions: std::slice::Iter<'a, u32>,
}

/// All places, of which the first ones had a row.
pub(super) struct Places<'a> {
    pub(super) all: Vec<Shallow>,
    pub(super) started: usize,
    pub(super) beginnings: Beginnings<'a>,
}

/// Follows the rows as [`super::place::Place::follow`] does, if all are shallow; `None` if some are
/// not, or something is wrong: then what has become of the rows means nothing. Else how many traces
/// have not begun.
pub(super) fn follow<S: Session>(
    rows: &mut Rows,
    sessions: &mut [S],
    most: usize,
    beginnings: Beginnings<'_>,
    block: &mut Block,
) -> Option<usize> {
    let mut places = Places {
        all: vec![Shallow::NEW; most],
        started: 0,
        beginnings,
    };
    let told = rows.places.chunks(ROWS).zip(rows.ends.chunks(ROWS));
    let found = rows.depths.chunks_mut(ROWS);
    let found = found.zip(rows.orders.chunks_mut(ROWS));
    let found = found.zip(rows.begins.chunks_mut(ROWS));
    let found = found.zip(rows.traces.chunks_mut(ROWS));
    let found = found.zip(sessions.chunks_mut(ROWS));
    for ((numbers, ends), ((((depths, orders), begins), traces), sessions)) in told.zip(found) {
        let rows = Told {
            numbers,
            ends,
            depths,
            orders,
            begins,
            traces,
        };
        S::set_all(sessions, block.follow(rows, &mut places)?);
    }
    Some(places.beginnings.traces.len())
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
        let left = follow(
            &mut found.0,
            &mut found.1,
            4,
            beginnings.clone(),
            &mut Block::default(),
        )?;
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
        for order in [1 << 31, 1 << 56, i64::MIN] {
            let mut told = rows(steps.clone());
            told.orders[7] = order;
            assert!(follow_both(&told).is_none(), "{order}");
        }
    }

    /// As where a chunk cuts a trace: fewer rows than none came before the first leaf.
    #[test]
    fn order_indices_below_the_depth_are_followed() {
        let told = Rows {
            places: vec![0; 6],
            ends: vec![10, 20, 30, 40, 50, 60],
            depths: vec![3, 0, 1, 0, 3, 0],
            orders: vec![-3, 1, 4, 1, 0, 2],
            begins: vec![1; 6],
            traces: vec![0; 6],
        };
        assert!(follow_both(&told).is_some());
    }
}
