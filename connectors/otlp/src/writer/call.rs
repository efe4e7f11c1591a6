//! Finished calls as spans: Kieker's calls, those of other probes, and spans of `tracing`.
//!
//! A call becomes the same span for every consumer: its ids follow from the record's trace id and
//! order index (`eoi`), as in the headers that the application has sent ([`w3c`]). The caller of a
//! call is the last call before it whose stack (`ess`) is smaller by one; [`Calls`] knows it.

use std::collections::HashMap;

use baler_common::record::{AnyValue, Record};
use baler_common::transport::ChunkIdentity;
use baler_connector_kieker::types::TraceMetadata;
use baler_connector_kieker::w3c;

use super::calls::{Calls, Origin, Place};
use crate::types::{Attributes, Resource, Scope, Span, TraceId};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: i32 = 1;

/// The values of `otel.kind` as in the crate `tracing-opentelemetry`, in the order of `SpanKind`.
const KINDS: [&str; 5] = ["internal", "server", "client", "producer", "consumer"];

/// The values of `otel.status_code`, in the order of `StatusCode` from 1.
const STATUSES: [&str; 2] = ["ok", "error"];

/// What Kieker writes for no session.
const NO_SESSION: &str = "<no-session-id>";

/// The fields that make a record a call. Its other fields become attributes.
#[derive(Debug, Record)]
#[record(name = "otel.Call", rename_all = "camelCase")]
pub(super) struct Call {
    operation_signature: String,
    tin: i64,
    tout: i64,
    #[record(default = -1)]
    trace_id: i64,
    #[record(default = -1)]
    eoi: i32,
    #[record(default = -1)]
    ess: i32,
    #[record(default)]
    hostname: String,
    #[record(default)]
    session_id: String,
    // The following are fields of spans of `tracing`.
    w3c_trace_high: Option<u64>,
    w3c_trace_low: Option<u64>,
    /// It follows from trace and order index, too.
    span_id: Option<u64>,
    parent_span_id: Option<u64>,
    name: Option<String>,
    target: Option<String>,
}

impl Call {
    /// The fields that a record of a call must have.
    pub(super) const REQUIRED: &[&str] = &["operationSignature", "tin", "tout"];

    /// Returns its place, if it belongs to a trace.
    pub(super) fn place(&self) -> Option<Place> {
        (self.trace_id != -1 && self.eoi >= 0 && self.ess >= 0).then_some(Place {
            trace_id: self.trace_id,
            eoi: self.eoi,
            ess: self.ess,
            tin: self.tin,
            tout: self.tout,
            awaits_caller: self.parent_span_id.is_none(),
        })
    }

    fn w3c_trace(&self) -> Option<u128> {
        Some(w3c_id(self.w3c_trace_high?, self.w3c_trace_low?))
    }

    /// Returns the origin of its trace, if it is known to come from another process.
    pub(super) fn origin(&self) -> Option<(i64, Origin)> {
        let trace = self.w3c_trace()?;
        let span = 0;
        (trace != w3c::trace_id(self.trace_id)).then_some((self.trace_id, Origin { trace, span }))
    }
}

/// Returns the origin that the metadata of a trace tells.
pub(super) fn origin_of(metadata: &TraceMetadata) -> Option<(i64, Origin)> {
    let (trace, span) = w3c::recorded_parent(&metadata.session_id)?;
    Some((metadata.trace_id, Origin { trace, span }))
}

/// Makes spans of the calls of a chunk.
#[derive(Debug)]
pub(super) struct SpanMaker<'a> {
    pub(super) known: &'a Calls,
    pub(super) identity: ChunkIdentity,
    /// The name of the service, if it is not the host.
    pub(super) service: Option<&'a str>,
    /// The callers in each trace.
    callers: HashMap<i64, HashMap<i32, i32>>,
    /// The number of calls whose caller is unknown.
    pub(super) without_parent: u64,
}

impl<'a> SpanMaker<'a> {
    pub(super) fn new(known: &'a Calls, identity: ChunkIdentity, service: Option<&'a str>) -> Self {
        Self {
            known,
            identity,
            service,
            callers: HashMap::new(),
            without_parent: 0,
        }
    }

