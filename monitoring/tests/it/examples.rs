//! The examples work as described.

use std::path::Path;

use baler_common::container::ChunkDecoder;
use baler_common::record::kieker::OperationExecutionRecord;
use baler_common::record::{Record, RecordBatch, read};
use baler_connector_file::{PathItem, read_path};
use baler_connector_testkit::{MemoryLimits, MemoryMedium};
use baler_monitoring::ShutdownReport;

use crate::probe::recording::{drain, execution, one_at_a_time, reconstruct};

#[expect(dead_code, reason = "`main` is not called")]
#[path = "../../examples/async_service.rs"]
mod async_service;
#[expect(dead_code, reason = "`main` is not called")]
#[path = "../../examples/own_record.rs"]
mod own_record;
#[expect(dead_code, reason = "`main` is not called")]
#[path = "../../examples/producer.rs"]
mod producer;

/// The records of one type, in order.
fn of_type<R: Record>(batches: &[RecordBatch]) -> Vec<R> {
    batches
        .iter()
        .flat_map(RecordBatch::records)
        .filter(|record| record.schema().name() == R::schema().name())
        .map(|record| read(record.fields()).unwrap())
        .collect()
}

fn assert_all_delivered(report: &ShutdownReport) {
    assert!(report.adds_up() && report.on_time, "{report}");
    assert_eq!(report.emitted(), report.delivered(), "{report}");
}

fn batches_in(folder: &Path) -> Vec<RecordBatch> {
    let mut decoder = ChunkDecoder::default();
    read_path(folder)
        .unwrap()
        .map(|item| match item.unwrap() {
            PathItem::Chunk(delivery) => decoder.decode(&delivery.bytes).unwrap().batch,
            PathItem::Damaged(damaged) => panic!("{damaged:?}"),
        })
        .collect()
}

#[test]
fn the_producer_leaves_its_calls_in_the_folder() {
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    assert_all_delivered(&producer::run(folder.path()).unwrap());
    let calls: Vec<OperationExecutionRecord> = of_type(&batches_in(folder.path()));
    let signatures: Vec<_> = calls
        .iter()
        .map(|call| call.operation_signature.as_str())
        .collect();
    assert_eq!(signatures, ["String it.examples.producer.greet(str)"; 3]);
}

#[test]
fn own_records_arrive_with_every_field() {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    assert_all_delivered(&own_record::run(Box::new(medium.writer())).unwrap());
    let batches = drain(&medium);
    assert_eq!(
        of_type::<own_record::Measurement>(&batches),
        own_record::measurements()
    );
}

#[test]
fn the_traces_of_the_service_follow_its_tasks() {
    let _alone = one_at_a_time();
    let medium = MemoryMedium::new(MemoryLimits::default());
    assert_all_delivered(&async_service::run(Box::new(medium.writer())).unwrap());
    let batches = drain(&medium);
    let calls: Vec<_> = batches
        .iter()
        .flat_map(RecordBatch::records)
        .filter(|record| record.schema() == OperationExecutionRecord::schema())
        .map(execution)
        .collect();
    let orders = vec!["order(price receipt(print))"; 8];
    let statistics = vec!["statistics"; 8];
    assert_eq!(reconstruct(&calls), [orders, statistics].concat());
}
