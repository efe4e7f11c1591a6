use baler_common::record::BatchBuilder;
use baler_common::record::kieker::OperationExecutionRecord;

use super::*;

fn holds(text: &str) -> Result<bool, String> {
    let record = OperationExecutionRecord {
        operation_signature: "void shop.Cart.add(int)".into(),
        trace_id: 17,
        tin: 5,
        session_id: "s".into(),
        tout: 6,
        hostname: "h".into(),
        eoi: 0,
        ess: 0,
    };
    let mut batch = BatchBuilder::new();
    batch.push(&record).unwrap();
    let batch = batch.take();
    let record = batch.records().next().unwrap();
    Condition::new(text).unwrap().holds(record, None)
}

#[test]
fn expressions_see_fields_type_and_timestamp() {
    for (text, expected) in [
        ("traceId == 17", true),
        ("traceId > 17", false),
        ("traceId < 17.5 && tin + 1 == 6", true),
        ("operationSignature.contains('Cart')", true),
        ("operationSignature.startsWith('int')", false),
        ("type.endsWith('OperationExecutionRecord')", true),
        ("timestamp == null || timestamp > 0", true),
        ("fields['traceId'] == 17", true),
        ("has(fields.eoi) && !has(fields.nothing)", true),
        ("traceId in [1, 17]", true),
    ] {
        assert_eq!(holds(text), Ok(expected), "{text}");
    }
}

#[test]
fn a_record_that_lacks_a_field_does_not_match() {
    for text in ["nothing == 1", "fields.nothing == 1", "producer == 'x'"] {
        assert_eq!(holds(text), Ok(false), "{text}");
    }
    assert_eq!(holds("traceId == 17 || nothing == 1"), Ok(true));
}

#[test]
fn what_cannot_be_said_tells_why() {
    let error = holds("traceId").unwrap_err();
    assert_eq!(error, "the result is int, not a bool");
    assert!(holds("traceId + 'x' == 'y'").is_err());
    assert!(holds("traceId / 0 == 1").is_err());
}

#[test]
fn what_is_no_expression_is_told_with_its_place() {
    let error = Condition::new("traceId ==").err().unwrap().message;
    assert!(
        error.contains("--where `traceId ==`: line 1, column "),
        "{error}"
    );
    assert!(Condition::new("").is_err());
}
