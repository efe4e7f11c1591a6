//! Records to requests.

use opentelemetry_proto::tonic::collector::logs::v1::ExportLogsServiceRequest;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::{ResourceLogs, ScopeLogs};
use opentelemetry_proto::tonic::metrics::v1::{
    self as metrics, ResourceMetrics, ScopeMetrics, metric::Data,
};
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans};
use prost::Message as _;

use super::Otlp as _;
use crate::error::Malformed;
use crate::protocol::Signal;
use crate::types::{Resource, Scope, Telemetry};

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
        if let Telemetry::Span(span) = record {
            spans.push(span.into_otlp()?);
        }
        Ok(())
    })?;
    messages!(groups, ResourceSpans.scope_spans, ScopeSpans.spans)
}

fn logs(records: Vec<Telemetry>) -> Result<Vec<ResourceLogs>, Malformed> {
    let groups = grouped(records, |record, logs| {
        if let Telemetry::Log(log) = record {
            logs.push(log.into_otlp()?);
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
    Ok(OtlpResource {
        attributes: resource.attributes.into_otlp()?,
        dropped_attributes_count: resource.dropped_attributes_count,
        entity_refs: resource.entity_refs.into_otlp()?,
    })
}

fn to_scope(scope: Scope) -> Result<InstrumentationScope, Malformed> {
    Ok(InstrumentationScope {
        name: scope.name,
        version: scope.version,
        attributes: scope.attributes.into_otlp()?,
        dropped_attributes_count: scope.dropped_attributes_count,
    })
}

/// Appends a data point to the last metric if it belongs to it, and else with a new metric.
fn add_point(mut record: Telemetry, list: &mut Vec<metrics::Metric>) -> Result<(), Malformed> {
    // Makes the message around a data point, with these fields.
    macro_rules! data {
        ($record:ident, $type:ident { $($field:ident)* }) => {{
            $(let $field = $record.$field;)*
            let metric = std::mem::take(&mut $record.metric);
            let data_points = vec![std::mem::take($record).into_otlp()?];
            (metric, Data::$type(metrics::$type { data_points, $($field,)* }))
        }};
    }
    let (metric, data) = match &mut record {
        Telemetry::Log(_) | Telemetry::Span(_) => return Ok(()),
        Telemetry::Gauge(it) => data!(it, Gauge {}),
        Telemetry::Sum(it) => data!(it, Sum { aggregation_temporality is_monotonic }),
        Telemetry::Histogram(it) => data!(
            it,
            Histogram {
                aggregation_temporality
            }
        ),
        Telemetry::ExponentialHistogram(it) => {
            data!(
                it,
                ExponentialHistogram {
                    aggregation_temporality
                }
            )
        }
        Telemetry::Summary(it) => data!(it, Summary {}),
    };
    let metric = metrics::Metric {
        name: metric.name,
        description: metric.description,
        unit: metric.unit,
        metadata: metric.metadata.into_otlp()?,
        data: None,
    };
    if let Some(data) = joined(list.last_mut(), &metric, data) {
        list.push(metrics::Metric {
            data: Some(data),
            ..metric
        });
    }
    Ok(())
}

/// Adds the data point in `data` to the last metric, if it is the same metric. Otherwise returns it.
fn joined(
    last: Option<&mut metrics::Metric>,
    metric: &metrics::Metric,
    data: Data,
) -> Option<Data> {
    let last = last.and_then(|last| {
        let found = last.data.take();
        let is_same = last == metric;
        last.data = found;
        last.data.as_mut().filter(|_| is_same)
    });
    // Moves the data point, if these fields are the same.
    macro_rules! joined {
        ($last:ident, $data:ident, $type:ident { $($field:ident)* }) => {
            if true $(&& $last.$field == $data.$field)* {
                $last.data_points.append(&mut $data.data_points);
                None
            } else {
                Some(Data::$type($data))
            }
        };
    }
    match (last, data) {
        (Some(Data::Gauge(last)), Data::Gauge(mut data)) => joined!(last, data, Gauge {}),
        (Some(Data::Summary(last)), Data::Summary(mut data)) => joined!(last, data, Summary {}),
        (Some(Data::Sum(last)), Data::Sum(mut data)) => {
            joined!(last, data, Sum { aggregation_temporality is_monotonic })
        }
        (Some(Data::Histogram(last)), Data::Histogram(mut data)) => {
            joined!(
                last,
                data,
                Histogram {
                    aggregation_temporality
                }
            )
        }
        (Some(Data::ExponentialHistogram(last)), Data::ExponentialHistogram(mut data)) => {
            joined!(
                last,
                data,
                ExponentialHistogram {
                    aggregation_temporality
                }
            )
        }
        (_, data) => Some(data),
    }
}
