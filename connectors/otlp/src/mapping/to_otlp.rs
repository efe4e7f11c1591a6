//! Records to OTLP's messages.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{self as common, InstrumentationScope};
use opentelemetry_proto::tonic::logs::v1::{LogRecord, ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    self as metrics, ResourceMetrics, ScopeMetrics, exemplar,
    exponential_histogram_data_point as exponential, metric::Data, number_data_point,
    summary_data_point::ValueAtQuantile,
};
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::{self as trace, ResourceSpans, ScopeSpans};
use prost::Message as _;

use super::value::{to_any_value, to_attributes};
use crate::error::Malformed;
use crate::protocol::Signal;
use crate::types::{
    Buckets, Exemplar, Log, Metric, Resource, Scope, Span, SpanEvent, SpanLink, Telemetry,
};

/// A request to a receiver of OTLP.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Request {
    Logs(ExportLogsServiceRequest),
    Metrics(ExportMetricsServiceRequest),
    Traces(ExportTraceServiceRequest),
}

impl Request {
    /// Makes a request of the records of a signal.
    ///
    /// # Errors
    ///
    /// An attribute is not as this crate stores attributes.
    pub(crate) fn new(signal: Signal, records: Vec<Telemetry>) -> Result<Self, Malformed> {
        Ok(match signal {
            Signal::Logs => Self::Logs(ExportLogsServiceRequest {
                resource_logs: logs(records)?,
            }),
            Signal::Metrics => Self::Metrics(ExportMetricsServiceRequest {
                resource_metrics: metrics_of(records)?,
            }),
            Signal::Traces => Self::Traces(ExportTraceServiceRequest {
                resource_spans: spans(records)?,
            }),
        })
    }

    /// Returns the request in protobuf.
    pub(crate) fn to_protobuf(&self) -> Vec<u8> {
        match self {
            Self::Logs(request) => request.encode_to_vec(),
            Self::Metrics(request) => request.encode_to_vec(),
            Self::Traces(request) => request.encode_to_vec(),
        }
    }

    /// Returns the request as a line of JSON, without its end.
    pub(crate) fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        match self {
            Self::Logs(request) => serde_json::to_vec(request),
            Self::Metrics(request) => serde_json::to_vec(request),
            Self::Traces(request) => serde_json::to_vec(request),
        }
    }
}

/// Items of one source.
type Group<T> = (Resource, Scope, Vec<T>);

/// The number of latest sources among which a record's source is looked for. A batch of more sources
/// has some of them twice, which OTLP allows.
const MAX_SOURCES: usize = 64;

/// Puts items with the same source together.
fn grouped<T>(
    records: Vec<Telemetry>,
    mut add: impl FnMut(Telemetry, &mut Vec<T>) -> Result<(), Malformed>,
) -> Result<Vec<Group<T>>, Malformed> {
    let mut groups: Vec<Group<T>> = Vec::new();
    for mut record in records {
        let (resource, scope) = record.source();
        let (resource, scope) = (std::mem::take(resource), std::mem::take(scope));
        let mut latest = groups.iter_mut().rev().take(MAX_SOURCES);
        match latest.find(|it| it.0 == resource && it.1 == scope) {
            Some((_, _, items)) => add(record, items)?,
            None => {
                let mut items = Vec::new();
                add(record, &mut items)?;
                groups.push((resource, scope, items));
            }
        }
    }
    Ok(groups)
}

/// Makes messages of groups: the names of the message of a source, of the message of a scope, and of
/// their fields.
macro_rules! messages {
    ($groups:expr, $resource:ident.$scopes:ident, $scope:ident.$items:ident) => {{
        let mut messages: Vec<$resource> = Vec::new();
        let mut last = None;
        for (resource, scope, $items) in $groups {
            let scope_url = scope.schema_url.clone();
            let scope = $scope {
                scope: Some(to_scope(scope)?),
                $items,
                schema_url: scope_url,
            };
            match messages.last_mut() {
                Some(message) if last.as_ref() == Some(&resource) => message.$scopes.push(scope),
                _ => {
                    messages.push($resource {
                        resource: Some(to_resource(resource.clone())?),
                        $scopes: vec![scope],
                        schema_url: resource.schema_url.clone(),
                    });
                    last = Some(resource);
                }
            }
        }
        Ok(messages)
    }};
}

