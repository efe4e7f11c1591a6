//! The examples work as described.

use std::path::Path;

#[cfg(feature = "sampling")]
use baler_common::record::sampling::{BackToBack, Midpoint, ThreadSampleRecord};
use baler_common::record::{Record, RecordBatch, read};
use baler_connector_file::{PathItem, read_path};
use baler_connector_kieker::container;
use baler_connector_kieker::types::OperationExecutionRecord;
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
#[cfg(feature = "sampling")]
#[expect(dead_code, reason = "`main` is not called")]
#[path = "../../examples/sampled.rs"]
mod sampled;

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
    let mut decoder = container::decoder();
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

/// The estimates of a sampler beside the durations that probes measured. A call is estimated too
/// long or too short by at most an interval, and the article's rule loses at most two. The sampler
/// begins late by up to one more.
#[cfg(feature = "sampling")]
#[test]
fn samples_show_the_times_of_operations() {
    let _alone = one_at_a_time();
    let folder = tempfile::tempdir().unwrap();
    assert_all_delivered(&sampled::run(folder.path()).unwrap());
    let batches = batches_in(folder.path());
    let calls: Vec<OperationExecutionRecord> = of_type(&batches);
    let samples: Vec<ThreadSampleRecord> = of_type(&batches);
    assert!(samples.iter().all(|it| it.thread == 1), "{samples:?}");
    let longest = samples.iter().map(|it| it.interval).max().unwrap();
    let midpoint = Midpoint::of(&samples).times;
    let back_to_back = BackToBack::of(&samples).times;
    for (planted, times) in [(500, 1), (100, 3), (50, 2), (1, 3)] {
        let operation = format!("void Demo.method{planted}ms()");
        let measured = calls
            .iter()
            .filter(|it| it.operation_signature == operation);
        let measured: u64 = measured.map(|it| it.tout.abs_diff(it.tin)).sum();
        assert!(
            measured >= times * planted * 1_000_000,
            "{operation}: {measured}"
        );
        let better = midpoint.get(&*operation).map_or(0, |it| it.nanoseconds);
        let article = back_to_back.get(&*operation).copied().unwrap_or(0);
        assert!(
            better.abs_diff(measured) <= (times + 1) * longest,
            "{operation}: {better} for {measured}, with intervals up to {longest}"
        );
        assert!(
            article <= measured + longest && measured <= article + 2 * (times + 1) * longest,
            "{operation}: {article} for {measured}, with intervals up to {longest}"
        );
    }
    let within = samples
        .iter()
        .filter(|it| it.caller() == Some("void Demo.runCode()"));
    assert!(within.count() >= samples.len() - 3, "{samples:?}");
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
