//! Chunks and records that are too large, and records that no container holds.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use baler_common::container::LossReason;
use baler_common::record::{
    DynamicRecord, Field, FieldSource, FieldType, ReadError, Record, RowWriter, Schema, Value, read,
};
use baler_connector_kieker::container::{self, KiekerSerializer};
use baler_monitoring::{Controller, FlushError, Quarantined};

use super::support::{Beat, Medium, Mode, PATIENCE, assert_chunks_add_up, beat, plain};

/// A record whose text no encoding makes small.
fn large(number: u64, bytes: usize) -> Beat {
    let mut noise = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut record = beat(0, number);
    while record.text.len() < bytes {
        noise = noise
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        // Digits in lower case would be packed.
        record.text.push_str(&format!("{noise:016X}"));
    }
    record
}

fn hook() -> (
    Arc<Mutex<Vec<Quarantined>>>,
    impl FnMut(&Quarantined) + Send + 'static,
) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let hook = {
        let seen = Arc::clone(&seen);
        move |quarantined: &Quarantined| seen.lock().unwrap().push(quarantined.clone())
    };
    (seen, hook)
}

#[test]
fn chunk_above_the_cap_is_split_by_halving() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .chunk_records(64)
        .chunk_bytes(20_000)
        .max_chunk_bytes(20_000)
        .start()
        .unwrap();
    // The first chunk, with small records, sets the estimate, so the second one is far too large.
    for number in 0..64 {
        controller.emit(&beat(0, number));
    }
    for number in 64..128 {
        controller.emit(&large(number, 1_000));
    }
    let report = controller.shutdown(PATIENCE);
    assert_eq!(
        (report.emitted(), report.delivered()),
        (128, 128),
        "{report}"
    );
    assert!(report.stats.splits >= 1);
    assert_chunks_add_up(&report);
    assert!(
        medium
            .chunks()
            .iter()
            .all(|chunk| chunk.bytes.len() <= 20_000)
    );
    let received = medium.received();
    assert_eq!(received.numbers(), (0..128).collect::<Vec<_>>());
    for (number, header) in received.headers.iter().enumerate() {
        assert_eq!(header.identity.sequence, u64::try_from(number).unwrap());
    }
    assert!(received.headers.last().unwrap().last_of_epoch);
}

#[test]
fn medium_with_a_smaller_limit_gets_smaller_chunks() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer_with_limit(64, 5_000)).start().unwrap();
    for number in 0..32 {
        controller.emit(&large(number, 1_000));
    }
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (32, 32), "{report}");
    assert!(
        medium
            .chunks()
            .iter()
            .all(|chunk| chunk.bytes.len() <= 5_000)
    );
}

/// Has a limit that its capability does not contain.
fn deceiving(mode: Mode) -> (Medium, Controller) {
    let medium = Medium::new(mode);
    medium.limit(5_000);
    let controller = plain(medium.writer(64))
        .wait_time(Duration::from_secs(3_600))
        .start()
        .unwrap();
    for number in 0..32 {
        controller.emit(&large(number, 1_000));
    }
    (medium, controller)
}

#[test]
fn last_chunk_that_the_medium_finds_too_large_has_a_successor_that_says_so() {
    let (medium, controller) = deceiving(Mode::Prompt);
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (32, 32), "{report}");
    assert!(report.stats.chunks_given_up > 0, "{report}");
    assert_chunks_add_up(&report);
    let received = medium.received();
    assert_eq!(received.numbers(), (0..32).collect::<Vec<_>>());
    let last: Vec<_> = received.headers.iter().map(|it| it.last_of_epoch).collect();
    assert_eq!(last.iter().position(|last| *last), Some(last.len() - 1));
    // Every missing number is listed, so that no consumer takes it for a loss on the way.
    let header = received.headers.last().unwrap();
    let listed: u64 = header.lost_chunks.iter().map(|range| range.chunks).sum();
    let came = u64::try_from(received.headers.len()).unwrap();
    assert_eq!(listed + came, header.identity.sequence + 1);
}

