//! Chunk size and wait time that the collector chooses itself.

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use baler_common::record::Record;
use baler_monitoring::{ClosedBy, Overflow};

use super::support::{Medium, Mode, PATIENCE, await_that, beat, plain};

const BOUND: Duration = Duration::from_millis(400);

#[test]
fn lone_record_is_delivered_within_the_bound_and_the_choice_is_told() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).auto_chunks(BOUND).start().unwrap();
    let stats = controller.stats();
    // Half is kept for the steps after a chunk was closed.
    assert_eq!(stats.wait_time, BOUND / 2);
    assert_eq!(stats.chunk_records, 1);
    for number in 0..4 {
        let emitted = Instant::now();
        assert!(controller.emit(&beat(0, number)));
        medium.await_chunks(usize::try_from(number).unwrap() + 1);
        let waited = emitted.elapsed();
        // A loaded machine may be late by as much again.
        assert!(waited < BOUND * 2, "{waited:?}");
    }
    assert_eq!(controller.stats().closed_by.of(ClosedBy::Age), 4);
}

#[test]
fn flood_after_silence_is_taken_in_chunks_of_the_largest_useful_size() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .auto_chunks(Duration::from_secs(60))
        .overflow(Overflow::Block)
        .start()
        .unwrap();
    assert!(controller.emit(&beat(0, 0)));
    let flood = 200_000;
    for number in 1..flood {
        assert!(controller.emit(&beat(0, number)));
    }
    // No record has to wait for the minute that is allowed.
    await_that("chunks of what came", || medium.chunks().len() >= 4);
    controller.flush(PATIENCE).unwrap();
    let received = medium.received();
    assert_eq!(received.numbers(), (0..flood).collect::<Vec<_>>());
    assert!(
        received.sizes.iter().any(|size| *size >= 16_384),
        "{:?}",
        received.sizes
    );
    assert_eq!(controller.stats().closed_by.age, 0);
}

#[test]
fn wait_time_that_was_set_is_kept_too() {
    let medium = Medium::new(Mode::Prompt);
    let wait = Duration::from_millis(20);
    let controller = plain(medium.writer(64))
        .auto_chunks(Duration::from_secs(3_600))
        .wait_time(wait)
        .start()
        .unwrap();
    assert_eq!(controller.stats().wait_time, wait);
    assert!(controller.emit(&beat(0, 0)));
    medium.await_chunks(1);
}

#[test]
fn size_that_is_set_later_is_fixed_again() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .auto_chunks(Duration::from_millis(20))
        .chunk_records(10)
        .start()
        .unwrap();
    let stats = controller.stats();
    let fixed = (10, Duration::from_millis(500));
    assert_eq!((stats.chunk_records, stats.wait_time), fixed);
}

#[test]
fn chunks_stay_within_the_limit_of_the_medium() {
    let limit = 20_000;
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer_with_limit(64, limit))
        .auto_chunks(Duration::from_secs(60))
        .overflow(Overflow::Block)
        .start()
        .unwrap();
    let mut noise = 1_u64;
    let records = 20_000;
    for number in 0..records {
        let mut record = beat(0, number);
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        record.text = format!("{noise:016x}");
        assert!(controller.emit(&record));
    }
    controller.flush(PATIENCE).unwrap();
    let chunks = medium.chunks();
    assert!(chunks.iter().all(|chunk| chunk.bytes.len() <= limit));
    assert_eq!(medium.received().records(), records);
    let stats = controller.stats();
    // Until it is known how well the records pack.
    assert!(stats.splits <= 3, "{stats:?}");
    assert!(stats.closed_by.bytes > 5, "{stats:?}");
}

/// A record with a trace.
#[derive(Debug, Record)]
#[record(name = "test.Step")]
struct Step {
    trace_id: u64,
    number: u32,
}

#[test]
fn all_lanes_close_together_and_lose_nothing() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .lanes(4)
        .auto_chunks(Duration::from_millis(100))
        .overflow(Overflow::Block)
        .start()
        .unwrap();
    let threads: Vec<_> = (0..4_u64)
        .map(|thread| {
            let controller = controller.clone();
            thread::spawn(move || {
                for number in 0..20_000_u32 {
                    let trace_id = thread * 1_000 + u64::from(number % 100);
                    assert!(controller.emit(&Step { trace_id, number }));
                }
            })
        })
        .collect();
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    await_that("every record by itself", || {
        controller.stats().delivered == 80_000
    });
    let report = controller.shutdown(PATIENCE);
    assert!(report.on_time && report.adds_up(), "{report}");
    assert_eq!(report.dropped().total(), 0);
    let lanes: BTreeSet<u32> = medium
        .chunks()
        .iter()
        .map(|chunk| chunk.meta.identity.lane)
        .collect();
    assert_eq!(lanes.len(), 4);
}

#[test]
fn medium_that_stands_still_is_met_by_the_queues_policy() {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(2))
        .auto_chunks(Duration::from_millis(50))
        .queue_bytes(1 << 16)
        .unconfirmed_chunks(4)
        .overflow(Overflow::DropNewest)
        .start()
        .unwrap();
    let mut number = 0;
    await_that("a full queue", || {
        for _ in 0..100 {
            controller.emit(&beat(0, number));
            number += 1;
        }
        controller.stats().dropped.total() > 0
    });
    assert!(controller.stats().queue_bytes <= 1 << 16);
    medium.set_mode(Mode::Prompt);
    medium.confirm(usize::MAX);
    let report = controller.shutdown(PATIENCE);
    assert!(report.on_time && report.adds_up(), "{report}");
    assert_eq!(report.emitted(), number);
    medium.received().assert_ordered();
    assert_eq!(medium.received().records(), report.delivered());
}
