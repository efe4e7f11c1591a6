//! Aggregated probes: every call is in exactly one record.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::Duration;

use baler_common::record::timing::AggregatedDurationRecord;
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::{Clock, Controller, TestClock, probe};

use super::asynchronous::{block_on, yield_times};
use super::recording::{Recording, drain, of_type, one_at_a_time};
use crate::support::await_that;

#[probe(record = aggregated, histogram)]
fn work(clock: &TestClock, time: i64) {
    clock.advance(time);
}

#[test]
fn calls_of_a_thread_become_one_record_with_count_sum_and_extremes() {
    let recording = Recording::start();
    for time in [3, 100, 5] {
        work(&recording.clock, time);
    }
    let records: Vec<AggregatedDurationRecord> = of_type(&recording.finish_all());
    assert_eq!(
        records,
        [AggregatedDurationRecord {
            operation_signature: "void it.probe.aggregated.work(TestClock, i64)".into(),
            hostname: "test-host".into(),
            since: 1_000,
            until: 1_108,
            count: 3,
            sum: 108,
            min: 3,
            max: 100,
            buckets: vec![3, 5, 57],
            bucket_counts: vec![1, 1, 1],
        }]
    );
}

#[test]
fn a_flush_tells_what_there_is_and_the_next_record_begins_anew() {
    let recording = Recording::start();
    work(&recording.clock, 10);
    recording.flush();
    work(&recording.clock, 2);
    work(&recording.clock, 4);
    recording.flush();
    recording.flush();
    let records: Vec<AggregatedDurationRecord> = of_type(&recording.finish_all());
    let figures: Vec<_> = records
        .iter()
        .map(|it| (it.count, it.sum, it.min, it.max, it.since, it.until))
        .collect();
    assert_eq!(
        figures,
        [(1, 10, 10, 10, 1_000, 1_010), (2, 6, 2, 4, 1_010, 1_016)]
    );
    assert_eq!(records[1].buckets, [2, 4]);
}

#[probe(record = aggregated, full = 1/10)]
async fn later(clock: TestClock) {
    clock.advance(1);
    yield_times(1).await;
    clock.advance(1);
}

#[test]
fn asynchronous_calls_are_added_up_where_they_end() {
    let recording = Recording::start();
    for _ in 0..20 {
        block_on(later(recording.clock.clone()));
    }
    let batches = recording.finish_all();
    let records: Vec<AggregatedDurationRecord> = of_type(&batches);
    assert_eq!((records[0].count, records[0].sum), (20, 40));
    assert_eq!(batches.iter().map(|batch| batch.len()).sum::<usize>(), 3);
}

#[probe(record = aggregated, histogram)]
fn counted() {
    std::hint::black_box(());
}

#[probe(record = aggregated, sample = 1/2)]
fn nested(depth: u32) {
    if depth > 0 {
        nested(depth - 1);
    }
}

/// Adds all records of an operation up.
fn merged(records: &[AggregatedDurationRecord]) -> BTreeMap<&str, AggregatedDurationRecord> {
    let mut merged: BTreeMap<&str, AggregatedDurationRecord> = BTreeMap::new();
    for record in records {
        assert!(record.count > 0, "{record:?}");
        assert!(
            record.min <= record.max && record.max <= record.sum,
            "{record:?}"
        );
        assert!(record.since <= record.until, "{record:?}");
        let name = record.operation_signature.as_str();
        match merged.get_mut(name) {
            Some(sum) => sum.merge(record).unwrap(),
            None => drop(merged.insert(name, record.clone())),
        }
    }
    merged
}

#[test]
fn the_counts_add_up_to_the_calls_while_threads_come_and_go() {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    let controller = Controller::builder(Box::new(medium.writer()))
        .metadata_record(false)
        .wait_time(Duration::from_millis(5))
        .aggregation_interval(Duration::from_millis(1))
        .start()
        .unwrap();
    controller.install();
    let calls = AtomicU64::new(0);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Two that run all the time, and two that begin one thread after another.
        for _ in 0..2 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    counted();
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for thread in 0..1_000_u64 {
                    let made = std::thread::spawn(move || (0..thread % 5).for_each(|_| counted()));
                    made.join().unwrap();
                    calls.fetch_add(thread % 5, Ordering::Relaxed);
                }
                stop.store(true, Ordering::Relaxed);
            });
        }
    });
    let stats = controller.shutdown(Duration::from_secs(10)).stats;
    assert_eq!(stats.emitted, stats.delivered);
    let records: Vec<AggregatedDurationRecord> = of_type(&drain(&medium));
    let merged = merged(&records);
    let record = &merged["void it.probe.aggregated.counted()"];
    assert_eq!(record.count, calls.load(Ordering::Relaxed));
    assert_eq!(record.bucketed(), record.count);
    assert!(records.len() > 10, "{} records", records.len());
}

#[test]
fn a_thread_that_sleeps_is_told_of_by_time() {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    let clock = TestClock::new(1_000);
    let controller = Controller::builder(Box::new(medium.writer()))
        .clock(Clock::Test(clock.clone()))
        .metadata_record(false)
        .wait_time(Duration::from_millis(1))
        .aggregation_interval(Duration::from_millis(1))
        .start()
        .unwrap();
    controller.install();
    let barrier = Arc::new(Barrier::new(2));
    let asleep = Arc::clone(&barrier);
    let thread = std::thread::spawn(move || {
        work(&clock, 3);
        // It neither calls nor ends.
        asleep.wait();
        work(&clock, 4);
        work(&clock, 9);
    });
    await_that("a record of the thread that sleeps", || {
        controller.stats().delivered == 1
    });
    barrier.wait();
    thread.join().unwrap();
    controller.shutdown(Duration::from_secs(10));
    let records: Vec<AggregatedDurationRecord> = of_type(&drain(&medium));
    let of_work: Vec<_> = records.iter().map(|it| it.count).collect();
    assert_eq!(of_work.iter().sum::<u64>(), 3, "{records:?}");
    assert_eq!(
        (records[0].count, records[0].min, records[0].max),
        (1, 3, 3)
    );
    let rest = &merged(&records[1..])["void it.probe.aggregated.work(TestClock, i64)"];
    assert_eq!((rest.sum, rest.min, rest.max), (13, 4, 9));
}

#[test]
fn what_another_controller_has_not_taken_is_not_told_by_the_next() {
    let recording = Recording::start();
    work(&recording.clock, 1);
    recording.switch(false);
    work(&recording.clock, 1);
    recording.switch(true);
    drop(recording.finish_all());
    let recording = Recording::start();
    work(&recording.clock, 7);
    let records: Vec<AggregatedDurationRecord> = of_type(&recording.finish_all());
    assert_eq!((records[0].count, records[0].sum), (1, 7));
}

#[test]
fn calls_within_calls_are_each_counted() {
    let recording = Recording::start();
    nested(39);
    let records: Vec<AggregatedDurationRecord> = of_type(&recording.finish_all());
    assert_eq!(records.iter().map(|it| it.count).sum::<u64>(), 20);
}
