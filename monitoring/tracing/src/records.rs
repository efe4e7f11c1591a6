//! The record types that all spans and events have in common.
//!
//! They are flat, so a record goes straight into the block of its thread. Call sites with fields
//! have types of their own, which begin with the fields of these.

use baler_common::record::{Interned, Record};

/// A span started.
#[derive(Debug, Clone, Copy, Record)]
#[record(name = "baler.SpanStartRecord", rename_all = "camelCase")]
pub(crate) struct SpanStartRecord {
    pub(crate) trace_id: i64,
    #[record(timestamp)]
    pub(crate) tin: i64,
    pub(crate) hostname: Interned,
    pub(crate) eoi: i32,
    pub(crate) ess: i32,
    pub(crate) w3c_trace_high: u64,
    pub(crate) w3c_trace_low: u64,
    pub(crate) span_id: u64,
    pub(crate) parent_span_id: u64,
    pub(crate) level: Interned,
    pub(crate) target: Interned,
    pub(crate) name: Interned,
}

/// A span ended. Its first fields are those of Kieker's `OperationExecutionRecord`, by which the
/// trace analysis finds calls.
#[derive(Debug, Clone, Copy, Record)]
#[record(name = "baler.SpanRecord", rename_all = "camelCase")]
pub(crate) struct SpanRecord {
    pub(crate) operation_signature: Interned,
    pub(crate) trace_id: i64,
    #[record(unix_nanos)]
    pub(crate) tin: i64,
    #[record(timestamp)]
    pub(crate) tout: i64,
    pub(crate) hostname: Interned,
    pub(crate) eoi: i32,
    pub(crate) ess: i32,
    pub(crate) w3c_trace_high: u64,
    pub(crate) w3c_trace_low: u64,
    pub(crate) span_id: u64,
    pub(crate) parent_span_id: u64,
    #[record(nanos)]
    pub(crate) busy: u64,
    #[record(nanos)]
    pub(crate) idle: u64,
    pub(crate) level: Interned,
    pub(crate) target: Interned,
    pub(crate) name: Interned,
}

/// An event: something happened, within a span or outside of all.
#[derive(Debug, Clone, Record)]
#[record(name = "baler.EventRecord", rename_all = "camelCase")]
pub(crate) struct EventRecord {
    pub(crate) trace_id: i64,
    #[record(timestamp)]
    pub(crate) timestamp: i64,
    pub(crate) hostname: Interned,
    pub(crate) w3c_trace_high: u64,
    pub(crate) w3c_trace_low: u64,
    pub(crate) span_id: u64,
    pub(crate) level: Interned,
    pub(crate) target: Interned,
    pub(crate) name: Interned,
    pub(crate) message: String,
}

/// A span follows from another one.
#[derive(Debug, Clone, Copy, Record)]
#[record(name = "baler.SpanLinkRecord", rename_all = "camelCase")]
pub(crate) struct SpanLinkRecord {
    pub(crate) trace_id: i64,
    #[record(timestamp)]
    pub(crate) timestamp: i64,
    pub(crate) w3c_trace_high: u64,
    pub(crate) w3c_trace_low: u64,
    pub(crate) span_id: u64,
    pub(crate) followed_trace_high: u64,
    pub(crate) followed_trace_low: u64,
    pub(crate) followed_span_id: u64,
}
