//! Requests to chunks.
//!
//! body -> envelopes -> messages of records, one at a time -> records -> batch -> chunks
//!
//! The messages around the records are envelopes: they are taken apart here, and not by a library. So
//! a malformed record costs only itself, and a small body cannot become a large tree of messages.

mod json;
mod protobuf;

#[cfg(test)]
pub(crate) mod tests;

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde::de::DeserializeOwned;

use crate::convert::Otlp;
use crate::error::{BadRequest, Malformed};
use crate::limits::MAX_RECORD_BYTES;
use crate::mapping::Item;
use crate::protocol::Signal;
use crate::sink::{Head, Sink};
use crate::types;

pub(crate) use json::Json;
pub(crate) use protobuf::Protobuf;

/// A form of requests.
pub(crate) trait Form {
    /// The contents of an envelope, in their order.
    type Items<'a>: Iterator<Item = Result<&'a [u8], BadRequest>>;

    /// Takes an envelope apart.
    fn open<'a>(bytes: &'a [u8], names: Names)
    -> Result<Envelope<'a, Self::Items<'a>>, BadRequest>;

    /// Decodes a message that is no envelope.
    fn message<M: Message + Default + DeserializeOwned>(bytes: &[u8]) -> Option<M>;
}

/// A message around others.
pub(crate) struct Envelope<'a, I> {
    /// The resource or the scope.
    head: Option<&'a [u8]>,
    items: I,
    schema_url: String,
}

/// The names of an envelope's fields in JSON.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    head: &'static str,
    items: &'static str,
}

/// Decodes a request into a sink.
///
/// # Errors
///
/// The body is not a request of this kind. Records before the fault are in the sink.
pub(crate) fn decode<F: Form>(
    signal: Signal,
    body: &[u8],
    sink: &mut Sink,
) -> Result<(), BadRequest> {
    match signal {
        Signal::Logs => decode_items::<F, LogRecord>(body, sink),
        Signal::Metrics => decode_items::<F, Metric>(body, sink),
        Signal::Traces => decode_items::<F, Span>(body, sink),
    }
}

fn decode_items<F: Form, I: Item>(body: &[u8], sink: &mut Sink) -> Result<(), BadRequest> {
    let [sources, scopes, items] = I::NAMES;
    let open = |bytes, head, items| F::open(bytes, Names { head, items });
    for source in open(body, "", sources)?.items {
        let source = open(source?, "resource", scopes)?;
        sink.resource = head::<F, Resource, types::Resource>(source.head);
        sink.resource.part.schema_url = source.schema_url;
        for scope in source.items {
            let scope = open(scope?, "scope", items)?;
            sink.scope = head::<F, InstrumentationScope, types::Scope>(scope.head);
            sink.scope.part.schema_url = scope.schema_url;
            for item in scope.items {
                let item = item?;
                sink.charge(item.len());
                let message = match sink.has_room() {
                    true => message::<F, I>(item),
                    false => Err(Malformed::Amount),
                };
                match message {
                    Ok(message) => message.add_to(sink),
                    Err(malformed) => sink.push(Err(malformed)),
                }
            }
        }
    }
    Ok(())
}

/// Decodes a resource or scope, but for its schema.
fn head<F: Form, M: Message + Default + DeserializeOwned, P: Otlp<M> + Default>(
    bytes: Option<&[u8]>,
) -> Head<P> {
    let head = bytes.map_or_else(|| Ok(M::default()), message::<F, M>);
    let part = head.and_then(P::from_otlp);
    Head {
        bytes: bytes.map_or(0, <[u8]>::len),
        malformed: part.as_ref().err().copied(),
        part: part.unwrap_or_default(),
    }
}

fn message<F: Form, M: Message + Default + DeserializeOwned>(bytes: &[u8]) -> Result<M, Malformed> {
    match bytes.len() {
        ..=MAX_RECORD_BYTES => F::message(bytes).ok_or(Malformed::Message),
        _ => Err(Malformed::Size),
    }
}
