//! Writers that break, hang, refuse or panic, and a collector that has ended.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use baler_common::container::{
    ChunkHeader, ChunkSerializer, EncodeError, LossReason, NativeSerializer,
};
use baler_common::record::{FieldSource, ReadError, Record, RecordBatch, RowWriter, Schema};
use baler_common::transport::{Connection, ContainerKind, RetryPolicy};
use baler_monitoring::{Event, Overflow, ShutdownReport};

use super::support::{Medium, Mode, PATIENCE, await_that, beat, plain};

/// Tries again soon.
fn hasty() -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    policy.min_delay = Duration::from_millis(1);
    policy.max_delay = Duration::from_millis(10);
    policy
}

#[test]
fn what_is_emitted_while_the_medium_is_down_is_written_after_it_came_back() {
    let medium = Medium::new(Mode::Unreachable);
    let events = Arc::new(Mutex::new(Vec::new()));
    let controller = plain(medium.writer(4))
        .chunk_records(10)
        .retry(hasty())
        .on_event({
            let events = Arc::clone(&events);
            move |event| events.lock().unwrap().push(event.to_string())
        })
        .start()
        .unwrap();
    for number in 0..100 {
        assert!(controller.emit(&beat(0, number)));
    }
    await_that("an attempt that fails", || {
        controller.stats().outbox.broken >= 2
    });
    assert_eq!(controller.stats().outbox.connection, Connection::Closed);
    assert_eq!(controller.stats().delivered, 0);
    medium.set_mode(Mode::Prompt);
    controller.flush(PATIENCE).unwrap();
    assert_eq!(controller.stats().outbox.connection, Connection::Open);
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (100, 100));
    assert_eq!(medium.received().numbers(), (0..100).collect::<Vec<_>>());
    let events = events.lock().unwrap();
    assert!(
        events
            .iter()
            .any(|event| event.contains("unreachable (will retry)"))
    );
    assert_eq!(events.last().unwrap(), "connected to scripted");
}

#[test]
fn unconfirmed_chunks_are_sent_again_in_order_after_a_cut() {
    let medium = Medium::new(Mode::Held);
    let controller = plain(medium.writer(4))
        .chunk_records(10)
        .retry(hasty())
        .start()
        .unwrap();
    for number in 0..100 {
        controller.emit(&beat(0, number));
    }
    assert_eq!(medium.await_chunks(4).len(), 4);
    medium.set_mode(Mode::Prompt);
    medium.cut();
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (100, 100));
    assert_eq!(report.stats.outbox.retries, 4);
    assert_eq!(report.stats.outbox.reopened, 1);
    assert_eq!(medium.opened(), 2);
    let sent: Vec<_> = medium.chunks().iter().map(|chunk| chunk.ticket).collect();
    assert_eq!(sent[..8], [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(medium.received().numbers(), (0..100).collect::<Vec<_>>());
}

#[test]
fn refused_chunks_are_counted_and_listed_in_later_headers() {
    let medium = Medium::new(Mode::Refusing);
    let controller = plain(medium.writer(4)).chunk_records(10).start().unwrap();
    for number in 0..20 {
        controller.emit(&beat(0, number));
    }
    await_that("the refusal", || {
        controller.stats().dropped.get(LossReason::Refused) == 20
    });
    medium.set_mode(Mode::Prompt);
    controller.emit(&beat(0, 20));
    let report = controller.shutdown(PATIENCE);
    assert!(report.adds_up() && report.on_time, "{report}");
    assert_eq!(
        report.to_string(),
        "21 emitted = 1 delivered + 20 dropped (20 refused)"
    );
    let received = medium.received();
    let header = &received.headers[0];
    assert_eq!(header.identity.sequence, 2);
    assert_eq!(header.losses.get(LossReason::Refused), 20);
    let ranges = &header.lost_chunks;
    assert_eq!(
        (ranges[0].first_sequence, ranges[0].chunks, ranges.len()),
        (0, 2, 1)
    );
}

#[test]
fn writer_that_is_not_let_in_loses_everything_and_says_so() {
    let medium = Medium::new(Mode::Unauthorised);
    let controller = plain(medium.writer(4)).start().unwrap();
    controller.emit(&beat(0, 0));
    assert!(controller.flush(PATIENCE).is_err());
    assert_eq!(controller.stats().outbox.connection, Connection::Failed);
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.dropped().get(LossReason::Refused), 1);
    assert!(report.adds_up());
}

