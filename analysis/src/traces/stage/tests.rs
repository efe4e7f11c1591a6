//! Broken invariants.

use baler_common::record::{BatchBuilder, DynamicRecord, Field, FieldType, Schema, Value};
use baler_common::transport::{Delivery, Origin, Token, Verdict};

use super::*;
use crate::Pipe;

/// One call of a trace of its own.
fn call(trace: i64, time: i64) -> DynamicRecord {
    let integers = ["traceId", "tin", "tout", "eoi", "ess"];
    let mut fields = vec![Field::new("operationSignature", FieldType::String)];
    fields.extend(integers.map(|name| Field::new(name, FieldType::I64)));
    let schema = Schema::new("call", fields).unwrap();
    let integers = [trace, time, time, 0, 0].map(Value::Signed);
    let mut values = vec![Value::String("a.b()".into())];
    values.extend(integers);
    DynamicRecord::new(schema.into(), None, values).unwrap()
}

fn parcel(record: &DynamicRecord) -> Parcel {
    let mut batch = BatchBuilder::new();
    batch.push_dynamic(record).unwrap();
    Parcel::of_batch(batch.take())
}

#[test]
fn a_wrong_count_of_waiting_records_ends_the_stage_and_acknowledges_nothing() {
    let mut stage = TraceStage::default();
    stage.accept(parcel(&call(1, 0))).unwrap();
    let mut state = lock(&stage.0);
    state.analysis.assembler.open.get_mut(&1).unwrap().cost += 1_000;
    drop(state);
    // The time of this call closes the first trace.
    let chunk = parcel(&call(2, i64::MAX)).chunk().clone();
    let delivery = Delivery {
        token: Token(7),
        bytes: bytes::Bytes::new(),
        meta: None,
        origin: Origin {
            endpoint: "test:".into(),
            lane: "0".into(),
            position: 0,
        },
        redelivered: false,
        attempts: 0,
    };
    let (done, verdicts) = crossbeam_channel::unbounded();
    let mut pipe = Pipe::spawn(1, stage).unwrap();
    pipe.accept(Parcel::delivered(chunk, None, delivery, done))
        .unwrap();
    let error = pipe.finish().unwrap_err();
    assert!(
        matches!(&error, AnalysisError::StagePanicked { message, .. } if message.contains("overflow")),
        "{error}"
    );
    let processed = verdicts.recv().unwrap();
    assert_eq!(
        (processed.token, processed.verdict),
        (Token(7), Verdict::Retry)
    );
}
