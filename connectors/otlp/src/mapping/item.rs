//! The messages that become records: spans, log records and metrics.

use std::fmt::Debug;

use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::{self as metrics, metric::Data};
use opentelemetry_proto::tonic::trace::v1::Span as OtlpSpan;
use prost::Message;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::convert::Otlp;
use crate::error::Malformed;
use crate::sink::Sink;
use crate::types::{self, Log, Metric, Span, Telemetry, TraceId};

/// A message that becomes a record, or several.
pub(crate) trait Item: Debug + Message + Default + DeserializeOwned + Serialize {
    /// The names in JSON of the fields with sources, scopes and items.
    const NAMES: [&'static str; 3];

    /// Adds the records to a sink.
    fn add_to(self, sink: &mut Sink);

    /// Adds a record to messages, if it is of this kind.
    fn add(record: Telemetry, messages: &mut Vec<Self>) -> Result<(), Malformed>;
}

impl Item for OtlpSpan {
    const NAMES: [&'static str; 3] = ["resourceSpans", "scopeSpans", "spans"];

    fn add_to(self, sink: &mut Sink) {
        let span = Span::from_otlp(self).and_then(|it| {
            let has_ids = it.trace_id != TraceId::default() && it.span_id != 0;
            has_ids.then_some(it).ok_or(Malformed::Id)
        });
        sink.push(span.map(Telemetry::Span));
    }

    fn add(record: Telemetry, messages: &mut Vec<Self>) -> Result<(), Malformed> {
        if let Telemetry::Span(span) = record {
            messages.push(span.into_otlp()?);
        }
        Ok(())
    }
}

impl Item for LogRecord {
    const NAMES: [&'static str; 3] = ["resourceLogs", "scopeLogs", "logRecords"];

    fn add_to(self, sink: &mut Sink) {
        sink.push(Log::from_otlp(self).map(Telemetry::Log));
    }

    fn add(record: Telemetry, messages: &mut Vec<Self>) -> Result<(), Malformed> {
        if let Telemetry::Log(log) = record {
            messages.push(log.into_otlp()?);
        }
        Ok(())
    }
}

/// Passes the types of data points to a macro, with the fields of the messages around them.
macro_rules! data_points {
    ($then:ident) => {
        $then! {
            Gauge {}
            Sum { aggregation_temporality is_monotonic }
            Histogram { aggregation_temporality }
            ExponentialHistogram { aggregation_temporality }
            Summary {}
        }
    };
}

impl Item for metrics::Metric {
    const NAMES: [&'static str; 3] = ["resourceMetrics", "scopeMetrics", "metrics"];

    fn add_to(mut self, sink: &mut Sink) {
        let data = self.data.take();
        sink.metric_bytes = self.encoded_len();
        let metric = Metric::from_otlp(self);
        macro_rules! add {
            ($($type:ident { $($field:ident)* })*) => {
                match data {
                    $(Some(Data::$type(data)) if !data.data_points.is_empty() => {
                        for point in data.data_points {
                            if !sink.has_room() {
                                sink.push(Err(Malformed::Amount));
                                continue;
                            }
                            let point = types::$type::from_otlp(point);
                            let record = metric.clone().and_then(|metric| {
                                let point = point?;
                                Ok(types::$type { metric, $($field: data.$field,)* ..point })
                            });
                            sink.push(record.map(Telemetry::$type));
                        }
                    })*
                    _ => sink.push(Err(Malformed::NoData)),
                }
            };
        }
        data_points!(add);
        sink.metric_bytes = 0;
    }

    /// The data point joins the last metric, if it belongs to it.
    fn add(record: Telemetry, messages: &mut Vec<Self>) -> Result<(), Malformed> {
        macro_rules! add {
            ($($type:ident { $($field:ident)* })*) => {
                match record {
                    $(Telemetry::$type(mut record) => {
                        $(let $field = record.$field;)*
                        let metric: Self = std::mem::take(&mut record.metric).into_otlp()?;
                        let point = record.into_otlp()?;
                        let last = messages.last_mut().filter(|it| is_same(it, &metric));
                        match last.and_then(|it| it.data.as_mut()) {
                            Some(Data::$type(it)) if true $(&& it.$field == $field)* => {
                                it.data_points.push(point);
                            }
                            _ => {
                                let data_points = vec![point];
                                let data = metrics::$type { data_points, $($field,)* };
                                let data = Some(Data::$type(data));
                                messages.push(Self { data, ..metric });
                            }
                        }
                    })*
                    Telemetry::Log(_) | Telemetry::Span(_) => {}
                }
            };
        }
        data_points!(add);
        Ok(())
    }
}

/// Whether two metrics have the same description.
fn is_same(one: &metrics::Metric, other: &metrics::Metric) -> bool {
    let texts = one.name == other.name && one.description == other.description;
    texts && one.unit == other.unit && one.metadata == other.metadata
}
