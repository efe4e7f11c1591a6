//! OTLP's messages to records.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{
    self as metrics, exemplar, exponential_histogram_data_point as exponential, metric::Data,
    number_data_point,
};
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;

use super::Item;
use super::value::{any_value, attributes};
use crate::error::Malformed;
use crate::types::{
    Buckets, EntityRef, Exemplar, ExponentialHistogram, Gauge, Histogram, Log, Metric, Quantile,
    Resource, Scope, Span, SpanEvent, SpanLink, Sum, Summary, Telemetry,
};

/// Returns the source of records, without its schema.
pub(crate) fn resource(resource: OtlpResource) -> Result<Resource, Malformed> {
    let entity_refs = resource.entity_refs.into_iter().map(|it| EntityRef {
        schema_url: it.schema_url,
        entity_type: it.r#type,
        id_keys: it.id_keys,
        description_keys: it.description_keys,
    });
    Ok(Resource {
        attributes: attributes(resource.attributes)?,
        dropped_attributes_count: resource.dropped_attributes_count,
        entity_refs: entity_refs.collect(),
        schema_url: String::new(),
    })
}

/// Returns the part of a source, without its schema.
pub(crate) fn scope(scope: InstrumentationScope) -> Result<Scope, Malformed> {
    Ok(Scope {
        name: scope.name,
        version: scope.version,
        attributes: attributes(scope.attributes)?,
        dropped_attributes_count: scope.dropped_attributes_count,
        schema_url: String::new(),
    })
}

/// Returns the halves of a trace's id; 0 if there is none.
fn trace_id(bytes: &[u8]) -> Result<(u64, u64), Malformed> {
    match bytes.split_first_chunk() {
        Some((high, low)) if low.len() == 8 => Ok((u64::from_be_bytes(*high), span_id(low)?)),
        None if bytes.is_empty() => Ok((0, 0)),
        _ => Err(Malformed::Id),
    }
}

/// Returns a span's id; 0 if there is none.
fn span_id(bytes: &[u8]) -> Result<u64, Malformed> {
    match bytes.try_into() {
        Ok(bytes) => Ok(u64::from_be_bytes(bytes)),
        Err(_) if bytes.is_empty() => Ok(0),
        Err(_) => Err(Malformed::Id),
    }
}

/// Converts all elements of a list.
fn all<T, U>(list: Vec<T>, one: fn(T) -> Result<U, Malformed>) -> Result<Vec<U>, Malformed> {
    list.into_iter().map(one).collect()
}

impl Item for OtlpSpan {
    fn records(self, each: &mut dyn FnMut(Result<Telemetry, Malformed>)) {
        each(span(self).map(Telemetry::Span));
    }
}

fn span(span: OtlpSpan) -> Result<Span, Malformed> {
    let (trace_id_high, trace_id_low) = trace_id(&span.trace_id)?;
    let id = span_id(&span.span_id)?;
    if (trace_id_high, trace_id_low) == (0, 0) || id == 0 {
        return Err(Malformed::Id);
    }
    let status = span.status.unwrap_or_default();
    Ok(Span {
        resource: Resource::default(),
        scope: Scope::default(),
        trace_id_high,
        trace_id_low,
        span_id: id,
        parent_span_id: span_id(&span.parent_span_id)?,
        trace_state: span.trace_state,
        flags: span.flags,
        name: span.name,
        kind: span.kind,
        start_time: span.start_time_unix_nano,
        end_time: span.end_time_unix_nano,
        attributes: attributes(span.attributes)?,
        dropped_attributes_count: span.dropped_attributes_count,
        events: all(span.events, |it| {
            Ok(SpanEvent {
                time: it.time_unix_nano,
                name: it.name,
                attributes: attributes(it.attributes)?,
                dropped_attributes_count: it.dropped_attributes_count,
            })
        })?,
        dropped_events_count: span.dropped_events_count,
        links: all(span.links, |it| {
            let (trace_id_high, trace_id_low) = trace_id(&it.trace_id)?;
            Ok(SpanLink {
                trace_id_high,
                trace_id_low,
                span_id: span_id(&it.span_id)?,
                trace_state: it.trace_state,
                attributes: attributes(it.attributes)?,
                dropped_attributes_count: it.dropped_attributes_count,
                flags: it.flags,
            })
        })?,
        dropped_links_count: span.dropped_links_count,
        status_code: status.code,
        status_message: status.message,
    })
}

impl Item for LogRecord {
    fn records(self, each: &mut dyn FnMut(Result<Telemetry, Malformed>)) {
        each(log(self).map(Telemetry::Log));
    }
}

fn log(log: LogRecord) -> Result<Log, Malformed> {
    let (trace_id_high, trace_id_low) = trace_id(&log.trace_id)?;
    Ok(Log {
        resource: Resource::default(),
        scope: Scope::default(),
        time: Some(log.time_unix_nano).filter(|it| *it != 0),
        observed_time: log.observed_time_unix_nano,
        severity_number: log.severity_number,
        severity_text: log.severity_text,
        body: log.body.map(any_value).transpose()?,
        attributes: attributes(log.attributes)?,
        dropped_attributes_count: log.dropped_attributes_count,
        flags: log.flags,
        trace_id_high,
        trace_id_low,
        span_id: span_id(&log.span_id)?,
        event_name: log.event_name,
    })
}