#[test]
fn flush_waits_for_the_pieces_of_a_chunk_that_the_medium_finds_too_large() {
    let (medium, controller) = deceiving(Mode::Held);
    assert_eq!(
        controller.flush(Duration::from_millis(300)),
        Err(FlushError::Timeout)
    );
    medium.await_chunks(8);
    medium.set_mode(Mode::Prompt);
    medium.confirm(usize::MAX);
    controller.flush(PATIENCE).unwrap();
    assert_eq!(controller.stats().delivered, 32);
    assert!(controller.shutdown(PATIENCE).adds_up());
}

#[test]
fn single_giant_record_is_put_aside_and_named() {
    let (seen, hook) = hook();
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .chunk_bytes(10_000)
        .max_chunk_bytes(10_000)
        .quarantine(hook)
        .start()
        .unwrap();
    controller.emit(&beat(0, 0));
    // Larger than a block of the queue, too.
    let giant = large(1, 100_000);
    assert!(controller.emit(&giant));
    controller.emit(&beat(0, 2));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(
        report.to_string(),
        "3 emitted = 2 delivered + 1 dropped (1 too_large)"
    );
    assert_eq!(report.stats.quarantined, 1);
    assert_eq!(medium.received().numbers(), [0, 2]);
    let seen = seen.lock().unwrap();
    let [quarantined] = seen.as_slice() else {
        panic!("{seen:?}")
    };
    assert_eq!(&*quarantined.record, "test.Beat");
    assert_eq!(quarantined.reason, LossReason::TooLarge);
    assert_eq!(quarantined.limit_bytes, 10_000);
    assert!(quarantined.size_bytes > 10_000);
    let chunk = container::decoder().decode(&quarantined.chunk).unwrap();
    let record = chunk.batch.records().next().unwrap();
    assert_eq!(read::<Beat>(record.fields()), Ok(giant));
}

#[test]
fn record_above_the_whole_queue_is_dropped_at_once() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .queue_bytes(64 << 10)
        .start()
        .unwrap();
    assert!(!controller.emit(&large(0, 100_000)));
    assert!(controller.emit(&large(1, 60_000)));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(
        report.to_string(),
        "2 emitted = 1 delivered + 1 dropped (1 too_large)"
    );
    assert_eq!(report.stats.queue_bytes, 0, "nothing stays charged");
}

/// Has one schema and writes another one.
struct Liar;

impl Record for Liar {
    fn schema() -> &'static Arc<Schema> {
        static SCHEMA: std::sync::OnceLock<Arc<Schema>> = std::sync::OnceLock::new();
        SCHEMA.get_or_init(|| {
            let fields = vec![Field::new("number", FieldType::U64)];
            Arc::new(Schema::new("test.Liar", fields).unwrap())
        })
    }

    fn write_fields(&self, row: &mut RowWriter<'_>) {
        row.bool(true);
    }

    fn read_fields(_: &mut FieldSource<'_>) -> Result<Self, ReadError> {
        Ok(Self)
    }
}

#[test]
fn record_that_does_not_follow_its_schema_is_put_aside() {
    let (seen, hook) = hook();
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).quarantine(hook).start().unwrap();
    controller.emit(&beat(0, 0));
    controller.emit(&Liar);
    controller.emit(&beat(0, 1));
    let report = controller.shutdown(PATIENCE);
    assert_eq!(
        report.to_string(),
        "3 emitted = 2 delivered + 1 dropped (1 not_encodable)"
    );
    let seen = seen.lock().unwrap();
    assert_eq!(&*seen[0].record, "test.Liar");
    assert_eq!(&*seen[0].problem, "the row does not follow its schema");
}