fn spans(records: Vec<Telemetry>) -> Result<Vec<ResourceSpans>, Malformed> {
    let groups = grouped(records, |record, spans| {
        if let Telemetry::Span(record) = record {
            spans.push(span(record)?);
        }
        Ok(())
    })?;
    messages!(groups, ResourceSpans.scope_spans, ScopeSpans.spans)
}

fn logs(records: Vec<Telemetry>) -> Result<Vec<ResourceLogs>, Malformed> {
    let groups = grouped(records, |record, logs| {
        if let Telemetry::Log(record) = record {
            logs.push(log(record)?);
        }
        Ok(())
    })?;
    messages!(groups, ResourceLogs.scope_logs, ScopeLogs.log_records)
}

fn metrics_of(records: Vec<Telemetry>) -> Result<Vec<ResourceMetrics>, Malformed> {
    let groups = grouped(records, add_point)?;
    messages!(groups, ResourceMetrics.scope_metrics, ScopeMetrics.metrics)
}

fn to_resource(resource: Resource) -> Result<OtlpResource, Malformed> {
    let entity_refs = resource.entity_refs.into_iter();
    let entity_refs = entity_refs.map(|it| common::EntityRef {
        schema_url: it.schema_url,
        r#type: it.entity_type,
        id_keys: it.id_keys,
        description_keys: it.description_keys,
    });
    Ok(OtlpResource {
        attributes: to_attributes(resource.attributes)?,
        dropped_attributes_count: resource.dropped_attributes_count,
        entity_refs: entity_refs.collect(),
    })
}

fn to_scope(scope: Scope) -> Result<InstrumentationScope, Malformed> {
    Ok(InstrumentationScope {
        name: scope.name,
        version: scope.version,
        attributes: to_attributes(scope.attributes)?,
        dropped_attributes_count: scope.dropped_attributes_count,
    })
}

fn trace_id(high: u64, low: u64) -> Vec<u8> {
    match (high, low) {
        (0, 0) => Vec::new(),
        _ => [high.to_be_bytes(), low.to_be_bytes()].concat(),
    }
}

fn span_id(id: u64) -> Vec<u8> {
    match id {
        0 => Vec::new(),
        _ => id.to_be_bytes().to_vec(),
    }
}

/// Converts all elements of a list.
fn all<T, U>(list: Vec<T>, one: fn(T) -> Result<U, Malformed>) -> Result<Vec<U>, Malformed> {
    list.into_iter().map(one).collect()
}

fn span(span: Span) -> Result<trace::Span, Malformed> {
    let status = trace::Status {
        message: span.status_message,
        code: span.status_code,
    };
    Ok(trace::Span {
        trace_id: trace_id(span.trace_id_high, span.trace_id_low),
        span_id: span_id(span.span_id),
        trace_state: span.trace_state,
        parent_span_id: span_id(span.parent_span_id),
        flags: span.flags,
        name: span.name,
        kind: span.kind,
        start_time_unix_nano: span.start_time,
        end_time_unix_nano: span.end_time,
        attributes: to_attributes(span.attributes)?,
        dropped_attributes_count: span.dropped_attributes_count,
        events: all(span.events, event)?,
        dropped_events_count: span.dropped_events_count,
        links: all(span.links, link)?,
        dropped_links_count: span.dropped_links_count,
        status: Some(status).filter(|it| *it != trace::Status::default()),
    })
}

