//! The record types of OTLP: a record a span, a log record or a data point.
//!
//! They hold every field of OTLP's messages, under its name in OTLP, whose documentation explains it.
//! An enum is its number, and an id of 0 stands for none. Points in time are in nanoseconds since the
//! Unix epoch.

use baler_common::record::derived::refuse;
use baler_common::record::{
    AnyValue, FieldType, FieldValue, Projection, ReadError, Record, Records, RowWriter, Shape,
    ValueRef,
};
use opentelemetry_proto::tonic::{common, logs, metrics, resource, trace};

use crate::convert::Otlp;
use crate::error::Malformed;

/// Declares a record type with fields of a message of OTLP, and the conversions between both. The
/// fields after `beside` are not in the message; the caller of the conversion sets and reads them.
macro_rules! record {
    (
        $(#[$attribute:meta])*
        $name:ident($full_name:literal) = $message:path {
            $($(#[$field_attribute:meta])* $field:ident: $type:ty,)*
        }
        $(beside { $($(#[$beside_attribute:meta])* $beside:ident: $beside_type:ty,)* })?
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, PartialEq, Record)]
        #[record(name = $full_name)]
        pub struct $name {
            $($($(#[$beside_attribute])* pub $beside: $beside_type,)*)?
            $($(#[$field_attribute])* pub $field: $type,)*
        }

        impl Otlp<$message> for $name {
            fn from_otlp(message: $message) -> Result<Self, Malformed> {
                Ok(Self {
                    $($($beside: Default::default(),)*)?
                    $($field: Otlp::from_otlp(message.$field)?,)*
                })
            }

            #[allow(clippy::needless_update, reason = "few messages have further fields")]
            fn into_otlp(self) -> Result<$message, Malformed> {
                type Message = $message;
                Ok(Message {
                    $($field: self.$field.into_otlp()?,)*
                    ..Message::default()
                })
            }
        }
    };
}

/// Attributes: names with values, in the order of the sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes(pub Vec<(String, AnyValue<'static>)>);

/// Stored as a map, whose order and repeated names a map of Rust's would lose.
impl FieldValue for Attributes {
    const SHAPE: Shape = AnyValue::SHAPE.map();

    fn field_type() -> FieldType {
        AnyValue::field_type().map()
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        row.list(self.0.len());
        for (key, value) in &self.0 {
            row.str(key);
            value.write(row);
        }
    }

    fn read(value: ValueRef<'_>, projection: Option<&Projection>) -> Result<Self, ReadError> {
        let ValueRef::Map(map) = value else {
            return Err(refuse::<Self>(value));
        };
        let read = |(key, value): (&str, _)| Ok((key.into(), FieldValue::read(value, projection)?));
        map.iter().map(read).collect::<Result<_, _>>().map(Self)
    }
}

/// A number: at most one of the fields is present.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "otel.Number")]
pub struct Number {
    /// A whole number.
    pub i64: Option<i64>,
    /// Any other number.
    pub f64: Option<f64>,
}

/// The halves of the id of a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Record)]
#[record(name = "otel.TraceId")]
pub struct TraceId {
    /// The first half.
    pub high: u64,
    /// The second half.
    pub low: u64,
}

record! {
    /// The source of telemetry.
    Resource("otel.Resource") = resource::v1::Resource {
        /// Its attributes, such as `service.name`.
        attributes: Attributes,
        /// Attributes that the sender dropped.
        dropped_attributes_count: u32,
        /// The entities that the attributes describe.
        entity_refs: Vec<EntityRef>,
    }
    beside {
        /// The schema of the names.
        schema_url: String,
    }
}

record! {
    /// An entity that attributes of a resource describe.
    EntityRef("otel.EntityRef") = common::v1::EntityRef {
        /// The schema of the names.
        schema_url: String,
        /// The type, such as `service`.
        #[record(rename = "type")]
        r#type: String,
        /// The names of the attributes that identify the entity.
        id_keys: Vec<String>,
        /// The names of the attributes that describe it.
        description_keys: Vec<String>,
    }
}

record! {
    /// The part of an application that made the telemetry.
    Scope("otel.Scope") = common::v1::InstrumentationScope {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
        /// Its attributes.
        attributes: Attributes,
        /// Attributes that the sender dropped.
        dropped_attributes_count: u32,
    }
    beside {
        /// The schema of the names.
        schema_url: String,
    }
}

record! {
    /// An operation of a trace.
    Span("otel.Span") = trace::v1::Span {
        /// The trace.
        trace_id: TraceId,
        /// The id.
        span_id: u64,
        /// W3C's trace state.
        trace_state: String,
        /// The calling span.
        parent_span_id: u64,
        /// W3C's trace flags, and whether the parent is remote.
        flags: u32,
        /// The name.
        name: String,
        /// `SpanKind`.
        kind: i32,
        /// The start.
        #[record(unix_nanos)]
        start_time_unix_nano: u64,
        /// The end.
        #[record(timestamp)]
        end_time_unix_nano: u64,
        /// The attributes.
        attributes: Attributes,
        /// Attributes that the sender dropped.
        dropped_attributes_count: u32,
        /// Events within the span.
        events: Vec<SpanEvent>,
        /// Events that the sender dropped.
        dropped_events_count: u32,
        /// Links to other spans.
        links: Vec<SpanLink>,
        /// Links that the sender dropped.
        dropped_links_count: u32,
        /// The status.
        status: Option<Status>,
    }
    beside {
        /// The source.
        resource: Resource,
        /// The part of the source.
        scope: Scope,
    }
}

record! {
    /// The status of a span.
    Status("otel.Status") = trace::v1::Status {
        /// A text for developers.
        message: String,
        /// `StatusCode`.
        code: i32,
    }
}

record! {
    /// An event within a span.
    SpanEvent("otel.SpanEvent") = trace::v1::span::Event {
        /// The time.
        #[record(unix_nanos)]
        time_unix_nano: u64,
        /// The name.
        name: String,
        /// The attributes.
        attributes: Attributes,
        /// Attributes that the sender dropped.
        dropped_attributes_count: u32,
    }
}

record! {
    /// A link to another span.
    SpanLink("otel.SpanLink") = trace::v1::span::Link {
        /// Its trace.
        trace_id: TraceId,
        /// Its id.
        span_id: u64,
        /// W3C's trace state.
        trace_state: String,
        /// The attributes.
        attributes: Attributes,
        /// Attributes that the sender dropped.
        dropped_attributes_count: u32,
        /// W3C's trace flags, and whether the span is remote.
        flags: u32,
    }
}

record! {
    /// A log record.
    Log("otel.Log") = logs::v1::LogRecord {
        /// The time of the event; none if it is unknown.
        #[record(timestamp)]
        time_unix_nano: Option<u64>,
        /// The time at which the event was observed.
        #[record(unix_nanos)]
        observed_time_unix_nano: u64,
        /// `SeverityNumber`.
        severity_number: i32,
        /// The severity as the source names it.
        severity_text: String,
        /// The content. An array or a list is JSON text, as in attributes.
        body: Option<AnyValue<'static>>,
        /// The attributes.
        attributes: Attributes,
        /// Attributes that the sender dropped.
        dropped_attributes_count: u32,
        /// W3C's trace flags.
        flags: u32,
        /// The trace.
        trace_id: TraceId,
        /// The span in which the event happened.
        span_id: u64,
        /// The type of the event.
        event_name: String,
    }
    beside {
        /// The source.
        resource: Resource,
        /// The part of the source.
        scope: Scope,
    }
}

record! {
    /// A measurement that is an example for a data point.
    Exemplar("otel.Exemplar") = metrics::v1::Exemplar {
        /// The attributes that the data point does not have.
        filtered_attributes: Attributes,
        /// The time.
        #[record(unix_nanos)]
        time_unix_nano: u64,
        /// The span in which it was measured.
        span_id: u64,
        /// The trace.
        trace_id: TraceId,
        /// The value.
        value: Number,
    }
}

record! {
    /// The buckets of an exponential histogram on one side of zero.
    Buckets("otel.Buckets") = metrics::v1::exponential_histogram_data_point::Buckets {
        /// The index of the first bucket.
        offset: i32,
        /// The counts of the buckets.
        bucket_counts: Vec<u64>,
    }
}

record! {
    /// A quantile of a summary.
    Quantile("otel.Quantile") = metrics::v1::summary_data_point::ValueAtQuantile {
        /// The quantile, from 0 to 1.
        quantile: f64,
        /// Its value.
        value: f64,
    }
}

record! {
    /// The description of a metric, which all of its data points share.
    Metric("otel.Metric") = metrics::v1::Metric {
        /// The name.
        name: String,
        /// A description.
        description: String,
        /// The unit.
        unit: String,
        /// Further attributes of the metric.
        metadata: Attributes,
    }
}

/// Declares the type of a data point: the fields of all data points, the fields of its message, and
/// the fields of the message around it.
macro_rules! data_point {
    (
        $(#[$attribute:meta])*
        $name:ident($full_name:literal) = $message:path {
            $($(#[$field_attribute:meta])* $field:ident: $type:ty,)*
        }
        $(beside { $($(#[$beside_attribute:meta])* $beside:ident: $beside_type:ty,)* })?
    ) => {
        record! {
            $(#[$attribute])*
            $name($full_name) = $message {
                /// The attributes.
                attributes: Attributes,
                /// The start of the measured time.
                #[record(unix_nanos)]
                start_time_unix_nano: u64,
                /// The time of the value.
                #[record(timestamp)]
                time_unix_nano: u64,
                /// `DataPointFlags`.
                flags: u32,
                $($(#[$field_attribute])* $field: $type,)*
            }
            beside {
                /// The source.
                resource: Resource,
                /// The part of the source.
                scope: Scope,
                /// The metric.
                metric: Metric,
                $($($(#[$beside_attribute])* $beside: $beside_type,)*)?
            }
        }
    };
}

data_point! {
    /// A value at a time.
    Gauge("otel.Gauge") = metrics::v1::NumberDataPoint {
        /// The value.
        value: Number,
        /// Examples.
        exemplars: Vec<Exemplar>,
    }
}

data_point! {
    /// A sum over time.
    Sum("otel.Sum") = metrics::v1::NumberDataPoint {
        /// The value.
        value: Number,
        /// Examples.
        exemplars: Vec<Exemplar>,
    }
    beside {
        /// `AggregationTemporality`.
        aggregation_temporality: i32,
        /// Whether it never falls.
        is_monotonic: bool,
    }
}

data_point! {
    /// A distribution over buckets with explicit bounds.
    Histogram("otel.Histogram") = metrics::v1::HistogramDataPoint {
        /// The number of values.
        count: u64,
        /// Their sum.
        sum: Option<f64>,
        /// The counts of the buckets.
        bucket_counts: Vec<u64>,
        /// The bounds between the buckets.
        explicit_bounds: Vec<f64>,
        /// Examples.
        exemplars: Vec<Exemplar>,
        /// The smallest value.
        min: Option<f64>,
        /// The largest value.
        max: Option<f64>,
    }
    beside {
        /// `AggregationTemporality`.
        aggregation_temporality: i32,
    }
}

data_point! {
    /// A distribution over buckets of exponential width.
    ExponentialHistogram("otel.ExponentialHistogram")
        = metrics::v1::ExponentialHistogramDataPoint
    {
        /// The number of values.
        count: u64,
        /// Their sum.
        sum: Option<f64>,
        /// The resolution.
        scale: i32,
        /// The number of values that count as zero.
        zero_count: u64,
        /// The buckets above zero.
        positive: Option<Buckets>,
        /// The buckets below zero.
        negative: Option<Buckets>,
        /// Examples.
        exemplars: Vec<Exemplar>,
        /// The smallest value.
        min: Option<f64>,
        /// The largest value.
        max: Option<f64>,
        /// The width of the bucket of zero.
        zero_threshold: f64,
    }
    beside {
        /// `AggregationTemporality`.
        aggregation_temporality: i32,
    }
}

data_point! {
    /// Quantiles, as older systems report them.
    Summary("otel.Summary") = metrics::v1::SummaryDataPoint {
        /// The number of values.
        count: u64,
        /// Their sum.
        sum: f64,
        /// The quantiles.
        quantile_values: Vec<Quantile>,
    }
}

/// A record of any of these types.
#[derive(Debug, Clone, PartialEq, Records)]
pub enum Telemetry {
    /// A data point of an exponential histogram.
    ExponentialHistogram(ExponentialHistogram),
    /// A data point of a gauge.
    Gauge(Gauge),
    /// A data point of a histogram.
    Histogram(Histogram),
    /// A log record.
    Log(Log),
    /// A span.
    Span(Span),
    /// A data point of a sum.
    Sum(Sum),
    /// A data point of a summary.
    Summary(Summary),
}
