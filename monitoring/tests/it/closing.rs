//! The reasons that close a chunk.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baler_monitoring::ClosedBy;

use super::support::{Medium, Mode, PATIENCE, Received, await_that, beat, plain};

/// No test lasts this long.
const NEVER: Duration = Duration::from_secs(3_600);

#[test]
fn chunk_is_closed_by_its_number_of_records() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .chunk_records(10)
        .wait_time(NEVER)
        .start()
        .unwrap();
    for number in 0..1_000 {
        assert!(controller.emit(&beat(0, number)));
    }
    let received = Received::of(&medium.await_chunks(100));
    assert_eq!(received.sizes, [10; 100]);
    assert_eq!(controller.stats().closed_by.of(ClosedBy::Records), 100);
}

#[test]
fn chunk_is_closed_by_its_encoded_bytes() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .chunk_records(usize::MAX)
        .chunk_bytes(10_000)
        .wait_time(NEVER)
        .start()
        .unwrap();
    let mut noise = 1_u64;
    for number in 0..4_000 {
        let mut record = beat(0, number);
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        record.text = format!("{noise:016x}").repeat(4);
        assert!(controller.emit(&record));
    }
    let chunks = medium.await_chunks(10);
    for chunk in &chunks[2..] {
        let bytes = chunk.bytes.len();
        assert!((8_000..12_000).contains(&bytes), "{bytes}");
    }
    let report = controller.shutdown(PATIENCE);
    assert!(report.stats.closed_by.bytes >= 10, "{:?}", report.stats);
    assert_eq!(report.stats.closed_by.records, 0);
}

#[test]
fn chunk_is_closed_when_its_oldest_record_has_waited() {
    let medium = Medium::new(Mode::Prompt);
    let wait = Duration::from_millis(200);
    let controller = plain(medium.writer(64)).wait_time(wait).start().unwrap();
    let emitted = Instant::now();
    controller.emit(&beat(0, 0));
    let received = Received::of(&medium.await_chunks(1));
    let waited = emitted.elapsed();
    assert_eq!(received.numbers(), [0]);
    // A round that saw the queue empty lies at most half a wait time back.
    assert!(waited >= wait / 4, "{waited:?}");
    assert!(waited < PATIENCE / 2, "{waited:?}");
    assert_eq!(controller.stats().closed_by.of(ClosedBy::Age), 1);
}

/// Returns what the kernel reports about the collector's thread.
#[cfg(target_os = "linux")]
fn collector_status(field: &str) -> Option<u64> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let statuses = threads
        .filter_map(|thread| std::fs::read_to_string(thread.ok()?.path().join("status")).ok());
    // The kernel cuts names to 15 bytes.
    let status = statuses
        .into_iter()
        .find(|status| status.starts_with("Name:\tbaler-collector\n"));
    let status = status?;
    let line = status.lines().find_map(|line| line.strip_prefix(field))?;
    line.trim().parse().ok()
}

/// Waits until the collector's thread has not been woken for this long.
#[cfg(target_os = "linux")]
fn await_sleep_of_collector(time: Duration) {
    let wake_ups = || collector_status("voluntary_ctxt_switches:");
    let (mut seen, mut since) = (wake_ups(), Instant::now());
    await_that("the collector sleeps", || {
        let now = wake_ups();
        if now != seen || now.is_none() {
            (seen, since) = (now, Instant::now());
        }
        since.elapsed() >= time
    });
}

