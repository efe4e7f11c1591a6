//! Models of a cell under loom: its owner adds while the collector reads, in every order and with
//! every value that a relaxed load may see.
//!
//! The durations of the calls are distinct powers of two, so the sum shows which calls are in it.
//! An inconsistent read would show.

use std::sync::Arc;

use loom::sync::Mutex;
use loom::thread;

use super::super::super::site::SiteNumber;
use super::super::cell::{CallTotals, Cell};
use crate::clock::tag_of;

/// The key of queues whose records are not timed in ticks, so no rate must be measured.
const KEY: u64 = 4;

/// A thread is interrupted at most this often.
const INTERRUPTIONS: usize = 2;

fn model(interruptions: usize, run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(interruptions);
    builder.max_branches = 100_000;
    builder.check(run);
}

fn cell(has_histogram: bool) -> Arc<Cell> {
    Arc::new(Cell::new(SiteNumber::FIRST, has_histogram))
}

/// Adds the call with this number, as a guard does.
fn add<const HISTOGRAM: bool>(cell: &Cell, number: u32) {
    let duration = 1 << number;
    let (tin, tout) = (100, 100 + duration);
    if !cell.add_fast::<HISTOGRAM>(tag_of(KEY), tin, tout) {
        cell.add(KEY, tin, tout, HISTOGRAM.then_some(duration));
    }
}

fn take(cell: &Cell, taken: &mut Vec<CallTotals>) {
    cell.take(KEY, &mut |_, content| taken.push(content));
}

/// Returns the calls in all taken totals as bits of their numbers; each call is in one of them.
fn assert_whole<const HISTOGRAM: bool>(taken: &[CallTotals]) -> u64 {
    let mut all = 0;
    for content in taken {
        assert_eq!(
            u64::from(content.sum.count_ones()),
            content.count,
            "{content:?}"
        );
        assert_eq!(all & content.sum, 0, "a call was told twice: {taken:?}");
        let least = 1 << content.sum.trailing_zeros();
        let most = 1 << (63 - content.sum.leading_zeros());
        assert!(content.min <= least && content.max >= most, "{content:?}");
        if HISTOGRAM {
            assert_eq!(
                content.buckets.iter().sum::<u64>(),
                content.count,
                "{content:?}"
            );
        }
        all |= content.sum;
    }
    all
}

/// An owner makes calls. From this one on a collector reads meanwhile, and reads again afterwards.
fn owner_and_collector<const HISTOGRAM: bool>(from: u32) {
    model(INTERRUPTIONS, move || {
        let cell = cell(HISTOGRAM);
        (0..from).for_each(|number| add::<HISTOGRAM>(&cell, number));
        let owner = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || {
                (from..2).for_each(|number| add::<HISTOGRAM>(&cell, number));
            })
        };
        let mut taken = Vec::new();
        take(&cell, &mut taken);
        owner.join().unwrap();
        take(&cell, &mut taken);
        assert_eq!(assert_whole::<HISTOGRAM>(&taken), 0b11, "{taken:?}");
    });
}

#[test]
fn calls_are_taken_once_and_whole_while_their_thread_goes_on() {
    owner_and_collector::<false>(0);
}

#[test]
fn calls_with_a_histogram_are_taken_once_and_whole() {
    owner_and_collector::<true>(1);
}

#[test]
fn the_cell_of_a_thread_that_ends_goes_on_with_the_next_one() {
    // Three threads.
    model(1, || {
        let cell = cell(false);
        // Like the list of cells without an owner.
        let free = Arc::new(Mutex::new(false));
        let first = {
            let (cell, free) = (Arc::clone(&cell), Arc::clone(&free));
            thread::spawn(move || {
                add::<false>(&cell, 0);
                *free.lock().unwrap() = true;
            })
        };
        let next = {
            let cell = Arc::clone(&cell);
            // A thread that finds no cell in the list makes one of its own.
            thread::spawn(move || {
                let is_free = *free.lock().unwrap();
                if is_free {
                    add::<false>(&cell, 1);
                }
                is_free
            })
        };
        let mut taken = Vec::new();
        take(&cell, &mut taken);
        first.join().unwrap();
        let all = if next.join().unwrap() { 0b11 } else { 0b01 };
        take(&cell, &mut taken);
        assert_eq!(assert_whole::<false>(&taken), all, "{taken:?}");
    });
}

#[test]
fn what_another_controller_was_to_take_is_not_mixed_in() {
    model(INTERRUPTIONS, || {
        let cell = cell(false);
        add::<false>(&cell, 0);
        let owner = {
            let cell = Arc::clone(&cell);
            thread::spawn(move || cell.add(KEY + 4, 100, 102, None))
        };
        let mut taken = Vec::new();
        take(&cell, &mut taken);
        owner.join().unwrap();
        take(&cell, &mut taken);
        assert!(assert_whole::<false>(&taken) & 0b10 == 0, "{taken:?}");
        let mut next = Vec::new();
        cell.take(KEY + 4, &mut |_, content| next.push(content));
        assert_eq!(assert_whole::<false>(&next), 0b10, "{next:?}");
    });
}
