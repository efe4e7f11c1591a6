//! Every field of every message survives the way to a chunk and back.

use std::fmt::Debug;

use baler_common::record::AnyValue as Recorded;
use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{
    AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList, any_value::Value,
};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    Exemplar, ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram,
    HistogramDataPoint, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary,
    SummaryDataPoint, exemplar, exponential_histogram_data_point::Buckets, metric::Data,
    number_data_point, summary_data_point::ValueAtQuantile,
};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{
    ResourceSpans, ScopeSpans, Span, Status,
    span::{Event, Link},
};
use prost::Message;
use serde::Serialize;

use super::{Encoding, request};
use crate::config::Others;
use crate::convert::Otlp;
use crate::decode::{Form, Json, Protobuf, tests::decoded};
use crate::error::Malformed;
use crate::protocol::Signal;
use crate::writer::ChunkRecords;

fn any(value: Value) -> AnyValue {
    AnyValue { value: Some(value) }
}

fn array(values: Vec<AnyValue>) -> Value {
    Value::ArrayValue(ArrayValue { values })
}

fn list(values: Vec<KeyValue>) -> Value {
    Value::KvlistValue(KeyValueList { values })
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.into(),
        value: Some(any(value)),
        key_strindex: 0,
    }
}

/// Attributes of each type, with the values at which types end.
fn attributes() -> Vec<KeyValue> {
    let empty = AnyValue { value: None };
    let mut deep = array(vec![]);
    for _ in 0..31 {
        deep = array(vec![any(deep)]);
    }
    let scalars = vec![
        any(Value::StringValue("\"é\u{0}\"".into())),
        any(Value::StringValue(String::new())),
        any(Value::BoolValue(false)),
        any(Value::IntValue(i64::MIN)),
        any(Value::DoubleValue(0.1 + 0.2)),
        any(Value::DoubleValue(-0.0)),
        any(Value::DoubleValue(f64::MIN_POSITIVE)),
        any(Value::BytesValue(vec![0, 255])),
        empty.clone(),
    ];
    let of_all = vec![
        attribute("array", array(scalars.clone())),
        attribute("", Value::IntValue(i64::MAX)),
        KeyValue {
            key: "empty".into(),
            value: Some(empty),
            key_strindex: 0,
        },
    ];
    let mut attributes: Vec<_> = scalars
        .into_iter()
        .map(|value| KeyValue {
            key: "scalar".into(),
            value: Some(value),
            key_strindex: 0,
        })
        .collect();
    attributes.push(attribute("list", list(of_all)));
    attributes.push(attribute("no elements", array(vec![])));
    attributes.push(attribute("no entries", list(vec![])));
    let twice = [1, 2].map(|it| attribute("key", Value::IntValue(it)));
    attributes.push(attribute("twice", list(twice.to_vec())));
    let looks_special = attribute("bytesValue", Value::StringValue("AAE=".into()));
    attributes.push(attribute("looks special", list(vec![looks_special])));
    attributes.push(attribute("deep", deep));
    attributes
}

/// Numbers that JSON has no form for.
fn unusual() -> Vec<KeyValue> {
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let numbers = numbers.map(|it| any(Value::DoubleValue(it)));
    vec![attribute("unusual", array(numbers.to_vec()))]
}

fn resource() -> Resource {
    Resource {
        attributes: attributes(),
        dropped_attributes_count: 1,
        entity_refs: vec![EntityRef {
            schema_url: "entity".into(),
            r#type: "service".into(),
            id_keys: vec!["a".into(), "b".into()],
            description_keys: vec!["c".into()],
        }],
    }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: "scope".into(),
        version: "1".into(),
        attributes: attributes(),
        dropped_attributes_count: 2,
    }
}

const TRACE: [u8; 16] = *b"0123456789abcdef";

