//! A medium that goes away and comes back.

use std::time::Duration;

use baler_common::transport::{ChunkWriter as _, RetryClass};
use baler_connector_file::spool::{Spool, SpoolRoute};
use baler_connector_testkit::failing::break_by_a_panic;
use baler_connector_testkit::{MemoryMedium, Tap, within_patience};

use super::support::{Sender, assert_adds_up, config, receive, soon};

#[test]
fn chunks_pass_straight_through_while_the_medium_is_fine() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut config = config(folder.path());
    // Longer than a busy machine keeps the medium's thread waiting.
    config.spool_after = Duration::from_secs(60);
    let mut sender = Sender::open(&medium, config);
    sender.send(100);
    let status = sender.status();
    assert_eq!(status.route, SpoolRoute::Direct);
    assert_eq!(status.stats.spooled_chunks, 0);
    assert_eq!(medium.len(), 100);
    sender.close();
    assert!(!folder.path().join("spool/chunks").exists());
}

#[test]
fn chunks_go_to_disk_while_the_medium_is_away_and_follow_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut sender = Sender::open(&medium, config(folder.path()));
    sender.send(50);
    medium.set_unreachable(true);
    sender.send(200);
    let status = sender.status();
    assert_eq!(status.route, SpoolRoute::Away);
    assert_eq!(status.stats.spooled_chunks, 200);
    assert_eq!(status.stats.waiting_chunks, 200);
    assert!(status.medium_error.is_some());
    medium.set_unreachable(false);
    sender.send(50);
    sender.wait_for_route(SpoolRoute::Direct);
    sender.send(50);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 350);
    assert_eq!(tap.received().len(), 350, "nothing came twice");
    tap.assert_ordered();
    let status = sender.status();
    assert_adds_up(&status);
    assert_eq!(status.stats.waiting_chunks, 0);
    assert_eq!(status.stats.replayed_chunks, status.stats.spooled_chunks);
    sender.close();
    let left = std::fs::read_dir(folder.path().join("spool/chunks")).unwrap();
    let segments = left.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".seg")
    });
    assert_eq!(segments.count(), 0, "what was sent on is removed");
}

#[test]
fn medium_that_can_be_opened_and_confirms_nothing_is_away() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut config = config(folder.path());
    // Longer than any pause between two attempts.
    config.spool_after = Duration::from_millis(300);
    let mut sender = Sender::open(&medium, config);
    sender.send(10);
    medium.hold_confirmations(true);
    sender.pump.push(sender.source.take(20));
    within_patience("all is on disk", || {
        sender.pump.step();
        receive(&mut tap);
        if sender.status().route == SpoolRoute::Direct {
            medium.break_connections();
        }
        sender.pump.is_done().then_some(())
    });
    assert_eq!(sender.status().stats.spooled_chunks, 20);
    assert!(sender.status().waiting.since().is_some());
    medium.hold_confirmations(false);
    within_patience("nothing is waited for", || {
        sender.pump.step();
        receive(&mut tap);
        let status = sender.status();
        let is_over = status.route == SpoolRoute::Direct && status.waiting.since().is_none();
        is_over.then_some(())
    });
    receive(&mut tap);
    assert_eq!(tap.distinct(), 30);
    assert_adds_up(&sender.status());
    sender.close();
}

#[test]
fn short_break_needs_no_disk() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut config = config(folder.path());
    config.spool_after = Duration::from_secs(60);
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut sender = Sender::open(&medium, config);
    for _ in 0..20 {
        sender.pump.push(sender.source.take(30));
        sender.pump.step();
        medium.break_connections();
        sender.wait_for("all is confirmed", |sender| sender.pump.is_done());
    }
    receive(&mut tap);
    assert_eq!(tap.distinct(), 600);
    tap.assert_ordered();
    assert_eq!(sender.pump.breaks(), 0, "the owner sees no break");
    assert_eq!(sender.close().stats.spooled_chunks, 0);
}

