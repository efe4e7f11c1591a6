//! Messages that become records, and their sources.

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{Metric as OtlpMetric, metric::Data};
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use prost::Message;
use serde::de::DeserializeOwned;

use super::sink::Sink;
use crate::error::Malformed;
use crate::mapping::Otlp;
use crate::types::{self, Log, Metric, Resource, Scope, Span, Telemetry, TraceId};

/// A message that becomes a record, or several.
pub(super) trait Item: Message + Default + DeserializeOwned {
    /// Adds the records to a sink.
    fn add_to(self, sink: &mut Sink);
}

impl Item for OtlpSpan {
    fn add_to(self, sink: &mut Sink) {
        let span = Span::from_otlp(self).and_then(|it| {
            let has_ids = it.trace_id != TraceId::default() && it.span_id != 0;
            has_ids.then_some(it).ok_or(Malformed::Id)
        });
        sink.push(span.map(Telemetry::Span));
    }
}

impl Item for LogRecord {
    fn add_to(self, sink: &mut Sink) {
        sink.push(Log::from_otlp(self).map(Telemetry::Log));
    }
}

impl Item for OtlpMetric {
    fn add_to(self, sink: &mut Sink) {
        let metadata = self
            .metadata
            .iter()
            .map(Message::encoded_len)
            .sum::<usize>();
        let texts = self.name.len() + self.description.len() + self.unit.len();
        sink.set_metric_bytes(metadata + texts);
        let metric = Otlp::from_otlp(self.metadata).map(|metadata| Metric {
            name: self.name,
            description: self.description,
            unit: self.unit,
            metadata,
        });
        // Passes on a record for each data point, with the fields of the message around them.
        macro_rules! points {
            ($data:ident, $type:ident { $($field:ident)* }) => {{
                if $data.data_points.is_empty() {
                    sink.push(Err(Malformed::NoData));
                }
                for point in $data.data_points {
                    if !sink.has_room() {
                        sink.push(Err(Malformed::Amount));
                        continue;
                    }
                    let point = types::$type::from_otlp(point);
                    let record = metric.clone().and_then(|metric| {
                        Ok(Telemetry::$type(types::$type {
                            metric,
                            $($field: $data.$field,)*
                            ..point?
                        }))
                    });
                    sink.push(record);
                }
            }};
        }
        match self.data {
            None => sink.push(Err(Malformed::NoData)),
            Some(Data::Gauge(data)) => points!(data, Gauge {}),
            Some(Data::Sum(data)) => points!(data, Sum { aggregation_temporality is_monotonic }),
            Some(Data::Histogram(data)) => points!(
                data,
                Histogram {
                    aggregation_temporality
                }
            ),
            Some(Data::ExponentialHistogram(data)) => {
                points!(
                    data,
                    ExponentialHistogram {
                        aggregation_temporality
                    }
                );
            }
            Some(Data::Summary(data)) => points!(data, Summary {}),
        }
        sink.set_metric_bytes(0);
    }
}

/// Returns the source of records, whose schema is in the message around it.
pub(super) fn resource(resource: OtlpResource, schema_url: String) -> Result<Resource, Malformed> {
    Ok(Resource {
        attributes: Otlp::from_otlp(resource.attributes)?,
        dropped_attributes_count: resource.dropped_attributes_count,
        entity_refs: Otlp::from_otlp(resource.entity_refs)?,
        schema_url,
    })
}

/// Returns the part of a source, whose schema is in the message around it.
pub(super) fn scope(scope: InstrumentationScope, schema_url: String) -> Result<Scope, Malformed> {
    Ok(Scope {
        name: scope.name,
        version: scope.version,
        attributes: Otlp::from_otlp(scope.attributes)?,
        dropped_attributes_count: scope.dropped_attributes_count,
        schema_url,
    })
}