fn event(event: SpanEvent) -> Result<trace::span::Event, Malformed> {
    Ok(trace::span::Event {
        time_unix_nano: event.time,
        name: event.name,
        attributes: to_attributes(event.attributes)?,
        dropped_attributes_count: event.dropped_attributes_count,
    })
}

fn link(link: SpanLink) -> Result<trace::span::Link, Malformed> {
    Ok(trace::span::Link {
        trace_id: trace_id(link.trace_id_high, link.trace_id_low),
        span_id: span_id(link.span_id),
        trace_state: link.trace_state,
        attributes: to_attributes(link.attributes)?,
        dropped_attributes_count: link.dropped_attributes_count,
        flags: link.flags,
    })
}

fn log(log: Log) -> Result<LogRecord, Malformed> {
    Ok(LogRecord {
        time_unix_nano: log.time.unwrap_or(0),
        observed_time_unix_nano: log.observed_time,
        severity_number: log.severity_number,
        severity_text: log.severity_text,
        body: log.body.map(to_any_value).transpose()?,
        attributes: to_attributes(log.attributes)?,
        dropped_attributes_count: log.dropped_attributes_count,
        flags: log.flags,
        trace_id: trace_id(log.trace_id_high, log.trace_id_low),
        span_id: span_id(log.span_id),
        event_name: log.event_name,
    })
}

/// Appends a data point to the last metric if it belongs to it, and else with a new metric.
fn add_point(record: Telemetry, list: &mut Vec<metrics::Metric>) -> Result<(), Malformed> {
    let (metric, data) = match record {
        Telemetry::Log(_) | Telemetry::Span(_) => return Ok(()),
        Telemetry::Gauge(it) => {
            let data_points = vec![metrics::NumberDataPoint {
                attributes: to_attributes(it.attributes)?,
                start_time_unix_nano: it.start_time,
                time_unix_nano: it.time,
                exemplars: all(it.exemplars, exemplar)?,
                flags: it.flags,
                value: number(it.i64, it.f64),
            }];
            (it.metric, Data::Gauge(metrics::Gauge { data_points }))
        }
        Telemetry::Sum(it) => {
            let data = metrics::Sum {
                data_points: vec![metrics::NumberDataPoint {
                    attributes: to_attributes(it.attributes)?,
                    start_time_unix_nano: it.start_time,
                    time_unix_nano: it.time,
                    exemplars: all(it.exemplars, exemplar)?,
                    flags: it.flags,
                    value: number(it.i64, it.f64),
                }],
                aggregation_temporality: it.aggregation_temporality,
                is_monotonic: it.is_monotonic,
            };
            (it.metric, Data::Sum(data))
        }
        Telemetry::Histogram(it) => {
            let data = metrics::Histogram {
                data_points: vec![metrics::HistogramDataPoint {
                    attributes: to_attributes(it.attributes)?,
                    start_time_unix_nano: it.start_time,
                    time_unix_nano: it.time,
                    count: it.count,
                    sum: it.sum,
                    bucket_counts: it.bucket_counts,
                    explicit_bounds: it.explicit_bounds,
                    exemplars: all(it.exemplars, exemplar)?,
                    flags: it.flags,
                    min: it.min,
                    max: it.max,
                }],
                aggregation_temporality: it.aggregation_temporality,
            };
            (it.metric, Data::Histogram(data))
        }
        Telemetry::ExponentialHistogram(it) => {
            let data = metrics::ExponentialHistogram {
                data_points: vec![metrics::ExponentialHistogramDataPoint {
                    attributes: to_attributes(it.attributes)?,
                    start_time_unix_nano: it.start_time,
                    time_unix_nano: it.time,
                    count: it.count,
                    sum: it.sum,
                    scale: it.scale,
                    zero_count: it.zero_count,
                    positive: it.positive.map(buckets),
                    negative: it.negative.map(buckets),
                    flags: it.flags,
                    exemplars: all(it.exemplars, exemplar)?,
                    min: it.min,
                    max: it.max,
                    zero_threshold: it.zero_threshold,
                }],
                aggregation_temporality: it.aggregation_temporality,
            };
            (it.metric, Data::ExponentialHistogram(data))
        }
        Telemetry::Summary(it) => {
            let quantiles = it.quantile_values.into_iter().map(|it| ValueAtQuantile {
                quantile: it.quantile,
                value: it.value,
            });
            let data_points = vec![metrics::SummaryDataPoint {
                attributes: to_attributes(it.attributes)?,
                start_time_unix_nano: it.start_time,
                time_unix_nano: it.time,
                count: it.count,
                sum: it.sum,
                quantile_values: quantiles.collect(),
                flags: it.flags,
            }];
            (it.metric, Data::Summary(metrics::Summary { data_points }))
        }
    };
    let metric = to_metric(metric)?;
    let Some(data) = joined(list.last_mut(), &metric, data) else {
        return Ok(());
    };
    list.push(metrics::Metric {
        data: Some(data),
        ..metric
    });
    Ok(())
}

