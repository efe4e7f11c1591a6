use baler_common::record::BatchBuilder;

use super::super::Workload;
use super::*;

#[test]
fn it_is_kiekers_record_and_says_what_the_call_says() {
    assert_eq!(Execution::schema(), OperationExecutionRecord::schema());
    let mut workload = Workload::new(1);
    let calls: Vec<_> = workload.by_ref().take(1_000).collect();
    let mut executions = Executions::new(workload.names());
    let mut builder = BatchBuilder::new();
    for call in &calls {
        builder.push(executions.of(call)).unwrap();
    }
    let batch = builder.take();
    let read: Vec<OperationExecutionRecord> = batch.read().map(Result::unwrap).collect();
    let expected = calls.iter().map(|call| workload.names().plain(call));
    assert!(read.iter().map(PlainCall::from).eq(expected));
    let timestamps = batch.records().map(|record| record.timestamp().unwrap());
    assert!(timestamps.eq(calls.iter().map(|call| call.tout)));
}

#[test]
#[should_panic(expected = "index out of bounds")]
fn a_call_of_another_workload_gets_no_record() {
    let names = Workload::new(1).names().clone();
    let call = Call {
        operation: names.operations.len(),
        ..Call::default()
    };
    Executions::new(&names).of(&call);
}
