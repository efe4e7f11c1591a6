//! Online anomaly detection.
//!
//! Kieker's package `kieker.tools.opad.record`.

use crate::record::Record;

/// A window of time over which values are aggregated.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.tools.opad.record.AggregationWindow",
    rename_all = "camelCase"
)]
pub struct AggregationWindow {
    /// Where it begins; the unit is the sender's.
    pub window_start: i64,
    /// Where it ends; the unit is the sender's.
    pub window_end: i64,
}

/// A value, its forecast, how anomalous it is, and from where on that counts.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.tools.opad.record.ExtendedStorableDetectionResult",
    rename_all = "camelCase"
)]
pub struct ExtendedStorableDetectionResult {
    /// The application.
    pub application_name: String,
    /// The value.
    pub value: f64,
    /// When it was measured; the unit is the sender's.
    pub timestamp: i64,
    /// The value that was forecast.
    pub forecast: f64,
    /// How anomalous the value is.
    pub score: f64,
    /// The score from which on a value counts as anomalous.
    pub anomaly_threshold: f64,
}

/// A response time of an application.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.tools.opad.record.NamedDoubleRecord",
    rename_all = "camelCase"
)]
pub struct NamedDoubleRecord {
    /// The application.
    pub application_name: String,
    /// When it was measured; the unit is the sender's.
    pub timestamp: i64,
    /// The response time; the unit is the sender's.
    pub response_time: f64,
}

/// A point of a named time series.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.tools.opad.record.NamedTSPoint",
    rename_all = "camelCase"
)]
pub struct NamedTSPoint {
    /// When it was measured; the unit is the sender's.
    pub timestamp: i64,
    /// The value.
    pub value: f64,
    /// The series.
    pub name: String,
}

/// A value, its forecast and how anomalous it is.
#[derive(Debug, Clone, PartialEq, Record)]
#[record(
    name = "kieker.tools.opad.record.StorableDetectionResult",
    rename_all = "camelCase"
)]
pub struct StorableDetectionResult {
    /// The application.
    pub application_name: String,
    /// The value.
    pub value: f64,
    /// When it was measured; the unit is the sender's.
    pub timestamp: i64,
    /// The value that was forecast.
    pub forecast: f64,
    /// How anomalous the value is.
    pub score: f64,
}