fn to_metric(metric: Metric) -> Result<metrics::Metric, Malformed> {
    Ok(metrics::Metric {
        name: metric.name,
        description: metric.description,
        unit: metric.unit,
        metadata: to_attributes(metric.metadata)?,
        data: None,
    })
}

/// Adds the data point in `data` to the last metric, if it is the same metric. Otherwise returns it.
fn joined(
    last: Option<&mut metrics::Metric>,
    metric: &metrics::Metric,
    data: Data,
) -> Option<Data> {
    let same = |it: &&mut metrics::Metric| {
        let description = (&it.name, &it.description, &it.unit, &it.metadata);
        description
            == (
                &metric.name,
                &metric.description,
                &metric.unit,
                &metric.metadata,
            )
    };
    let last = last.filter(same).and_then(|it| it.data.as_mut());
    macro_rules! joined {
        ($last:ident, $data:ident) => {{
            $last.data_points.append(&mut $data.data_points);
            None
        }};
    }
    match (last, data) {
        (Some(Data::Gauge(last)), Data::Gauge(mut data)) => joined!(last, data),
        (Some(Data::Summary(last)), Data::Summary(mut data)) => joined!(last, data),
        (Some(Data::Sum(last)), Data::Sum(mut data))
            if last.aggregation_temporality == data.aggregation_temporality
                && last.is_monotonic == data.is_monotonic =>
        {
            joined!(last, data)
        }
        (Some(Data::Histogram(last)), Data::Histogram(mut data))
            if last.aggregation_temporality == data.aggregation_temporality =>
        {
            joined!(last, data)
        }
        (Some(Data::ExponentialHistogram(last)), Data::ExponentialHistogram(mut data))
            if last.aggregation_temporality == data.aggregation_temporality =>
        {
            joined!(last, data)
        }
        (_, data) => Some(data),
    }
}

fn number(i64: Option<i64>, f64: Option<f64>) -> Option<number_data_point::Value> {
    let whole = i64.map(number_data_point::Value::AsInt);
    whole.or_else(|| f64.map(number_data_point::Value::AsDouble))
}

fn buckets(buckets: Buckets) -> exponential::Buckets {
    exponential::Buckets {
        offset: buckets.offset,
        bucket_counts: buckets.bucket_counts,
    }
}

fn exemplar(it: Exemplar) -> Result<metrics::Exemplar, Malformed> {
    let whole = it.i64.map(exemplar::Value::AsInt);
    Ok(metrics::Exemplar {
        filtered_attributes: to_attributes(it.filtered_attributes)?,
        time_unix_nano: it.time,
        span_id: span_id(it.span_id),
        trace_id: trace_id(it.trace_id_high, it.trace_id_low),
        value: whole.or_else(|| it.f64.map(exemplar::Value::AsDouble)),
    })
}
