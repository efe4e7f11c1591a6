use baler_common::record::ReadError;

use super::*;
use crate::queue::KIND_CALL;

#[test]
fn calls_become_records_with_their_fields() {
    let mut calls = CallConverter::new(0, Interned::new("host"));
    let mut batch = BatchBuilder::new();
    let position = (3 << 32) | 4;
    for kind in [KIND_CALL, KIND_DURATION] {
        let call = [kind, 7, 1, 2, position];
        calls.clear();
        calls.add(call);
        calls.add(call);
        let (added, result) = calls.append_to(&mut batch, record_type(call));
        assert_eq!((added, result), (2, Ok(())));
    }
    let batch = batch.take();
    let records: Result<Vec<OperationExecutionRecord>, ReadError> = batch.read().collect();
    let records = records.unwrap();
    assert_eq!(records.len(), 2);
    for record in records {
        let place = (record.trace_id, record.eoi, record.ess);
        assert_eq!(place, (7, 3, 4));
        assert_eq!(record.hostname, "host");
        assert!(record.tin <= record.tout);
    }
    let durations: Result<Vec<DurationRecord>, ReadError> = batch.read().collect();
    assert_eq!(durations.unwrap().len(), 2);
    let times = batch.records().map(|record| record.timestamp());
    assert!(times.into_iter().all(|time| time.is_some()));
}