#[test]
fn retries_end_by_policy() {
    let medium = Medium::new(Mode::Unreachable);
    let mut policy = hasty();
    policy.max_attempts = Some(3);
    let controller = plain(medium.writer(4)).retry(policy).start().unwrap();
    controller.emit(&beat(0, 0));
    let lost = controller.flush(PATIENCE);
    assert_eq!(lost, Err(baler_monitoring::FlushError::Lost { records: 1 }));
    assert_eq!(controller.stats().dropped.get(LossReason::Undelivered), 1);
}

#[test]
fn shutdown_keeps_its_deadline_when_the_writer_hangs() {
    let medium = Medium::new(Mode::Stuck);
    let controller = plain(medium.writer(4)).chunk_records(10).start().unwrap();
    for number in 0..25 {
        controller.emit(&beat(0, number));
    }
    let began = Instant::now();
    let report = controller.shutdown(Duration::from_millis(300));
    let took = began.elapsed();
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!report.on_time);
    assert!(report.error.is_some());
    assert!(report.adds_up(), "{report}");
    assert_eq!(report.dropped().get(LossReason::Undelivered), 25);
    // Its later answers do not change the account any more.
    medium.set_mode(Mode::Prompt);
    await_that("the close", || medium.is_closed());
    assert_eq!(
        controller.shutdown(PATIENCE).to_string(),
        report.to_string()
    );
    assert_eq!(controller.stats().delivered, 0);
}

#[test]
fn shutdown_keeps_its_deadline_when_nothing_is_confirmed() {
    for mode in [Mode::Held, Mode::Unreachable] {
        let medium = Medium::new(mode);
        let controller = plain(medium.writer(2))
            .chunk_records(10)
            .unconfirmed_chunks(2)
            .retry(hasty())
            .start()
            .unwrap();
        for number in 0..1_000 {
            controller.emit(&beat(0, number));
        }
        let report = controller.shutdown(Duration::from_millis(300));
        assert!(!report.on_time);
        assert!(report.adds_up(), "{report}");
        assert_eq!(
            report.dropped().get(LossReason::Undelivered),
            1_000,
            "{mode:?}"
        );
        assert!(medium.is_closed());
    }
}

#[test]
fn writer_that_panics_is_reopened_and_nothing_is_lost() {
    let medium = Medium::new(Mode::Panicking);
    let controller = plain(medium.writer(4)).retry(hasty()).start().unwrap();
    controller.emit(&beat(0, 0));
    await_that("a panic", || controller.stats().outbox.broken >= 1);
    medium.set_mode(Mode::Prompt);
    controller.emit(&beat(0, 1));
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (2, 2));
    assert_eq!(medium.received().numbers(), [0, 1]);
}

/// Panics while its switch is on.
struct Panicking {
    panic: Arc<Mutex<bool>>,
    native: NativeSerializer,
}

impl ChunkSerializer for Panicking {
    fn container(&self) -> ContainerKind {
        ContainerKind::Native
    }

    fn serialize(
        &mut self,
        batch: &RecordBatch,
        header: &ChunkHeader,
        out: &mut Vec<u8>,
    ) -> Result<usize, EncodeError> {
        assert!(!*self.panic.lock().unwrap(), "as the test wants it");
        self.native.serialize(batch, header, out)
    }
}

#[test]
fn serializer_that_panics_loses_its_batch_only() {
    let panic = Arc::new(Mutex::new(false));
    let panics = Arc::new(Mutex::new(0));
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(4))
        .serializer(Panicking {
            panic: Arc::clone(&panic),
            native: NativeSerializer::default(),
        })
        .on_event({
            let panics = Arc::clone(&panics);
            move |event| {
                if let Event::Panicked { records, .. } = event {
                    *panics.lock().unwrap() += records;
                }
                // A hook that panics does no harm either.
                panic!("as the test wants it");
            }
        })
        .start()
        .unwrap();
    controller.emit(&beat(0, 0));
    controller.flush(PATIENCE).unwrap();
    // Poisons no lock of the collector: the test's own is not held while it panics.
    *panic.lock().unwrap() = true;
    controller.emit(&beat(0, 1));
    assert!(controller.flush(PATIENCE).is_err());
    *panic.lock().unwrap_or_else(|error| error.into_inner()) = false;
    panic.clear_poison();
    controller.emit(&beat(0, 2));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.stats.panics, 1);
    assert_eq!(
        report.to_string(),
        "3 emitted = 2 delivered + 1 dropped (1 not_encodable)"
    );
    assert_eq!(medium.received().numbers(), [0, 2]);
}

