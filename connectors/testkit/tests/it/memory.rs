//! The fault switches of the medium in memory.

use std::time::{Duration, Instant};

use baler_common::transport::{
    ChunkReader, ChunkWriter, Outcome, Received, RejectReason, RetryClass, Verdict,
};
use baler_connector_testkit::{ChunkSource, MemoryMedium};

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

#[test]
fn refused_chunk_is_not_delivered() {
    let medium = MemoryMedium::default();
    let mut writer = medium.writer();
    writer.reopen(soon()).unwrap();
    medium.refuse_next(RetryClass::Final);
    let mut source = ChunkSource::new(1);
    for chunk in source.take(2) {
        writer.offer(chunk).unwrap();
    }
    let mut delivery_reports = Vec::new();
    writer.delivery_reports(&mut delivery_reports).unwrap();
    let [first, second] = delivery_reports.as_slice() else {
        panic!("two reports: {delivery_reports:?}");
    };
    assert!(matches!(&first.outcome, Outcome::Refused(error) if error.class == RetryClass::Final));
    assert!(matches!(second.outcome, Outcome::Confirmed));
    assert_eq!(medium.len(), 1);
}

#[test]
fn unreachable_medium_breaks_writers_until_it_is_back() {
    let medium = MemoryMedium::default();
    let mut writer = medium.writer();
    writer.reopen(soon()).unwrap();
    medium.set_unreachable(true);
    let rejected = writer.offer(ChunkSource::new(1).next(0, 50)).unwrap_err();
    assert!(matches!(rejected.reason, RejectReason::Broken(_)));
    assert!(writer.reopen(soon()).unwrap_err().is_retryable());
    medium.set_unreachable(false);
    writer.reopen(soon()).unwrap();
    writer.offer(rejected.chunk).unwrap();
    assert_eq!(medium.len(), 1);
}

#[test]
fn ended_medium_ends_only_when_everything_is_settled() {
    let medium = MemoryMedium::default();
    let mut writer = medium.writer();
    writer.reopen(soon()).unwrap();
    writer.offer(ChunkSource::new(1).next(0, 50)).unwrap();
    medium.end();
    let mut reader = medium.reader();
    let Received::Chunk(delivery) = reader.receive(soon()).unwrap() else {
        panic!("a chunk is there");
    };
    let soon_over = Instant::now() + Duration::from_millis(20);
    assert!(matches!(reader.receive(soon_over).unwrap(), Received::Idle));
    reader.settle(delivery.token, Verdict::Ack).unwrap();
    assert!(matches!(reader.receive(soon()).unwrap(), Received::End));
}