#[test]
fn medium_that_is_away_at_the_start_is_waited_for_on_disk() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config(folder.path()));
    sender.send(300);
    assert_eq!(sender.status().stats.spooled_chunks, 300);
    let status = sender.close();
    assert_eq!(status.stats.waiting_chunks, 300);
    assert_eq!(status.route, SpoolRoute::Closed);

    // The next life sends them on, before its own.
    medium.set_unreachable(false);
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut sender = Sender::of_producer(&medium, config(folder.path()), 2);
    sender.send(20);
    sender.wait_for_route(SpoolRoute::Direct);
    let status = sender.status();
    assert_eq!(status.found_chunks, 300);
    assert_adds_up(&status);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 320);
    tap.assert_ordered();
    let first_of_second = tap.received().iter().position(|label| label.producer == 2);
    assert_eq!(first_of_second, Some(300));
    sender.close();
}

#[test]
fn chunk_that_is_refused_after_the_spool_is_kept_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    medium.set_unreachable(true);
    let mut sender = Sender::open(&medium, config(folder.path()));
    sender.send(10);
    medium.refuse_next(RetryClass::Final);
    medium.refuse_next(RetryClass::Retry);
    medium.set_unreachable(false);
    sender.wait_for_route(SpoolRoute::Direct);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 9);
    let status = sender.close();
    assert_eq!(status.refused_chunks, 1);
    assert_adds_up(&status);
    let refused = std::fs::read_dir(folder.path().join("spool/refused")).unwrap();
    let mut names: Vec<_> = refused.map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let bytes = std::fs::read(&names[0]).unwrap();
    assert_eq!(baler_connector_testkit::read_label(&bytes).sequence, 0);
    let json = std::fs::read_to_string(&names[1]).unwrap();
    assert!(json.contains("refused on demand"), "{json}");
    assert!(json.contains("\"records\": 1"), "{json}");
}

#[test]
fn what_is_not_confirmed_at_the_close_is_spooled() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut sender = Sender::open(&medium, config(folder.path()));
    medium.hold_confirmations(true);
    sender.pump.push(sender.source.take(5));
    sender.pump.step();
    let by = std::time::Instant::now() + Duration::from_millis(600);
    let (pump, report) = sender.pump.close(by);
    assert_eq!(report.unconfirmed, Vec::<u64>::new());
    assert_eq!(pump.confirmed(), 5);
    let status = sender.watch.status();
    assert_eq!(status.stats.spooled_chunks, 5);
    assert_eq!(status.stats.waiting_chunks, 5);
}

#[test]
fn medium_that_confirms_nothing_any_more_counts_as_away() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut tap = Tap::new(Box::new(medium.reader()));
    let mut config = config(folder.path());
    config.stall_after = Duration::from_millis(100);
    let mut sender = Sender::open(&medium, config);
    medium.hold_confirmations(true);
    sender.send(100);
    assert!(sender.status().stats.spooled_chunks >= 100);
    medium.hold_confirmations(false);
    sender.wait_for_route(SpoolRoute::Direct);
    receive(&mut tap);
    assert_eq!(tap.distinct(), 100);
    tap.assert_ordered();
    sender.close();
}

#[test]
fn second_process_is_refused_until_the_first_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let first = Sender::open(&medium, config(folder.path()));
    let mut second = Spool::new(Box::new(medium.writer()), config(folder.path()));
    let error = second.reopen(soon()).unwrap_err();
    let process = format!("process {} ", std::process::id());
    assert!(error.is_retryable());
    assert!(error.to_string().contains(&process), "{error}");
    first.close();
    within_patience("the folder is free", || second.reopen(soon()).ok());
}

#[test]
fn a_panic_of_the_thread_is_an_error_that_stays() {
    let folder = tempfile::tempdir().unwrap();
    let medium = MemoryMedium::default();
    let mut spool = Spool::new(Box::new(medium.writer()), config(folder.path()));
    spool.reopen(soon()).unwrap();
    break_by_a_panic(&mut spool, || ());
    let error = spool.reopen(soon()).unwrap_err();
    assert!(error.message.contains("panicked"), "{error}");
    let report = Box::new(spool).close(soon());
    assert_eq!(report.delivery_reports.len() + report.unconfirmed.len(), 0);
}
