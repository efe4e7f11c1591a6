//! Events of `tracing`, and links between its spans, as log records.

use baler_common::record::{AnyValue, Record};

use super::call::{resource, string, w3c_id};
use crate::types::{Attributes, Log, Scope};

/// The levels of `tracing`, and the `SeverityNumber` of each.
const LEVELS: [(&str, i32); 5] = [
    ("TRACE", 1),
    ("DEBUG", 5),
    ("INFO", 9),
    ("WARN", 13),
    ("ERROR", 17),
];

/// The fields that make a record an event. Its other fields become attributes.
#[derive(Debug, Record)]
#[record(name = "otel.Event", rename_all = "camelCase")]
pub(super) struct Event {
    /// Kieker's number of the trace.
    trace_id: i64,
    timestamp: i64,
    hostname: String,
    w3c_trace_high: u64,
    w3c_trace_low: u64,
    span_id: u64,
    level: String,
    target: String,
    name: String,
    message: String,
}

impl Event {
    /// The fields that a record of an event must have.
    pub(super) const REQUIRED: &[&str] =
        &["timestamp", "w3cTraceHigh", "spanId", "target", "message"];

    /// Makes a log record with these further attributes.
    pub(super) fn log(self, attributes: Attributes, service: Option<&str>) -> Log {
        let severity = LEVELS.iter().find(|(level, _)| *level == self.level);
        // By default the name of an event is its place in the source.
        let event_name = match self.name.starts_with("event ") {
            true => String::new(),
            false => self.name,
        };
        Log {
            resource: resource(service, &self.hostname),
            scope: Scope {
                name: self.target,
                ..Scope::default()
            },
            severity_number: severity.map_or(0, |(_, number)| *number),
            severity_text: self.level,
            body: Some(AnyValue::String(self.message.into())),
            attributes,
            event_name,
            ..log(
                self.timestamp,
                w3c_id(self.w3c_trace_high, self.w3c_trace_low),
                self.span_id,
            )
        }
    }
}

/// The fields of a link between spans of `tracing`: one follows from another one.
#[derive(Debug, Record)]
#[record(name = "otel.FollowsFrom", rename_all = "camelCase")]
pub(super) struct FollowsFrom {
    timestamp: i64,
    w3c_trace_high: u64,
    w3c_trace_low: u64,
    span_id: u64,
    followed_trace_high: u64,
    followed_trace_low: u64,
    followed_span_id: u64,
}

impl FollowsFrom {
    /// The fields that a record of a link must have.
    pub(super) const REQUIRED: &[&str] = &["timestamp", "spanId", "followedSpanId"];

    /// Makes a log record: the span, which could hold the link, ends later, often in another chunk.
    pub(super) fn log(&self, service: Option<&str>) -> Log {
        let followed = w3c_id(self.followed_trace_high, self.followed_trace_low);
        Log {
            resource: resource(service, ""),
            attributes: Attributes(vec![
                string("link.trace_id", &format!("{followed:032x}")),
                string("link.span_id", &format!("{:016x}", self.followed_span_id)),
            ]),
            event_name: "follows_from".into(),
            ..log(
                self.timestamp,
                w3c_id(self.w3c_trace_high, self.w3c_trace_low),
                self.span_id,
            )
        }
    }
}

fn log(timestamp: i64, trace: u128, span_id: u64) -> Log {
    let time = u64::try_from(timestamp).unwrap_or(0);
    Log {
        time_unix_nano: Some(time),
        observed_time_unix_nano: time,
        trace_id: trace.into(),
        span_id,
        ..Log::default()
    }
}
