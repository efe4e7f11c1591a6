//! Every record is delivered, or dropped for a reason, exactly, with any policy and any number of
//! threads.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use baler_common::container::LossReason;
use baler_monitoring::{Overflow, ShutdownReport};

use super::support::{Medium, Mode, PATIENCE, assert_chunks_add_up, await_that, beat, plain};

/// Emits from `threads` threads, of which at most 16 live at the same time, into queues that are
/// too small for a writer that confirms a chunk every millisecond.
fn emit_over_slow_writer(
    overflow: Overflow,
    threads: u32,
    records: u64,
) -> (Medium, ShutdownReport, u64) {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(2))
        .chunk_records(64)
        .queue_bytes(64 << 10)
        .unconfirmed_chunks(2)
        .overflow(overflow)
        .wait_time(Duration::from_millis(5))
        .start()
        .unwrap();
    let (stop, stopped) = channel::<()>();
    let beats = {
        let medium = medium.clone();
        thread::spawn(move || {
            while stopped.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
                medium.confirm(1);
            }
        })
    };
    let mut taken = 0;
    for first in (0..threads).step_by(16) {
        let living: Vec<_> = (first..threads.min(first + 16))
            .map(|thread| {
                let controller = controller.clone();
                thread::spawn(move || {
                    let taken =
                        (0..records).filter(|number| controller.emit(&beat(thread, *number)));
                    u64::try_from(taken.count()).unwrap()
                })
            })
            .collect();
        taken += living
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .sum::<u64>();
    }
    let report = controller.shutdown(PATIENCE);
    drop(stop);
    beats.join().unwrap();
    (medium, report, taken)
}

fn assert_conserved(overflow: Overflow, threads: u32, records: u64, expected: LossReason) {
    let (medium, report, taken) = emit_over_slow_writer(overflow, threads, records);
    let received = medium.received();
    assert!(report.on_time, "{report}");
    assert!(report.adds_up(), "{report}");
    assert_chunks_add_up(&report);
    assert_eq!(report.emitted(), u64::from(threads) * records, "{report}");
    assert_eq!(report.delivered(), received.records(), "{report}");
    assert_eq!(
        report.dropped().get(expected),
        report.dropped().total(),
        "{report}"
    );
    // Otherwise the queues were never full, and the test proves nothing.
    assert_eq!(report.dropped().is_empty(), overflow == Overflow::Block);
    received.assert_ordered();
    match expected {
        // Accepted records may still be evicted.
        LossReason::QueueFullOldest => assert!(taken >= report.delivered()),
        _ => assert_eq!(taken, report.delivered()),
    }
    let last = received.headers.last().unwrap();
    assert!(last.last_of_epoch);
    assert_eq!(
        &last.losses,
        report.dropped(),
        "the last chunk knows all losses"
    );
    for (number, header) in received.headers.iter().enumerate() {
        assert_eq!(header.identity.sequence, u64::try_from(number).unwrap());
    }
}

/// Shuts down while threads are emitting, some of them waiting for room, others just beginning.
fn assert_conserved_by_a_shutdown_in_between(
    overflow: Overflow,
    threads: u32,
    expected: LossReason,
) {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(2))
        .chunk_records(64)
        .queue_bytes(64 << 10)
        .unconfirmed_chunks(2)
        .overflow(overflow)
        .wait_time(Duration::from_millis(5))
        .start()
        .unwrap();
    let begun = Arc::new(AtomicU32::new(0));
    // Each of 16 at a time emits until the end, or a few records as one of many that come and go.
    let lives = threads.div_ceil(16);
    let emitters: Vec<_> = (0..threads.min(16))
        .map(|emitter| {
            let (controller, begun) = (controller.clone(), Arc::clone(&begun));
            thread::spawn(move || {
                let mut taken = BTreeSet::new();
                for life in 0..lives {
                    let thread = emitter * lives + life;
                    let (controller, begun) = (controller.clone(), Arc::clone(&begun));
                    let most = if life + 1 < lives { 200 } else { u64::MAX };
                    let one = thread::spawn(move || {
                        begun.fetch_add(1, Ordering::Relaxed);
                        let numbers = (0..most).take_while(|_| controller.is_enabled());
                        numbers
                            .filter(|number| controller.emit(&beat(thread, *number)))
                            .map(|number| (thread, number))
                            .collect::<Vec<_>>()
                    });
                    taken.extend(one.join().unwrap());
                }
                taken
            })
        })
        .collect();
    await_that("half of them", || {
        begun.load(Ordering::Relaxed) > threads / 2
    });
    let report = controller.shutdown(PATIENCE);
    let taken: BTreeSet<_> = emitters
        .into_iter()
        .flat_map(|emitter| emitter.join().unwrap())
        .collect();
    let received = medium.received();
    received.assert_ordered();
    let came: BTreeSet<_> = received
        .beats
        .iter()
        .map(|beat| (beat.thread, beat.number))
        .collect();
    assert!(report.on_time && report.adds_up(), "{report}");
    assert_eq!(report.delivered(), received.records(), "{report}");
    let lost = report.dropped();
    let explained = [expected, LossReason::Shutdown]
        .into_iter()
        .collect::<BTreeSet<_>>();
    let explained: u64 = explained.into_iter().map(|reason| lost.get(reason)).sum();
    assert_eq!(explained, lost.total(), "{report}");
    if expected == LossReason::QueueFullOldest {
        assert!(came.is_subset(&taken));
    } else {
        assert_eq!(came, taken, "what was taken arrives, and nothing else");
    }
    assert!(received.headers.last().unwrap().last_of_epoch);
}