#[test]
fn type_that_the_container_cannot_hold_does_not_take_others_with_it() {
    let (seen, hook) = hook();
    let medium = Medium::new(Mode::Prompt);
    let controller = Controller::builder(medium.writer(64))
        .serializer(KiekerSerializer::default())
        .wait_time(Duration::from_secs(3_600))
        .quarantine(hook)
        .start()
        .unwrap();
    let fields = vec![Field::new("values", FieldType::U8.optional().list())];
    let schema = Arc::new(Schema::new("test.Lists", fields).unwrap());
    let lists = DynamicRecord::new(schema, None, vec![Value::List(vec![Value::Null])]).unwrap();
    for _ in 0..10 {
        controller.emit_as_is(lists.as_ref());
    }
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (11, 1), "{report}");
    assert_eq!(report.dropped().get(LossReason::NotEncodable), 10);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.len(), seen[0].records), (1, 10));
    let problem = "the container kieker cannot hold test.Lists.values of type list<optional<u8>>";
    assert_eq!(&*seen[0].problem, problem);
    let chunk = container::decoder().decode(&seen[0].chunk).unwrap();
    assert_eq!(chunk.batch.len(), 10);
}

/// A record of a type that no catalog knows.
fn own(field: &str, number: i64) -> DynamicRecord {
    let fields = vec![Field::new(field, FieldType::I64)];
    let schema = Arc::new(Schema::new("test.Own", fields).unwrap());
    DynamicRecord::new(schema, None, vec![Value::Signed(number)]).unwrap()
}

#[test]
fn two_versions_of_a_type_go_into_two_chunks_of_kieker() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64))
        .serializer(KiekerSerializer::default())
        .start()
        .unwrap();
    for number in 0..10 {
        controller.emit_as_is(own("before", number).as_ref());
        controller.emit_as_is(own("after", number).as_ref());
    }
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (20, 20), "{report}");
    assert_eq!(medium.chunks().len(), 2);
}

#[test]
fn chunk_of_kieker_that_the_medium_finds_too_large_is_split_whatever_its_types() {
    let medium = Medium::new(Mode::Prompt);
    medium.limit(1_000);
    let controller = plain(medium.writer(64))
        .serializer(KiekerSerializer::default())
        .wait_time(Duration::from_secs(3_600))
        .start()
        .unwrap();
    let record = own("number", 7);
    for _ in 0..200 {
        controller.emit_as_is(record.as_ref());
    }
    let report = controller.shutdown(PATIENCE);
    let delivered = (report.emitted(), report.delivered());
    assert_eq!(delivered, (200, 200), "{report}");
    assert!(medium.chunks().len() >= 4);
}

/// Emits another record while it is written.
struct Nested<'a>(&'a Controller);

impl Record for Nested<'_> {
    fn schema() -> &'static Arc<Schema> {
        Beat::schema()
    }

    fn write_fields(&self, row: &mut RowWriter<'_>) {
        assert!(self.0.emit(&beat(1, 1)));
        beat(0, 0).write_fields(row);
    }

    fn read_fields(_: &mut FieldSource<'_>) -> Result<Self, ReadError> {
        Err(ReadError::Value {
            found: "".into(),
            wanted: "".into(),
        })
    }
}

#[test]
fn record_emitted_while_another_is_built_is_delivered_too() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    assert!(controller.emit(&Nested(&controller)));
    let report = controller.shutdown(PATIENCE);
    assert_eq!((report.emitted(), report.delivered()), (2, 2));
    let mut numbers = medium.received().numbers();
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1]);
}

/// Emits when the thread's own storage is being destroyed.
struct Last(Controller);

impl Drop for Last {
    fn drop(&mut self) {
        self.0.emit(&beat(0, 1));
    }
}

thread_local! {
    static LAST: std::cell::RefCell<Option<Last>> = const { std::cell::RefCell::new(None) };
}

#[test]
fn record_emitted_while_the_thread_ends_is_delivered_too() {
    let medium = Medium::new(Mode::Prompt);
    let controller = plain(medium.writer(64)).start().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Registered first, so destroyed at another time than the queue's storage.
            LAST.with(|last| last.replace(Some(Last(controller.clone()))));
            controller.emit(&beat(0, 0));
        });
    });
    // The scope may return before the thread's storage is destroyed.
    super::support::await_that("the last emit", || controller.stats().emitted == 2);
    let report = controller.shutdown(PATIENCE);
    assert_eq!(report.delivered(), 2);
}