    /// Makes the span of a call with these further attributes, at this position in the chunk.
    pub(super) fn span(&mut self, call: Call, others: Attributes, position: u64) -> Span {
        let (trace, span_id, parent) = match call.place() {
            Some(place) => self.ids(&call, place),
            // Without a trace, each call is one of its own.
            None => {
                let number = w3c::mix(seed(self.identity).wrapping_add(position));
                let number = number.cast_signed();
                (w3c::trace_id(number), w3c::span_id(number, 0), 0)
            }
        };
        let signature = call.operation_signature;
        let function = signature.split('(').next().unwrap_or(&signature);
        let function = function.rsplit(' ').next().unwrap_or(function).to_owned();
        let number = |key: &str, value| (key.into(), AnyValue::I64(value));
        let mut attributes = vec![
            string("code.function.name", &function),
            string("kieker.signature", &signature),
            number("kieker.trace_id", call.trace_id),
            number("kieker.eoi", call.eoi.into()),
            number("kieker.ess", call.ess.into()),
        ];
        if ![NO_SESSION, ""].contains(&&*call.session_id) {
            attributes.push(string("session.id", &call.session_id));
        }
        let mut span = Span {
            resource: resource(self.service, &call.hostname),
            scope: Scope {
                name: call.target.unwrap_or_else(|| "kieker".into()),
                ..Scope::default()
            },
            trace_id: trace.into(),
            span_id,
            parent_span_id: parent,
            name: call.name.unwrap_or(function),
            kind: INTERNAL,
            start_time_unix_nano: u64::try_from(call.tin).unwrap_or(0),
            end_time_unix_nano: u64::try_from(call.tout).unwrap_or(0),
            ..Span::default()
        };
        for (key, value) in others.0 {
            if !set(&mut span, &key, &value) {
                attributes.push((key, value));
            }
        }
        span.attributes = Attributes(attributes);
        span
    }

    /// Returns the ids of trace, span and parent of a call with a place.
    fn ids(&mut self, call: &Call, place: Place) -> (u128, u64, u64) {
        let Place { trace_id, eoi, .. } = place;
        let origin = self.known.origin(trace_id);
        let trace = call.w3c_trace().or_else(|| origin.map(|it| it.trace));
        let callers = self.callers.entry(trace_id);
        let callers = callers.or_insert_with(|| self.known.callers(trace_id));
        let caller = callers.get(&eoi).map(|it| w3c::span_id(trace_id, *it));
        let outside = || match place.ess {
            0 => origin.map(|it| it.span),
            _ => None,
        };
        let parent = caller.or(call.parent_span_id).or_else(outside);
        self.without_parent += u64::from(place.ess > 0 && parent.is_none());
        (
            trace.unwrap_or_else(|| w3c::trace_id(trace_id)),
            w3c::span_id(trace_id, eoi),
            parent.unwrap_or(0),
        )
    }
}

/// Sets what an attribute says about the span itself, by the names of `tracing-opentelemetry`.
/// Returns whether it does.
fn set(span: &mut Span, key: &str, value: &AnyValue<'_>) -> bool {
    let AnyValue::String(text) = value else {
        return false;
    };
    let position = |names: &[&str]| {
        let found = names.iter().position(|it| text.eq_ignore_ascii_case(it))?;
        i32::try_from(found + 1).ok()
    };
    match key {
        "otel.kind" => position(&KINDS).map(|kind| span.kind = kind).is_some(),
        "otel.name" => {
            span.name = text.as_ref().into();
            true
        }
        "otel.status_code" => {
            let code = position(&STATUSES);
            code.map(|it| span.status.get_or_insert_default().code = it)
                .is_some()
        }
        "otel.status_description" | "otel.status_message" => {
            span.status.get_or_insert_default().message = text.as_ref().into();
            true
        }
        _ => false,
    }
}

/// Returns the source of records of a host.
pub(super) fn resource(service: Option<&str>, host: &str) -> Resource {
    let service = service.or(Some(host)).map(|it| ("service.name", it));
    let all = [service, Some(("host.name", host))].into_iter().flatten();
    let known = all.filter(|(_, value)| !value.is_empty());
    Resource {
        attributes: Attributes(known.map(|(key, value)| string(key, value)).collect()),
        ..Resource::default()
    }
}

pub(super) fn string(key: &str, value: &str) -> (String, AnyValue<'static>) {
    (key.into(), AnyValue::String(value.to_owned().into()))
}

/// Joins the halves of a W3C id.
pub(super) fn w3c_id(high: u64, low: u64) -> u128 {
    (u128::from(high) << 64) | u128::from(low)
}

impl From<u128> for TraceId {
    fn from(id: u128) -> Self {
        let bytes = id.to_be_bytes();
        let (halves, _) = bytes.as_chunks();
        let mut halves = halves.iter().map(|it| u64::from_be_bytes(*it));
        Self {
            high: halves.next().unwrap_or(0),
            low: halves.next().unwrap_or(0),
        }
    }
}

/// Returns a number for a chunk.
fn seed(identity: ChunkIdentity) -> u64 {
    let bytes = identity.to_bytes();
    let (words, _) = bytes.as_chunks();
    words
        .iter()
        .fold(0, |seed, word| w3c::mix(seed ^ u64::from_le_bytes(*word)))
}