#[cfg(target_os = "linux")]
#[test]
fn idle_collector_sleeps() {
    let medium = Medium::new(Mode::Prompt);
    let wait = Duration::from_millis(500);
    let controller = plain(medium.writer(64)).wait_time(wait).start().unwrap();
    controller.emit(&beat(0, 0));
    controller.flush(PATIENCE).unwrap();
    for _ in 0..4 {
        // It polls twice in a wait time, and eight times while it is not idle.
        await_sleep_of_collector(wait / 3);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn lone_record_arrives_within_the_wait_time_however_long_nothing_came() {
    let medium = Medium::new(Mode::Prompt);
    let wait = Duration::from_millis(400);
    let controller = plain(medium.writer(64)).wait_time(wait).start().unwrap();
    let waited = (0..4).map(|number| {
        await_sleep_of_collector(wait / 3);
        let emitted = Instant::now();
        controller.emit(&beat(0, number));
        medium.await_chunks(usize::try_from(number).unwrap() + 1);
        emitted.elapsed()
    });
    // A loaded machine may be late, but not each time.
    let least = waited.min().unwrap();
    assert!(least < wait * 2, "{least:?}");
}

#[test]
fn records_of_long_ago_are_batched_like_any_other() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .clock(baler_monitoring::Clock::Test(
            baler_monitoring::TestClock::new(5),
        ))
        .wait_time(NEVER)
        .start()
        .unwrap();
    for number in 0..100 {
        controller.emit(&beat(0, number));
    }
    controller.flush(PATIENCE).unwrap();
    let received = medium.received();
    assert_eq!(received.sizes, [100]);
    assert_eq!(received.timestamps, [Some(5); 100]);
}

#[test]
fn chunk_is_closed_by_a_flush_that_waits_for_its_confirmation() {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(64)).wait_time(NEVER).start().unwrap();
    controller.emit(&beat(0, 0));
    let flush = {
        let controller = controller.clone();
        std::thread::spawn(move || controller.flush(PATIENCE))
    };
    medium.await_chunks(1);
    assert!(!flush.is_finished());
    assert_eq!(controller.stats().delivered, 0);
    medium.confirm(1);
    assert_eq!(flush.join().unwrap(), Ok(()));
    assert_eq!(controller.stats().delivered, 1);
    assert_eq!(controller.stats().closed_by.of(ClosedBy::Flush), 1);
}

#[test]
fn shutdown_sends_what_is_left_before_all_is_confirmed() {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(64))
        .chunk_records(10)
        .wait_time(NEVER)
        .start()
        .unwrap();
    for number in 0..15 {
        controller.emit(&beat(0, number));
    }
    medium.await_chunks(1);
    let shutdown = std::thread::spawn(move || controller.shutdown(PATIENCE * 2));
    let received = Received::of(&medium.await_chunks(2));
    assert_eq!(received.sizes, [10, 5]);
    // The last chunk contains all losses, so it comes when there can be no more.
    medium.set_mode(Mode::Prompt);
    medium.confirm(2);
    assert_eq!(shutdown.join().unwrap().delivered(), 15);
    let received = medium.received();
    assert_eq!(received.sizes, [10, 5, 0]);
    assert!(received.headers.last().unwrap().last_of_epoch);
}

#[test]
fn writer_may_sleep_until_a_flush_or_the_shutdown_waits_for_confirmations() {
    let medium = Medium::new(Mode::Sleeping);
    let controller = plain(medium.writer(64))
        .chunk_records(10)
        .wait_time(NEVER)
        .start()
        .unwrap();
    let emit = || {
        for number in 0..50 {
            controller.emit(&beat(0, number));
        }
    };
    await_that("nobody waits", || medium.awaits() == (0, false));
    emit();
    medium.await_chunks(5);
    assert_eq!(controller.stats().delivered, 0);
    controller.flush(PATIENCE).unwrap();
    assert_eq!(controller.stats().delivered, 50);
    await_that("nobody waits any more", || medium.awaits() == (1, false));
    emit();
    let report = controller.shutdown(PATIENCE);
    assert!(report.on_time && report.adds_up());
    assert_eq!(report.delivered(), 100);
}

#[test]
fn sleeping_writer_is_woken_when_its_window_is_full() {
    let medium = Medium::new(Mode::Sleeping);
    let controller = plain(medium.writer(4))
        .chunk_records(1)
        .wait_time(NEVER)
        .start()
        .unwrap();
    await_that("nobody waits", || medium.awaits() == (0, false));
    for number in 0..100 {
        controller.emit(&beat(0, number));
    }
    medium.await_chunks(100);
    assert!(medium.awaits().0 > 0);
}

#[test]
fn flush_without_records_returns_at_once() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).wait_time(NEVER).start().unwrap();
    controller.flush(PATIENCE).unwrap();
    assert_eq!(medium.chunks().len(), 0);
}

#[test]
fn flush_returns_while_other_threads_go_on_emitting() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .wait_time(NEVER)
        .queue_bytes(64 << 10)
        .start()
        .unwrap();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (controller, stop) = (&controller, &stop);
            scope.spawn(move || {
                let mut number = 0;
                while !stop.load(Ordering::Relaxed) {
                    controller.emit(&beat(thread, number));
                    number += 1;
                }
            });
        }
        let flushed = (0..20)
            .map(|_| controller.flush(PATIENCE))
            .collect::<Vec<_>>();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(flushed, [Ok(()); 20]);
    });
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up() && report.on_time, "{report}");
}