macro_rules! conserved {
    ($($name:ident: $overflow:expr, $threads:expr, $records:expr, $reason:ident;)*) => {$(
        mod $name {
            use super::*;

            #[test]
            fn and_their_end_is_awaited() {
                assert_conserved($overflow, $threads, $records, LossReason::$reason);
            }

            #[test]
            fn and_a_shutdown_comes_in_between() {
                let (overflow, expected) = ($overflow, LossReason::$reason);
                assert_conserved_by_a_shutdown_in_between(overflow, $threads, expected);
            }
        }
    )*};
}

conserved! {
    one_blocking_thread_loses_nothing: Overflow::Block, 1, 20_000, Shutdown;
    eight_blocking_threads_lose_nothing: Overflow::Block, 8, 2_500, Shutdown;
    two_hundred_blocking_threads_lose_nothing: Overflow::Block, 200, 100, Shutdown;
    one_thread_blocks_for_a_time: SHORT, 1, 20_000, BlockTimeout;
    eight_threads_block_for_a_time: SHORT, 8, 2_500, BlockTimeout;
    two_hundred_threads_block_for_a_time: SHORT, 200, 100, BlockTimeout;
    one_thread_drops_the_newest: Overflow::DropNewest, 1, 20_000, QueueFullNewest;
    eight_threads_drop_the_newest: Overflow::DropNewest, 8, 2_500, QueueFullNewest;
    two_hundred_threads_drop_the_newest: Overflow::DropNewest, 200, 100, QueueFullNewest;
    one_thread_drops_the_oldest: Overflow::DropOldest, 1, 20_000, QueueFullOldest;
    eight_threads_drop_the_oldest: Overflow::DropOldest, 8, 2_500, QueueFullOldest;
    two_hundred_threads_drop_the_oldest: Overflow::DropOldest, 200, 100, QueueFullOldest;
}

const SHORT: Overflow = Overflow::BlockTimeout(Duration::from_micros(200));

#[test]
fn policies_differ_in_what_they_lose() {
    let lost = |overflow| {
        let (medium, report, _) = emit_over_slow_writer(overflow, 1, 20_000);
        (report.dropped().total(), medium.received().numbers())
    };
    let (none, all) = lost(Overflow::Block);
    assert_eq!((none, all.len()), (0, 20_000));
    let (newest, kept) = lost(Overflow::DropNewest);
    assert!(
        newest > 0,
        "the queue never was full: the test proves nothing"
    );
    assert_eq!(kept.first(), Some(&0));
    let (oldest, kept) = lost(Overflow::DropOldest);
    assert!(oldest > 0);
    assert_eq!(kept.last(), Some(&19_999), "the newest record survives");
}

#[test]
fn every_chunk_is_counted_by_the_reason_that_closed_it_the_last_one_too() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .chunk_records(10)
        .wait_time(PATIENCE * 100)
        .start()
        .unwrap();
    for number in 0..25 {
        controller.emit(&beat(0, number));
    }
    controller.flush(PATIENCE).unwrap();
    let report = controller.shutdown(PATIENCE);
    assert_chunks_add_up(&report);
    let closed = report.stats.closed_by;
    // Two full ones, the rest, and the one that marks the end.
    assert_eq!((closed.records, closed.flush), (2, 2), "{:?}", report.stats);
    assert_eq!(report.stats.chunks_encoded, 4);
    assert_eq!(medium.chunks().len(), 4);
}

#[test]
fn chunks_that_the_medium_never_took_are_given_up() {
    for mode in [Mode::Refusing, Mode::Unreachable, Mode::Stuck] {
        let medium = Medium::new(mode);
        let controller = plain(medium.writer(64)).chunk_records(10).start().unwrap();
        for number in 0..100 {
            controller.emit(&beat(0, number));
        }
        let report = controller.shutdown(Duration::from_millis(200));
        medium.set_mode(Mode::Prompt);
        assert_eq!(report.delivered(), 0, "{mode:?}: {report}");
        assert_chunks_add_up(&report);
    }
}

/// Records that are emitted during a handover between two controllers are in the account of one of
/// them.
#[cfg(feature = "macros")]
#[test]
fn handing_over_from_controller_to_controller_leaves_nothing_uncounted() {
    let _alone = super::probe::recording::one_at_a_time();
    let start = || {
        let writer = Medium::new(Mode::Prompt).writer(64);
        let controller = plain(writer).queue_bytes(16 << 10).start().unwrap();
        controller.install();
        controller
    };
    let mut controller = start();
    let is_over = &AtomicBool::new(false);
    let (called, counted) = thread::scope(|scope| {
        let emit_all = move |thread| {
            let mut called = 0;
            while !is_over.load(Ordering::Relaxed) {
                baler_monitoring::emit(&beat(thread, called));
                called += 1;
            }
            called
        };
        let threads: Vec<_> = (0..3)
            .map(|thread| scope.spawn(move || emit_all(thread)))
            .collect();
        let mut counted = 0;
        for _ in 0..201 {
            let next = start();
            let report = controller.shutdown(PATIENCE);
            assert!(report.on_time && report.adds_up(), "{report}");
            counted += report.emitted();
            controller = next;
        }
        is_over.store(true, Ordering::Relaxed);
        let called = threads.into_iter().map(|thread| thread.join().unwrap());
        (called.sum::<u64>(), counted)
    });
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up(), "{report}");
    assert_eq!(called, counted + report.emitted());
}