fn traces() -> ExportTraceServiceRequest {
    let span = |name: &str| Span {
        trace_id: TRACE.into(),
        span_id: b"ABCDEFGH".into(),
        trace_state: "a=b".into(),
        parent_span_id: b"abcdefgh".into(),
        flags: 0x301,
        name: name.into(),
        kind: 77,
        start_time_unix_nano: 1,
        end_time_unix_nano: u64::MAX,
        attributes: attributes(),
        dropped_attributes_count: u32::MAX,
        events: vec![Event {
            time_unix_nano: 3,
            name: "event".into(),
            attributes: attributes(),
            dropped_attributes_count: 4,
        }],
        dropped_events_count: 5,
        links: vec![Link {
            trace_id: TRACE.into(),
            span_id: b"ABCDEFGH".into(),
            trace_state: "c=d".into(),
            attributes: attributes(),
            dropped_attributes_count: 6,
            flags: 7,
        }],
        dropped_links_count: 8,
        status: Some(Status {
            message: "failed".into(),
            code: 2,
        }),
    };
    let small = Span {
        trace_id: TRACE.into(),
        span_id: b"ABCDEFGH".into(),
        ..Span::default()
    };
    let of = |schema_url: &str, spans| ScopeSpans {
        scope: Some(scope()),
        spans,
        schema_url: schema_url.into(),
    };
    ExportTraceServiceRequest {
        resource_spans: vec![
            ResourceSpans {
                resource: Some(resource()),
                scope_spans: vec![of("x", vec![span("1"), span("2")]), of("y", vec![small])],
                schema_url: "resource".into(),
            },
            ResourceSpans {
                resource: Some(Resource::default()),
                scope_spans: vec![ScopeSpans {
                    scope: Some(InstrumentationScope::default()),
                    spans: vec![span("3")],
                    schema_url: String::new(),
                }],
                schema_url: String::new(),
            },
        ],
    }
}

fn logs(body: Vec<KeyValue>) -> ExportLogsServiceRequest {
    let log = LogRecord {
        time_unix_nano: 1,
        observed_time_unix_nano: 2,
        severity_number: 24,
        severity_text: "FATAL4".into(),
        body: Some(any(list(body))),
        attributes: attributes(),
        dropped_attributes_count: 3,
        flags: 4,
        trace_id: TRACE.into(),
        span_id: b"ABCDEFGH".into(),
        event_name: "event".into(),
    };
    let empty = LogRecord {
        body: Some(AnyValue { value: None }),
        ..LogRecord::default()
    };
    ExportLogsServiceRequest {
        resource_logs: vec![ResourceLogs {
            resource: Some(resource()),
            scope_logs: vec![ScopeLogs {
                scope: Some(scope()),
                log_records: vec![log, empty, LogRecord::default()],
                schema_url: "logs".into(),
            }],
            schema_url: "resource".into(),
        }],
    }
}

fn metrics() -> ExportMetricsServiceRequest {
    let exemplars = vec![
        Exemplar {
            filtered_attributes: attributes(),
            time_unix_nano: 1,
            span_id: b"ABCDEFGH".into(),
            trace_id: TRACE.into(),
            value: Some(exemplar::Value::AsInt(-1)),
        },
        Exemplar {
            value: Some(exemplar::Value::AsDouble(0.5)),
            ..Exemplar::default()
        },
        Exemplar::default(),
    ];
    let number = |value| NumberDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        exemplars: exemplars.clone(),
        flags: 1,
        value,
    };
    let numbers = vec![
        number(Some(number_data_point::Value::AsInt(i64::MIN))),
        number(Some(number_data_point::Value::AsDouble(1e300))),
        number(None),
        NumberDataPoint::default(),
    ];
    let histogram = HistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(-1.5),
        bucket_counts: vec![1, u64::MAX],
        explicit_bounds: vec![0.25],
        exemplars: exemplars.clone(),
        flags: 1,
        min: Some(0.0),
        max: Some(4.0),
    };
    let exponential = ExponentialHistogramDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: Some(4.0),
        scale: -5,
        zero_count: 6,
        positive: Some(Buckets {
            offset: -7,
            bucket_counts: vec![8, 9],
        }),
        negative: Some(Buckets::default()),
        flags: 1,
        exemplars: exemplars.clone(),
        min: Some(10.0),
        max: Some(11.0),
        zero_threshold: 0.125,
    };
    let summary = SummaryDataPoint {
        attributes: attributes(),
        start_time_unix_nano: 1,
        time_unix_nano: 2,
        count: 3,
        sum: 4.0,
        quantile_values: vec![ValueAtQuantile {
            quantile: 0.5,
            value: 6.0,
        }],
        flags: 1,
    };
    let sum = |is_monotonic, data_points| Sum {
        data_points,
        aggregation_temporality: 2,
        is_monotonic,
    };
    let data = [
        Data::Gauge(Gauge {
            data_points: numbers.clone(),
        }),
        Data::Sum(sum(true, numbers.clone())),
        Data::Sum(sum(false, numbers)),
        Data::Histogram(Histogram {
            data_points: vec![histogram, HistogramDataPoint::default()],
            aggregation_temporality: 1,
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![exponential, ExponentialHistogramDataPoint::default()],
            aggregation_temporality: 1,
        }),
        Data::Summary(Summary {
            data_points: vec![summary, SummaryDataPoint::default()],
        }),
    ];
    let metrics = data.map(|data| Metric {
        name: "metric".into(),
        description: "what it is".into(),
        unit: "s".into(),
        metadata: attributes(),
        data: Some(data),
    });
    ExportMetricsServiceRequest {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(resource()),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(scope()),
                metrics: metrics.into(),
                schema_url: "metrics".into(),
            }],
            schema_url: "resource".into(),
        }],
    }
}