#[test]
fn blocked_threads_are_let_go_by_a_shutdown() {
    let medium = Medium::new(Mode::Stuck);
    let controller = plain(medium.writer(1))
        .chunk_records(10)
        .queue_bytes(4 << 10)
        .overflow(Overflow::Block)
        .start()
        .unwrap();
    let blocked: Vec<_> = (0..4)
        .map(|thread| {
            let controller = controller.clone();
            thread::spawn(move || {
                let mut number = 0;
                while controller.emit(&beat(thread, number)) {
                    number += 1;
                }
                number
            })
        })
        .collect();
    await_that("a full queue", || controller.stats().queue_bytes >= 4 << 10);
    let report = controller.shutdown(Duration::from_millis(300));
    let taken: u64 = blocked
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .sum();
    assert!(report.adds_up(), "{report}");
    assert_eq!(
        report.emitted(),
        taken + report.dropped().get(LossReason::Shutdown)
    );
    assert_eq!(report.dropped().get(LossReason::Undelivered), taken);
}

#[test]
fn records_that_the_queues_dropped_are_told() {
    let medium = Medium::new(Mode::Unreachable);
    let told = Arc::new(Mutex::new(0));
    let controller = plain(medium.writer(4))
        .chunk_records(10)
        .unconfirmed_chunks(1)
        .queue_bytes(4 << 10)
        .retry(hasty())
        .on_event({
            let told = Arc::clone(&told);
            move |event| {
                if let Event::Dropped { records, losses } = event {
                    let mut told = told.lock().unwrap();
                    *told += records;
                    assert_eq!(losses.get(LossReason::QueueFullNewest), *told);
                }
            }
        })
        .start()
        .unwrap();
    let dropped = (0..1_000).filter(|number| !controller.emit(&beat(0, *number)));
    let dropped = u64::try_from(dropped.count()).unwrap();
    assert!(dropped > 0);
    await_that("the event", || *told.lock().unwrap() == dropped);
}

/// Returns the report of a shutdown while nothing is confirmed, and the records that had been
/// reported as lost and as dropped when it returned.
fn told_by_a_shutdown() -> (ShutdownReport, u64, u64) {
    let medium = Medium::new(Mode::Held);
    let (lost, dropped) = (Arc::new(Mutex::new(0)), Arc::new(Mutex::new(0)));
    let controller = plain(medium.writer(4))
        .chunk_records(10)
        .unconfirmed_chunks(2)
        .queue_bytes(4 << 10)
        .on_event({
            let (lost, dropped) = (Arc::clone(&lost), Arc::clone(&dropped));
            move |event| match event {
                Event::Lost { records, .. } => *lost.lock().unwrap() += u64::from(*records),
                Event::Dropped { records, .. } => *dropped.lock().unwrap() += records,
                _ => {}
            }
        })
        .start()
        .unwrap();
    for number in 0..10 {
        controller.emit(&beat(0, number));
    }
    // The collector has just polled the queues, so it reports later drops later.
    medium.await_chunks(1);
    for number in 0..1_000 {
        controller.emit(&beat(0, number));
    }
    let report = controller.shutdown(Duration::from_millis(300));
    let (lost, dropped) = (*lost.lock().unwrap(), *dropped.lock().unwrap());
    (report, lost, dropped)
}

#[test]
fn what_is_lost_by_the_shutdown_is_told_before_its_report() {
    let by = Instant::now() + PATIENCE;
    loop {
        let (report, lost, dropped) = told_by_a_shutdown();
        assert!(!report.on_time && report.adds_up(), "{report}");
        let full = report.dropped().get(LossReason::QueueFullNewest);
        assert!(full > 0);
        if report.error.is_none() {
            assert_eq!(dropped, full);
            // Two chunks were unconfirmed; the rest was still queued.
            assert_eq!(lost, 20);
            return;
        }
        // The collector ends a moment before the deadline, and reports. If its thread did not run
        // in that moment, the deadline came first, and with it the report.
        assert!(Instant::now() < by, "it never ends in time: {report}");
    }
}

/// Panics while it is written.
struct Unwritable;

impl Record for Unwritable {
    fn schema() -> &'static Arc<Schema> {
        super::support::Beat::schema()
    }

    fn write_fields(&self, row: &mut RowWriter<'_>) {
        row.u32(1);
        panic!("as the test wants it");
    }

    fn read_fields(_: &mut FieldSource<'_>) -> Result<Self, ReadError> {
        Ok(Self)
    }
}

#[test]
fn record_that_panics_while_it_is_written_is_as_good_as_never_emitted() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(4)).start().unwrap();
    controller.emit(&beat(0, 0));
    let emitted = catch_unwind(AssertUnwindSafe(|| controller.emit(&Unwritable)));
    assert!(emitted.is_err(), "it is the application's own panic");
    controller.emit(&beat(0, 1));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.to_string(), "2 emitted = 2 delivered + 0 dropped");
    assert_eq!(medium.received().numbers(), [0, 1]);
}
