//! The record types of OTLP: a record a span, a log record or a data point.
//!
//! They hold every field of OTLP's messages, with the names of OTLP; its documentation explains them.
//! An enum is its number, and an id of 0 stands for none. A point in time is in nanoseconds since the
//! Unix epoch.

use baler_common::record::{
    FieldType, FieldValue, Projection, ReadError, Record, Records, RowWriter, Shape, ValueRef,
};
use bytes::Bytes;

/// Attributes: names with values, in the order of the sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Attributes(pub Vec<MapEntry>);

impl FieldValue for Attributes {
    const SHAPE: Shape = <Vec<MapEntry> as FieldValue>::SHAPE;

    /// The one place that says how attributes are stored.
    fn field_type() -> FieldType {
        Vec::<MapEntry>::field_type()
    }

    fn write(&self, row: &mut RowWriter<'_>) {
        self.0.write(row);
    }

    fn read(value: ValueRef<'_>, projection: Option<&Projection>) -> Result<Self, ReadError> {
        FieldValue::read(value, projection).map(Self)
    }

    fn missing() -> Option<Self> {
        Some(Self::default())
    }
}

/// One attribute.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "baler.MapEntry")]
pub struct MapEntry {
    /// The name.
    pub key: String,
    /// The value.
    pub value: AnyValue,
}

/// A value of any type: at most one of the fields is present, and none for an empty value.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "baler.AnyValue")]
pub struct AnyValue {
    /// True or false.
    pub bool: Option<bool>,
    /// A whole number.
    pub i64: Option<i64>,
    /// A number.
    pub f64: Option<f64>,
    /// Text.
    pub string: Option<String>,
    /// Bytes.
    pub bytes: Option<Bytes>,
    /// An array or a list of names with values, in OTLP's JSON form of an `AnyValue`.
    pub json: Option<String>,
}

/// The source of telemetry.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "otel.Resource")]
pub struct Resource {
    /// Its attributes, such as `service.name`.
    pub attributes: Attributes,
    /// Attributes that the sender dropped.
    pub dropped_attributes_count: u32,
    /// The entities that the attributes describe.
    pub entity_refs: Vec<EntityRef>,
    /// The schema of the names.
    pub schema_url: String,
}

/// An entity that attributes of a resource describe.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "otel.EntityRef")]
pub struct EntityRef {
    /// The schema of the names.
    pub schema_url: String,
    /// The type, such as `service`.
    #[record(rename = "type")]
    pub entity_type: String,
    /// The names of the attributes that identify the entity.
    pub id_keys: Vec<String>,
    /// The names of the attributes that describe it.
    pub description_keys: Vec<String>,
}

/// The part of an application that made the telemetry.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "otel.Scope")]
pub struct Scope {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its attributes.
    pub attributes: Attributes,
    /// Attributes that the sender dropped.
    pub dropped_attributes_count: u32,
    /// The schema of the names.
    pub schema_url: String,
}

/// An operation of a trace.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "otel.Span")]
pub struct Span {
    /// The source.
    pub resource: Resource,
    /// The part of the source.
    pub scope: Scope,
    /// The first half of the trace's id.
    pub trace_id_high: u64,
    /// The second half of the trace's id.
    pub trace_id_low: u64,
    /// The id.
    pub span_id: u64,
    /// The id of the calling span.
    pub parent_span_id: u64,
    /// W3C's trace state.
    pub trace_state: String,
    /// W3C's trace flags, and whether the parent is remote.
    pub flags: u32,
    /// The name.
    pub name: String,
    /// `SpanKind`.
    pub kind: i32,
    /// The start.
    #[record(unix_nanos)]
    pub start_time: u64,
    /// The end.
    #[record(timestamp)]
    pub end_time: u64,
    /// The attributes.
    pub attributes: Attributes,
    /// Attributes that the sender dropped.
    pub dropped_attributes_count: u32,
    /// Events within the span.
    pub events: Vec<SpanEvent>,
    /// Events that the sender dropped.
    pub dropped_events_count: u32,
    /// Links to other spans.
    pub links: Vec<SpanLink>,
    /// Links that the sender dropped.
    pub dropped_links_count: u32,
    /// `StatusCode`.
    pub status_code: i32,
    /// The text of the status.
    pub status_message: String,
}

/// An event within a span.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "otel.SpanEvent")]
pub struct SpanEvent {
    /// The time.
    #[record(unix_nanos)]
    pub time: u64,
    /// The name.
    pub name: String,
    /// The attributes.
    pub attributes: Attributes,
    /// Attributes that the sender dropped.
    pub dropped_attributes_count: u32,
}

/// A link to another span.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "otel.SpanLink")]
pub struct SpanLink {
    /// The first half of the id of its trace.
    pub trace_id_high: u64,
    /// The second half of the id of its trace.
    pub trace_id_low: u64,
    /// Its id.
    pub span_id: u64,
    /// W3C's trace state.
    pub trace_state: String,
    /// The attributes.
    pub attributes: Attributes,
    /// Attributes that the sender dropped.
    pub dropped_attributes_count: u32,
    /// W3C's trace flags, and whether the span is remote.
    pub flags: u32,
}

