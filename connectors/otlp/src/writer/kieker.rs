//! Kieker's calls as spans.
//!
//! A call becomes the same span for every consumer: its ids follow from the record's trace id and order
//! index (eoi) alone. The caller of a call is the last call before it whose stack (ess) is smaller by
//! one; [`Calls`] knows it.

use std::collections::HashMap;

use baler_common::record::AnyValue;
use baler_common::transport::ChunkIdentity;
use baler_connector_kieker::types::OperationExecutionRecord;

use super::calls::{Calls, has_trace};
use crate::types::{Attributes, Resource, Scope, Span, TraceId};

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: i32 = 1;

/// What Kieker writes for no session.
const NO_SESSION: &str = "<no-session-id>";

/// Makes spans of the calls of a chunk. Returns also the number of those whose caller is unknown.
pub(super) fn spans(
    calls: &[OperationExecutionRecord],
    known: &Calls,
    identity: ChunkIdentity,
) -> (Vec<Span>, u64) {
    let mut traces = HashMap::new();
    let mut without_parent = 0;
    let spans = calls.iter().zip(0..).map(|(call, position)| {
        let trace_id = call.trace_id;
        let callers = traces
            .entry(trace_id)
            .or_insert_with(|| known.callers(trace_id));
        let caller = callers.get(&call.eoi).copied();
        without_parent += u64::from(call.ess > 0 && caller.is_none());
        span(call, caller, identity, position)
    });
    let spans = spans.collect();
    (spans, without_parent)
}

fn span(
    call: &OperationExecutionRecord,
    caller: Option<i32>,
    identity: ChunkIdentity,
    position: u64,
) -> Span {
    // Without a trace, each call is one of its own.
    let low = match has_trace(call) {
        true => mix(call.trace_id.cast_unsigned()),
        false => mix(seed(identity).wrapping_add(position)),
    };
    let signature = &call.operation_signature;
    let name = signature.split('(').next().unwrap_or(signature);
    let name = name.rsplit(' ').next().unwrap_or(name);
    let string = |key: &str, value: &str| (key.into(), AnyValue::String(value.to_owned().into()));
    let number = |key: &str, value| (key.into(), AnyValue::I64(value));
    let mut attributes = vec![
        string("code.function.name", name),
        string("kieker.signature", signature),
        number("kieker.trace_id", call.trace_id),
        number("kieker.eoi", call.eoi.into()),
        number("kieker.ess", call.ess.into()),
    ];
    if call.session_id != NO_SESSION {
        attributes.push(string("session.id", &call.session_id));
    }
    let host = &*call.hostname;
    Span {
        resource: Resource {
            attributes: Attributes(vec![
                string("service.name", host),
                string("host.name", host),
            ]),
            ..Resource::default()
        },
        scope: Scope {
            name: "kieker".into(),
            ..Scope::default()
        },
        trace_id: TraceId {
            high: mix(low),
            low,
        },
        span_id: span_id(low, call.eoi),
        parent_span_id: caller.map_or(0, |eoi| span_id(low, eoi)),
        name: name.into(),
        kind: INTERNAL,
        start_time_unix_nano: u64::try_from(call.tin).unwrap_or(0),
        end_time_unix_nano: u64::try_from(call.tout).unwrap_or(0),
        attributes: Attributes(attributes),
        ..Span::default()
    }
}

/// Returns the id of the call with this order index.
fn span_id(trace_id_low: u64, eoi: i32) -> u64 {
    mix(trace_id_low.wrapping_add(u64::from(eoi.cast_unsigned()) + 1))
}

/// Returns a number for a chunk.
fn seed(identity: ChunkIdentity) -> u64 {
    let bytes = identity.to_bytes();
    let (words, _) = bytes.as_chunks();
    words
        .iter()
        .fold(0, |seed, word| mix(seed ^ u64::from_le_bytes(*word)))
}

/// Distributes numbers evenly: the last step of splitmix64 (Steele and others 2014), which is one to
/// one. But no result is 0, which is no valid id.
fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (mixed ^ (mixed >> 31)).max(1)
}
