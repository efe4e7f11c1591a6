//! Whole batches that a program passes on.

use std::ops::Range;
use std::time::{Duration, Instant};

use baler_common::container::LossReason;
use baler_common::record::{BatchBuilder, RecordBatch};
use baler_monitoring::{Controller, ControllerBuilder, FlushError, Overflow, suppress};

use crate::support::{Medium, Mode, PATIENCE, assert_chunks_add_up, await_that, beat, plain};

fn batch(numbers: Range<u64>) -> RecordBatch {
    let mut builder = BatchBuilder::new();
    for number in numbers {
        builder.push(&beat(0, number)).unwrap();
    }
    builder.take()
}

/// A controller whose chunks are full at a hundred records.
fn forwarding(medium: &Medium) -> ControllerBuilder {
    plain(medium.writer(64))
        .chunk_records(100)
        .overflow(Overflow::Block)
        .wait_time(Duration::from_secs(3_600))
}

fn sizes(medium: &Medium) -> Vec<u32> {
    let chunks = medium.chunks().into_iter();
    chunks.map(|chunk| chunk.meta.records).collect()
}

#[test]
fn batches_of_about_a_chunk_become_chunks_and_others_are_gathered() {
    let medium = Medium::new(Mode::Prompt);
    let controller = forwarding(&medium).start().unwrap();
    assert!(controller.emit(&beat(0, 0)));
    for numbers in [1..61, 61..71, 71..81, 81..181, 181..401] {
        let records = usize::try_from(numbers.end - numbers.start).unwrap();
        assert_eq!(controller.emit_batch(batch(numbers)), records);
    }
    controller.flush(PATIENCE).unwrap();
    assert_eq!(sizes(&medium), [1, 60, 20, 100, 100, 100, 20]);
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (401, 401));
    assert_chunks_add_up(&report);
    let expected: Vec<_> = (0..401).collect();
    assert_eq!(medium.received().numbers(), expected);
}

#[test]
fn batches_of_a_controller_with_lanes_or_drops_or_a_budget_pass_the_queues() {
    let settings: [fn(ControllerBuilder) -> ControllerBuilder; 4] = [
        |it| it.lanes(2),
        |it| it.overflow(Overflow::DropNewest),
        |it| it.memory(64 << 20),
        |it| it.auto_chunks(Duration::from_millis(100)),
    ];
    for set in settings {
        let medium = Medium::new(Mode::Prompt);
        let controller = set(forwarding(&medium)).start().unwrap();
        assert!(controller.emit(&beat(0, 0)));
        assert_eq!(controller.emit_batch(batch(1..91)), 90);
        controller.flush(PATIENCE).unwrap();
        assert_eq!(sizes(&medium).iter().sum::<u32>(), 91);
        assert!(!sizes(&medium).contains(&90), "{:?}", sizes(&medium));
    }
}

#[test]
fn a_batch_that_the_medium_finds_too_large_is_split() {
    let medium = Medium::new(Mode::Prompt);
    medium.limit(300);
    let controller = forwarding(&medium).start().unwrap();
    let mut builder = BatchBuilder::new();
    for number in 0..90 {
        let mut record = beat(0, number);
        record.text = format!("{number:x<20}");
        builder.push(&record).unwrap();
    }
    assert_eq!(controller.emit_batch(builder.take()), 90);
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.delivered(), 90, "{report}");
    assert!(medium.chunks().len() > 1);
    medium.received().assert_ordered();
}

/// The account includes a batch that nobody took.
#[test]
fn a_batch_waits_for_the_one_before_and_a_shutdown_ends_the_wait() {
    let medium = Medium::new(Mode::Stuck);
    let controller = forwarding(&medium).start().unwrap();
    let emitter = {
        let controller: Controller = controller.clone();
        std::thread::spawn(move || {
            let numbers = (0..).step_by(100).map(|from| from..from + 100);
            numbers
                .map(|numbers| controller.emit_batch(batch(numbers)))
                .take_while(|accepted| *accepted > 0)
                .sum::<usize>()
        })
    };
    await_that("a batch that waits", || controller.stats().queued == 100);
    let flushed = controller.flush(Duration::from_millis(20));
    assert_eq!(flushed, Err(FlushError::Timeout));
    let began = Instant::now();
    let report = controller.shutdown(Duration::from_millis(200));
    assert!(began.elapsed() < PATIENCE);
    let accepted = u64::try_from(emitter.join().unwrap()).unwrap();
    assert_eq!(report.emitted(), accepted);
    let undelivered = report.dropped().get(LossReason::Undelivered);
    assert_eq!(report.delivered() + undelivered, accepted, "{report}");
    assert!(undelivered >= 100, "{report}");
    assert_eq!(controller.emit_batch(batch(0..100)), 0);
}

/// As a hook on the collector's thread, which must not wait for itself.
#[test]
fn a_suppressed_thread_emits_no_batch_and_each_record_counts() {
    let medium = Medium::new(Mode::Prompt);
    let controller = forwarding(&medium).start().unwrap();
    let suppressed = suppress();
    assert_eq!(controller.emit_batch(batch(0..90)), 0);
    drop(suppressed);
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.dropped().get(LossReason::Reentrant), 90, "{report}");
    assert_eq!(report.emitted(), 90);
}