/// A log record.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "otel.Log")]
pub struct Log {
    /// The source.
    pub resource: Resource,
    /// The part of the source.
    pub scope: Scope,
    /// The time of the event; none if it is unknown.
    #[record(timestamp)]
    pub time: Option<u64>,
    /// The time at which the event was observed.
    #[record(unix_nanos)]
    pub observed_time: u64,
    /// `SeverityNumber`.
    pub severity_number: i32,
    /// The severity as the source names it.
    pub severity_text: String,
    /// The content.
    pub body: Option<AnyValue>,
    /// The attributes.
    pub attributes: Attributes,
    /// Attributes that the sender dropped.
    pub dropped_attributes_count: u32,
    /// W3C's trace flags.
    pub flags: u32,
    /// The first half of the trace's id.
    pub trace_id_high: u64,
    /// The second half of the trace's id.
    pub trace_id_low: u64,
    /// The span in which the event happened.
    pub span_id: u64,
    /// The type of the event.
    pub event_name: String,
}

/// A measurement that is an example for a data point.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "otel.Exemplar")]
pub struct Exemplar {
    /// The attributes that the data point does not have.
    pub filtered_attributes: Attributes,
    /// The time.
    #[record(unix_nanos)]
    pub time: u64,
    /// The value, if it is a whole number.
    pub i64: Option<i64>,
    /// The value, if it is any other number.
    pub f64: Option<f64>,
    /// The first half of the trace's id.
    pub trace_id_high: u64,
    /// The second half of the trace's id.
    pub trace_id_low: u64,
    /// The span in which it was measured.
    pub span_id: u64,
}

/// The buckets of an exponential histogram on one side of zero.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "otel.Buckets")]
pub struct Buckets {
    /// The index of the first bucket.
    pub offset: i32,
    /// The counts of the buckets.
    pub bucket_counts: Vec<u64>,
}

/// A quantile of a summary.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(name = "otel.Quantile")]
pub struct Quantile {
    /// The quantile, from 0 to 1.
    pub quantile: f64,
    /// Its value.
    pub value: f64,
}

/// The description of a metric, which all of its data points share.
#[derive(Debug, Clone, Default, PartialEq, Record)]
#[record(name = "otel.Metric")]
pub struct Metric {
    /// The name.
    pub name: String,
    /// A description.
    pub description: String,
    /// The unit.
    pub unit: String,
    /// Further attributes of the metric.
    pub metadata: Attributes,
}

/// Declares the type of a data point: the fields that all of them have, and its own.
macro_rules! data_point {
    (
        $(#[$attribute:meta])*
        $name:ident($full_name:literal) { $($(#[$field_attribute:meta])* $field:ident: $type:ty,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Default, PartialEq, Record)]
        #[record(name = $full_name)]
        pub struct $name {
            /// The source.
            pub resource: Resource,
            /// The part of the source.
            pub scope: Scope,
            /// The metric.
            pub metric: Metric,
            /// The attributes.
            pub attributes: Attributes,
            /// The start of the measured time.
            #[record(unix_nanos)]
            pub start_time: u64,
            /// The time of the value.
            #[record(timestamp)]
            pub time: u64,
            /// `DataPointFlags`.
            pub flags: u32,
            $($(#[$field_attribute])* pub $field: $type,)*
        }
    };
}

data_point! {
    /// A value at a time.
    Gauge("otel.Gauge") {
        /// The value, if it is a whole number.
        i64: Option<i64>,
        /// The value, if it is any other number.
        f64: Option<f64>,
        /// Examples.
        exemplars: Vec<Exemplar>,
    }
}

data_point! {
    /// A sum over time.
    Sum("otel.Sum") {
        /// The value, if it is a whole number.
        i64: Option<i64>,
        /// The value, if it is any other number.
        f64: Option<f64>,
        /// Examples.
        exemplars: Vec<Exemplar>,
        /// `AggregationTemporality`.
        aggregation_temporality: i32,
        /// Whether it never falls.
        is_monotonic: bool,
    }
}

data_point! {
    /// A distribution over buckets with explicit bounds.
    Histogram("otel.Histogram") {
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
        /// `AggregationTemporality`.
        aggregation_temporality: i32,
    }
}

data_point! {
    /// A distribution over buckets of exponential width.
    ExponentialHistogram("otel.ExponentialHistogram") {
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
        /// `AggregationTemporality`.
        aggregation_temporality: i32,
    }
}

data_point! {
    /// Quantiles, as older systems report them.
    Summary("otel.Summary") {
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
#[expect(
    clippy::large_enum_variant,
    reason = "a box for each record costs more than the move of a large one"
)]
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
