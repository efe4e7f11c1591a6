//! The fields of call sites as typed fields of records.

use baler_common::record::{FieldType, Value};
use tracing::field::Empty;
use tracing::{info_span, instrument};

use super::support::Recording;

#[test]
fn fields_have_the_types_of_their_values() {
    let recording = Recording::start();
    let path = String::from("/orders");
    drop(info_span!(
        target: "shop::orders",
        "order",
        count = 3_u64,
        delta = -4,
        share = 0.5,
        is_new = true,
        path,
        items = ?[1, 2],
        from = %std::net::Ipv4Addr::LOCALHOST,
    ));
    let records = recording.finish();
    records.assert_paired();
    let names: Vec<_> = records.0.iter().map(|it| &*it.type_name).collect();
    assert_eq!(names, ["shop::orders::order.start", "shop::orders::order"]);
    for record in &records.0 {
        for (name, field_type, value) in [
            ("count", FieldType::U64, Value::Unsigned(3)),
            ("delta", FieldType::I64, Value::Signed(-4)),
            ("share", FieldType::F64, Value::F64(0.5)),
            ("is_new", FieldType::Bool, Value::Bool(true)),
            ("path", FieldType::String, Value::from("/orders")),
            ("items", FieldType::String, Value::from("[1, 2]")),
            ("from", FieldType::String, Value::from("127.0.0.1")),
        ] {
            assert_eq!(record.fields[name], (field_type.optional(), value));
        }
    }
    let end = records.end("order");
    assert_eq!(end.text("operationSignature"), "shop.orders.order()");
    assert_eq!(end.text("hostname"), "test-host");
}

#[test]
fn fields_recorded_later_are_in_the_record_of_the_end() {
    let recording = Recording::start();
    for status in [200_u64, 404] {
        let span = info_span!("late", path = "/", status = Empty, never = Empty);
        span.record("status", status);
        span.record("path", "/again");
    }
    let records = recording.finish();
    records.assert_paired();
    let starts = records.starts();
    // At first the type of the field is not known; later it is.
    assert!(!starts[0].has("status"));
    assert_eq!(starts[1].value("status"), &Value::Null);
    assert_eq!(starts[1].text("path"), "/");
    let ends = records.ends();
    let statuses: Vec<_> = ends.iter().map(|it| it.unsigned("status")).collect();
    assert_eq!(statuses, [200, 404]);
    assert!(
        ends.iter()
            .all(|it| it.text("path") == "/again" && !it.has("never"))
    );
}

#[test]
fn a_field_with_values_of_two_types_becomes_text() {
    let recording = Recording::start();
    let span = info_span!("mixed", value = 1);
    span.record("value", "many");
    drop(span);
    drop(info_span!("other"));
    let records = recording.finish();
    assert_eq!(records.starts()[0].signed("value"), 1);
    assert_eq!(records.end("mixed").text("value"), "many");
}

#[test]
fn fields_named_like_fields_of_all_spans_are_kept() {
    let recording = Recording::start();
    drop(info_span!("clash", name = "mine", traceId = 7));
    let records = recording.finish();
    let end = records.end("clash");
    assert_eq!(end.text("name_"), "mine");
    assert_eq!(end.signed("traceId_"), 7);
}

#[instrument(level = "debug", fields(user.id = 7))]
fn instrumented(first: u32, second: &str) -> usize {
    second.len() + usize::try_from(first).unwrap()
}

#[test]
fn instrumented_functions_have_their_arguments() {
    let recording = Recording::start();
    assert_eq!(instrumented(1, "ab"), 3);
    let records = recording.finish();
    let end = records.end("instrumented");
    assert_eq!((end.unsigned("first"), end.text("second")), (1, "ab"));
    assert_eq!((end.signed("user.id"), end.text("level")), (7, "DEBUG"));
}

#[test]
fn a_type_that_is_not_possible_loses_its_attributes_and_is_counted() {
    const LONG: &str = match std::str::from_utf8(&[b'x'; 1_100]) {
        Ok(text) => text,
        Err(_) => "",
    };
    let recording = Recording::start();
    let lost = recording.lost.clone();
    drop(info_span!(target: LONG, "long", value = 1));
    let records = recording.finish_with_losses();
    records.assert_paired();
    assert_eq!((records.ends().len(), lost.count()), (1, 2));
}
