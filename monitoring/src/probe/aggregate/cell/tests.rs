use baler_common::record::timing::LogLinear;

use super::*;

const KEY: u64 = 8;

fn cell() -> Cell {
    Cell::new(SiteNumber::new(1).unwrap(), true)
}

fn add(cell: &Cell, key: u64, tin: u64, tout: u64, nanoseconds: Option<u64>) {
    cell.add(key, tin, tout, nanoseconds);
}

fn take(cell: &Cell, key: u64) -> Vec<CallTotals> {
    let mut taken = Vec::new();
    cell.take(key, &mut |_, content| taken.push(content));
    taken
}

/// Count, sum, minimum and maximum.
fn figures(cell: &Cell, key: u64) -> Vec<(u64, u64, u64, u64)> {
    let taken = take(cell, key);
    taken
        .iter()
        .map(|it| (it.count, it.sum, it.min, it.max))
        .collect()
}

#[test]
fn each_call_is_taken_once_and_extremes_are_those_of_the_interval() {
    let cell = cell();
    assert_eq!(figures(&cell, KEY), []);
    add(&cell, KEY, 10, 15, None);
    add(&cell, KEY, 20, 21, None);
    assert_eq!(figures(&cell, KEY), [(2, 6, 1, 5)]);
    assert_eq!(figures(&cell, KEY), []);
    add(&cell, KEY, 30, 33, None);
    assert_eq!(figures(&cell, KEY), [(1, 3, 3, 3)]);
}

#[test]
fn a_call_that_did_not_see_the_request_stays_for_the_next_time() {
    let cell = cell();
    add(&cell, KEY, 0, 9, None);
    assert_eq!(figures(&cell, KEY), [(1, 9, 9, 9)]);
    // As if the owner had read its ticket before it was taken back.
    cell.ticket.store(tag_of(KEY), Ordering::Relaxed);
    add(&cell, KEY, 0, 4, None);
    cell.ticket.store(ASKED, Ordering::Relaxed);
    add(&cell, KEY, 0, 5, None);
    assert_eq!(figures(&cell, KEY), [(2, 9, 4, 5)]);
}

#[test]
fn a_reader_that_catches_the_owner_at_work_takes_nothing() {
    let cell = cell();
    add(&cell, KEY, 0, 9, None);
    cell.begun.store(2, Ordering::Relaxed);
    assert_eq!(figures(&cell, KEY), []);
    cell.begun.store(1, Ordering::Relaxed);
    assert_eq!(figures(&cell, KEY), [(1, 9, 9, 9)]);
}

#[test]
fn calls_of_another_controller_are_not_mixed_in() {
    let cell = cell();
    add(&cell, KEY, 0, 9, None);
    add(&cell, 12, 0, 1, None);
    assert_eq!(figures(&cell, KEY), []);
    assert_eq!(figures(&cell, 12), [(1, 1, 1, 1)]);
}

#[test]
fn a_histogram_is_of_the_interval_too() {
    let cell = cell();
    add(&cell, KEY, 0, 3, Some(3));
    add(&cell, KEY, 0, 3, Some(3));
    let first = take(&cell, KEY).remove(0);
    assert_eq!(
        (first.buckets[3], first.buckets.iter().sum::<u64>()),
        (2, 2)
    );
    add(&cell, KEY, 0, 7, Some(7));
    let second = take(&cell, KEY).remove(0);
    assert_eq!((second.buckets[3], second.buckets[7]), (0, 1));
}

#[test]
fn buckets_of_a_cell_are_those_of_the_histogram_or_parts_of_them() {
    let values = (1..5_000).chain((12..61).flat_map(|bits| {
        let power = 1_u64 << bits;
        [power - 1, power, power + 1, power + power / 3]
    }));
    for value in values {
        let bucket = log_linear(bucket_of(to_f64(value)));
        // Beyond 53 bits the nearest floating-point number may be in the next bucket.
        let off = u32::try_from(bucket).unwrap() - LogLinear::bucket_of(value);
        assert!(off == 0 || (off == 1 && value > 1 << 53), "{value}");
    }
    assert_eq!(log_linear(bucket_of(7.99)), 7);
    assert_eq!(log_linear(ZERO_BUCKET), 0);
    for fraction in [0.99, 0.5, 0.13] {
        assert_eq!(log_linear(bucket_of(fraction)), 0);
    }
    let longest = u32::try_from(log_linear(bucket_of(to_f64(LONGEST)))).unwrap();
    assert_eq!(longest, LogLinear::bucket_of(LONGEST));
}
