//! OpenTelemetry's protocol: spans below a resource, which is their host.

use std::hint::black_box;

use baler_rig::workload::PlainCall;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
use prost::Message as _;

use super::super::piece::Piece;
use super::{Format, cannot_decode, cannot_encode};
use crate::Failure;

const HOST: &str = "host.name";
const SESSION: &str = "session.id";
const EOI: &str = "eoi";
const ESS: &str = "ess";

/// A span for each record: the trace's id, the operation as its name, the session and the positions
/// in the call tree as attributes.
pub(in super::super) struct Otlp;

impl Format for Otlp {
    fn encode(&mut self, piece: &Piece<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
        let mut data = TracesData::default();
        let mut host = None;
        for call in &piece.calls {
            if host != Some(call.hostname) {
                host = Some(call.hostname);
                data.resource_spans.push(below(call.hostname));
            }
            let resource = data.resource_spans.last_mut();
            if let Some(scope) = resource.and_then(|below| below.scope_spans.last_mut()) {
                scope.spans.push(span(call)?);
            }
        }
        data.encode(out).map_err(cannot_encode())
    }

    fn decode(&mut self, chunk: &[u8]) -> Result<usize, Failure> {
        let data = black_box(read(chunk)?);
        let scopes = data.resource_spans.iter().flat_map(|it| &it.scope_spans);
        Ok(scopes.map(|scope| scope.spans.len()).sum())
    }

    fn has(&mut self, chunk: &[u8], piece: &Piece<'_>) -> Result<bool, Failure> {
        let data = read(chunk)?;
        let calls = data.resource_spans.iter().flat_map(|below| {
            let host = below.resource.iter().flat_map(|it| &it.attributes);
            let host = text(host, HOST);
            let spans = below.scope_spans.iter().flat_map(|scope| &scope.spans);
            spans.map(move |span| plain(span, host?))
        });
        Ok(calls.eq(piece.calls.iter().copied().map(Some)))
    }
}

fn read(chunk: &[u8]) -> Result<TracesData, Failure> {
    TracesData::decode(chunk).map_err(cannot_decode())
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

fn below(host: &str) -> ResourceSpans {
    ResourceSpans {
        resource: Some(Resource {
            attributes: vec![attribute(HOST, Value::StringValue(host.to_owned()))],
            ..Resource::default()
        }),
        scope_spans: vec![ScopeSpans::default()],
        ..ResourceSpans::default()
    }
}

fn span(call: &PlainCall<'_>) -> Result<Span, Failure> {
    let time = |time| u64::try_from(time).map_err(cannot_encode());
    let trace = call.trace_id.to_be_bytes();
    // Spans need an id within their trace, other than zero.
    let id = (i64::from(call.eoi) + 1).to_be_bytes();
    let session = Value::StringValue(call.session_id.to_owned());
    Ok(Span {
        trace_id: [[0; 8], trace].concat(),
        span_id: id.to_vec(),
        name: call.operation_signature.to_owned(),
        start_time_unix_nano: time(call.tin)?,
        end_time_unix_nano: time(call.tout)?,
        attributes: vec![
            attribute(SESSION, session),
            attribute(EOI, Value::IntValue(call.eoi.into())),
            attribute(ESS, Value::IntValue(call.ess.into())),
        ],
        ..Span::default()
    })
}

fn value<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>, key: &str) -> Option<&'a Value> {
    let mut attributes = attributes.into_iter();
    let found = attributes.find(|attribute| attribute.key == key)?;
    found.value.as_ref()?.value.as_ref()
}

fn text<'a>(attributes: impl IntoIterator<Item = &'a KeyValue>, key: &str) -> Option<&'a str> {
    match value(attributes, key)? {
        Value::StringValue(text) => Some(text),
        _ => None,
    }
}

fn plain<'a>(span: &'a Span, host: &'a str) -> Option<PlainCall<'a>> {
    let number = |key| match value(&span.attributes, key)? {
        Value::IntValue(number) => i32::try_from(*number).ok(),
        _ => None,
    };
    let trace = span.trace_id.last_chunk::<8>()?;
    Some(PlainCall {
        operation_signature: &span.name,
        session_id: text(&span.attributes, SESSION)?,
        trace_id: i64::from_be_bytes(*trace),
        tin: i64::try_from(span.start_time_unix_nano).ok()?,
        tout: i64::try_from(span.end_time_unix_nano).ok()?,
        hostname: host,
        eoi: number(EOI)?,
        ess: number(ESS)?,
    })
}