fn assert_survives<F: Form, M: Debug + Message + Default + PartialEq>(
    signal: Signal,
    message: &M,
    body: &[u8],
) {
    let (chunks, rejected) = decoded::<F>(signal, body);
    assert_eq!((chunks.len(), rejected.len()), (1, 0));
    let records = ChunkRecords::of(&chunks[0], Others::Refuse).unwrap();
    let all = records.read(signal, 0..records.len(signal)).unwrap();
    let again = request(signal, all, Encoding::Protobuf).unwrap();
    assert_eq!(&M::decode(&*again).unwrap(), message);
    assert_eq!(again, message.encode_to_vec());
}

/// Checks a request in both forms, and that in files it is the JSON of the messages' library.
fn assert_all_survive<M: Debug + Message + Default + PartialEq + Serialize>(
    signal: Signal,
    message: &M,
) {
    assert_survives::<Protobuf, _>(signal, message, &message.encode_to_vec());
    let json = serde_json::to_value(message).unwrap();
    let body = json.to_string();
    assert_survives::<Json, _>(signal, message, body.as_bytes());
    let (chunks, _) = decoded::<Json>(signal, body.as_bytes());
    let records = ChunkRecords::of(&chunks[0], Others::Refuse).unwrap();
    let all = records.read(signal, 0..records.len(signal)).unwrap();
    let line = request(signal, all, Encoding::Json).unwrap();
    assert_eq!(
        serde_json::from_slice::<serde_json::Value>(&line).unwrap(),
        json
    );
}

#[test]
fn every_field_survives() {
    assert_all_survive(Signal::Traces, &traces());
    assert_all_survive(Signal::Logs, &logs(attributes()));
    assert_all_survive(Signal::Metrics, &metrics());
}

#[test]
fn arrays_and_lists_are_plain_json() {
    let values = vec![
        any(Value::StringValue("a".into())),
        any(Value::IntValue(1)),
        any(Value::DoubleValue(1.0)),
        any(Value::BytesValue(vec![0, 1])),
        any(Value::DoubleValue(f64::NEG_INFINITY)),
    ];
    let tags = list(vec![attribute("tags", array(values)), KeyValue::default()]);
    let twice = [1, 2].map(|it| attribute("key", Value::IntValue(it)));
    let texts = [tags, list(twice.to_vec())].map(|it| {
        let Recorded::Json(text) = Recorded::from_otlp(any(it)).unwrap() else {
            panic!("it is JSON");
        };
        text.into_owned()
    });
    assert_eq!(
        texts,
        [
            r#"{"tags":["a",1,1.0,{"bytesValue":"AAE="},{"doubleValue":"-Infinity"}],"":null}"#,
            r#"{"kvlistValue":[["key",1],["key",2]]}"#,
        ]
    );
}

#[test]
fn json_of_other_programs_is_understood() {
    let other = |text: &str| Recorded::Json(text.to_owned().into()).into_otlp();
    let read = other(r#"[18446744073709551615,{"a":{}},1e3]"#).unwrap();
    let expected = array(vec![
        any(Value::StringValue("18446744073709551615".into())),
        any(list(vec![attribute("a", list(vec![]))])),
        any(Value::DoubleValue(1000.0)),
    ]);
    assert_eq!(read, any(expected));
    assert_eq!(other("[1,").unwrap_err(), Malformed::Value);
    let looks_special = attribute("bytesValue", Value::StringValue("?".into()));
    assert_eq!(
        other(r#"{"bytesValue":"?"}"#).unwrap(),
        any(list(vec![looks_special]))
    );
}

#[test]
fn numbers_that_json_lacks_survive_within_arrays() {
    let message = logs(unusual()).encode_to_vec();
    let (chunks, _) = decoded::<Protobuf>(Signal::Logs, &message);
    let records = ChunkRecords::of(&chunks[0], Others::Refuse).unwrap();
    let all = records.read(Signal::Logs, 0..3).unwrap();
    assert_eq!(
        request(Signal::Logs, all, Encoding::Protobuf).unwrap(),
        message
    );
}