impl Item for metrics::Metric {
    fn records(self, each: &mut dyn FnMut(Result<Telemetry, Malformed>)) {
        let metric = attributes(self.metadata).map(|metadata| Metric {
            name: self.name,
            description: self.description,
            unit: self.unit,
            metadata,
        });
        macro_rules! points {
            ($data:ident, $type:ident, $record:expr) => {{
                if $data.data_points.is_empty() {
                    each(Err(Malformed::NoData));
                }
                for point in $data.data_points {
                    let metric = metric.clone();
                    let record = metric.and_then(|metric| $record(metric, point));
                    each(record.map(Telemetry::$type));
                }
            }};
        }
        match self.data {
            None => each(Err(Malformed::NoData)),
            Some(Data::Gauge(data)) => points!(data, Gauge, gauge),
            Some(Data::Sum(data)) => points!(data, Sum, |metric, point| {
                let gauge = gauge(metric, point)?;
                Ok(sum(gauge, data.aggregation_temporality, data.is_monotonic))
            }),
            Some(Data::Histogram(data)) => points!(data, Histogram, |metric, point| {
                histogram(metric, point, data.aggregation_temporality)
            }),
            Some(Data::ExponentialHistogram(data)) => {
                points!(data, ExponentialHistogram, |metric, point| {
                    exponential_histogram(metric, point, data.aggregation_temporality)
                });
            }
            Some(Data::Summary(data)) => points!(data, Summary, summary),
        }
    }
}

fn gauge(metric: Metric, point: metrics::NumberDataPoint) -> Result<Gauge, Malformed> {
    let (i64, f64) = match point.value {
        None => (None, None),
        Some(number_data_point::Value::AsInt(value)) => (Some(value), None),
        Some(number_data_point::Value::AsDouble(value)) => (None, Some(value)),
    };
    Ok(Gauge {
        resource: Resource::default(),
        scope: Scope::default(),
        metric,
        attributes: attributes(point.attributes)?,
        start_time: point.start_time_unix_nano,
        time: point.time_unix_nano,
        flags: point.flags,
        i64,
        f64,
        exemplars: all(point.exemplars, exemplar)?,
    })
}

/// A data point of a sum has the fields of a gauge's, and two more.
fn sum(gauge: Gauge, aggregation_temporality: i32, is_monotonic: bool) -> Sum {
    Sum {
        resource: gauge.resource,
        scope: gauge.scope,
        metric: gauge.metric,
        attributes: gauge.attributes,
        start_time: gauge.start_time,
        time: gauge.time,
        flags: gauge.flags,
        i64: gauge.i64,
        f64: gauge.f64,
        exemplars: gauge.exemplars,
        aggregation_temporality,
        is_monotonic,
    }
}

fn histogram(
    metric: Metric,
    point: metrics::HistogramDataPoint,
    aggregation_temporality: i32,
) -> Result<Histogram, Malformed> {
    Ok(Histogram {
        resource: Resource::default(),
        scope: Scope::default(),
        metric,
        attributes: attributes(point.attributes)?,
        start_time: point.start_time_unix_nano,
        time: point.time_unix_nano,
        flags: point.flags,
        count: point.count,
        sum: point.sum,
        bucket_counts: point.bucket_counts,
        explicit_bounds: point.explicit_bounds,
        exemplars: all(point.exemplars, exemplar)?,
        min: point.min,
        max: point.max,
        aggregation_temporality,
    })
}

fn exponential_histogram(
    metric: Metric,
    point: metrics::ExponentialHistogramDataPoint,
    aggregation_temporality: i32,
) -> Result<ExponentialHistogram, Malformed> {
    Ok(ExponentialHistogram {
        resource: Resource::default(),
        scope: Scope::default(),
        metric,
        attributes: attributes(point.attributes)?,
        start_time: point.start_time_unix_nano,
        time: point.time_unix_nano,
        flags: point.flags,
        count: point.count,
        sum: point.sum,
        scale: point.scale,
        zero_count: point.zero_count,
        positive: point.positive.map(buckets),
        negative: point.negative.map(buckets),
        exemplars: all(point.exemplars, exemplar)?,
        min: point.min,
        max: point.max,
        zero_threshold: point.zero_threshold,
        aggregation_temporality,
    })
}

fn buckets(buckets: exponential::Buckets) -> Buckets {
    Buckets {
        offset: buckets.offset,
        bucket_counts: buckets.bucket_counts,
    }
}

fn summary(metric: Metric, point: metrics::SummaryDataPoint) -> Result<Summary, Malformed> {
    let quantiles = point.quantile_values.into_iter().map(|it| Quantile {
        quantile: it.quantile,
        value: it.value,
    });
    Ok(Summary {
        resource: Resource::default(),
        scope: Scope::default(),
        metric,
        attributes: attributes(point.attributes)?,
        start_time: point.start_time_unix_nano,
        time: point.time_unix_nano,
        flags: point.flags,
        count: point.count,
        sum: point.sum,
        quantile_values: quantiles.collect(),
    })
}

fn exemplar(exemplar: metrics::Exemplar) -> Result<Exemplar, Malformed> {
    let (i64, f64) = match exemplar.value {
        None => (None, None),
        Some(exemplar::Value::AsInt(value)) => (Some(value), None),
        Some(exemplar::Value::AsDouble(value)) => (None, Some(value)),
    };
    let (trace_id_high, trace_id_low) = trace_id(&exemplar.trace_id)?;
    Ok(Exemplar {
        filtered_attributes: attributes(exemplar.filtered_attributes)?,
        time: exemplar.time_unix_nano,
        i64,
        f64,
        trace_id_high,
        trace_id_low,
        span_id: span_id(&exemplar.span_id)?,
    })
}
