//! Start, enable, disable, install, end.

use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::LossReason;
use baler_common::record::{BatchBuilder, read};
use baler_connector_kieker::container::{self, KiekerSerializer};
use baler_connector_kieker::types::KiekerMetadataRecord;
use baler_monitoring::{
    Clock, Controller, FlushError, StartError, TestClock, emit, installed, shutdown_installed,
    suppress,
};

use super::support::{Medium, Mode, PATIENCE, beat, plain};

#[test]
fn first_record_is_the_metadata() {
    let medium = Medium::new(Mode::Prompt);
    let controller = Controller::builder(medium.writer(64))
        .application("shop")
        .hostname("here")
        .experiment_id(7)
        .clock(Clock::Test(TestClock::new(42)))
        .start()
        .unwrap();
    controller.emit(&beat(0, 0));
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (2, 2));
    let received = medium.received();
    assert_eq!(
        received.types,
        [
            "kieker.common.record.misc.KiekerMetadataRecord",
            "test.Beat"
        ]
    );
    let chunk = container::decoder()
        .decode(&medium.chunks()[0].bytes)
        .unwrap();
    let first = chunk.batch.records().next().unwrap();
    assert_eq!(first.timestamp(), Some(42));
    let metadata: KiekerMetadataRecord = read(first.fields()).unwrap();
    assert_eq!(metadata.controller_name, "shop");
    assert_eq!(metadata.hostname, "here");
    assert_eq!(metadata.experiment_id, 7);
    assert!(metadata.version.starts_with("baler "));
}

#[test]
fn nothing_is_emitted_while_disabled() {
    let medium = Medium::new(Mode::Prompt);
    let controller = Controller::builder(medium.writer(64))
        .enabled(false)
        .start()
        .unwrap();
    assert!(!controller.is_enabled());
    assert!(!controller.emit(&beat(0, 0)));
    controller.flush(PATIENCE).unwrap();
    assert_eq!(controller.stats().emitted, 0);
    controller.enable();
    assert!(controller.emit(&beat(0, 1)));
    controller.disable();
    assert!(!controller.emit(&beat(0, 2)));
    let mut builder = BatchBuilder::new();
    builder.push(&beat(0, 3)).unwrap();
    assert!(!controller.emit_as_is(builder.batch().records().next().unwrap()));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.emitted(), 2, "the metadata and one record");
    assert_eq!(medium.received().numbers(), [1]);
}

#[test]
fn shutdown_ends_once_and_reports_the_same_ever_after() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    controller.emit(&beat(0, 0));
    let report = controller.shutdown(PATIENCE);
    assert!(report.on_time);
    assert_eq!(report.to_string(), "1 emitted = 1 delivered + 0 dropped");
    assert!(medium.is_closed());
    assert!(!controller.emit(&beat(0, 1)));
    controller.enable();
    assert!(!controller.is_enabled());
    assert_eq!(controller.shutdown(PATIENCE).emitted(), 1);
    assert_eq!(controller.stats().emitted, 1);
    assert_eq!(controller.flush(PATIENCE), Err(FlushError::Stopped));
}

#[test]
fn last_chunk_says_so_and_is_empty_if_nothing_is_left() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    controller.emit(&beat(0, 0));
    controller.flush(PATIENCE).unwrap();
    controller.shutdown(PATIENCE);
    let received = medium.received();
    assert_eq!(received.sizes, [1, 0]);
    let last: Vec<_> = received
        .headers
        .iter()
        .map(|header| header.last_of_epoch)
        .collect();
    assert_eq!(last, [false, true]);
}

#[test]
fn container_of_kieker_gets_no_empty_chunk() {
    let medium = Medium::new(Mode::Prompt);
    let controller = Controller::builder(medium.writer(64))
        .serializer(KiekerSerializer::default())
        .start()
        .unwrap();
    controller.flush(PATIENCE).unwrap();
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (1, 1));
    assert_eq!(medium.chunks().len(), 1);
}

#[test]
fn guard_shuts_down_when_it_is_dropped() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    let guard = controller.guard(PATIENCE);
    controller.emit(&beat(0, 0));
    drop(guard);
    let report = controller.report().unwrap();
    assert_eq!((report.emitted(), report.delivered()), (1, 1));
}

#[test]
fn last_handle_delivers_in_the_background() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    controller.emit(&beat(0, 0));
    drop(controller);
    assert_eq!(medium.await_chunks(1).len(), 1);
    super::support::await_that("the close", || medium.is_closed());
}

#[test]
fn installed_controller_takes_what_the_free_function_emits() {
    assert!(!emit(&beat(0, 0)), "nothing is installed");
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    assert!(controller.install().is_none());
    assert!(emit(&beat(0, 1)));
    controller.disable();
    assert!(!emit(&beat(0, 2)));
    controller.enable();
    assert!(emit(&beat(0, 3)));
    assert_eq!(installed().unwrap().stats().emitted, 2);
    let report = shutdown_installed(PATIENCE).unwrap();
    assert_eq!(report.delivered(), 2);
    assert!(!emit(&beat(0, 4)));
    assert_eq!(medium.received().numbers(), [1, 3]);

    let second = Medium::new(Mode::Prompt);
    let next = plain(second.writer(64)).start().unwrap();
    assert!(next.install().is_some());
    assert!(emit(&beat(0, 5)), "a thread notices the new controller");
    next.shutdown(PATIENCE);
    assert_eq!(second.received().numbers(), [5]);
}

#[test]
fn suppressed_thread_emits_nothing_and_is_counted() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    {
        let _outer = suppress();
        let _inner = suppress();
        assert!(!controller.emit(&beat(0, 0)));
    }
    assert!(controller.emit(&beat(0, 1)));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.emitted(), 2);
    assert_eq!(report.dropped().get(LossReason::Reentrant), 1);
    assert!(report.adds_up());
}

#[test]
fn collector_does_not_feed_itself() {
    let medium = Medium::new(Mode::Prompt);
    let itself = Arc::new(OnceLock::<Controller>::new());
    let controller = plain(medium.writer(64))
        .on_event({
            let itself = Arc::clone(&itself);
            move |_| {
                // As a probe in a connector would, on the collector's thread.
                assert!(!itself.wait().emit(&beat(0, 0)));
            }
        })
        .start()
        .unwrap();
    assert!(itself.set(controller.clone()).is_ok());
    controller.flush(PATIENCE).unwrap();
    let report = controller.shutdown(PATIENCE);
    assert!(report.dropped().get(LossReason::Reentrant) >= 1, "{report}");
    assert_eq!(report.delivered(), 0);
}

#[test]
fn forwarded_record_keeps_its_missing_timestamp() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    let mut builder = BatchBuilder::new();
    builder.push(&beat(3, 4)).unwrap();
    let batch = builder.take();
    for record in batch.records() {
        assert!(controller.emit_as_is(record));
    }
    controller.shutdown(PATIENCE);
    let received = medium.received();
    assert_eq!(received.timestamps, [None]);
    assert_eq!(received.beats, [beat(3, 4)]);
}

#[test]
fn setting_that_cannot_be_is_named() {
    let start =
        |set: fn(baler_monitoring::ControllerBuilder) -> baler_monitoring::ControllerBuilder| {
            set(plain(Medium::new(Mode::Prompt).writer(1)))
                .start()
                .unwrap_err()
        };
    let error = start(|builder| builder.chunk_records(0));
    assert!(matches!(
        error,
        StartError::TooSmall {
            setting: "chunk_records",
            ..
        }
    ));
    let error = start(|builder| builder.auto_chunks(Duration::from_micros(999)));
    assert_eq!(
        error.to_string(),
        "max_latency in milliseconds is 0, but must be at least 1"
    );
    let error = start(|builder| builder.queue_bytes(100));
    assert_eq!(
        error.to_string(),
        "queue_bytes is 100, but must be at least 4096"
    );
    let error = start(|builder| builder.chunk_bytes(100).max_chunk_bytes(99));
    assert_eq!(
        error.to_string(),
        "chunk_bytes (100) is above max_chunk_bytes (99)"
    );
}

#[test]
fn flush_that_cannot_be_confirmed_times_out_and_loses_nothing() {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(64)).start().unwrap();
    controller.emit(&beat(0, 0));
    assert_eq!(
        controller.flush(Duration::from_millis(50)),
        Err(FlushError::Timeout)
    );
    medium.set_mode(Mode::Prompt);
    medium.confirm(usize::MAX);
    assert_eq!(controller.shutdown(PATIENCE).delivered(), 1);
}

#[test]
fn earliest_deadline_of_several_shutdowns_counts() {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(64)).start().unwrap();
    controller.emit(&beat(0, 0));
    let patient = {
        let controller = controller.clone();
        thread::spawn(move || controller.shutdown(PATIENCE))
    };
    medium.await_chunks(1);
    let began = Instant::now();
    let report = controller.shutdown(Duration::from_millis(200));
    assert!(began.elapsed() < PATIENCE / 2);
    assert!(medium.is_closed(), "the collector itself made the report");
    assert_eq!(report.dropped().get(LossReason::Undelivered), 1);
    assert_eq!(patient.join().unwrap().to_string(), report.to_string());
}
