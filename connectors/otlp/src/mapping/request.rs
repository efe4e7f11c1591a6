//! Records to requests.

use std::fmt::Debug;

use opentelemetry_proto::tonic::common::v1::InstrumentationScope;
use opentelemetry_proto::tonic::logs::v1::LogRecord;
use opentelemetry_proto::tonic::metrics::v1::Metric;
use opentelemetry_proto::tonic::resource::v1::Resource as OtlpResource;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use serde_json::json;

use super::Item;
use crate::convert::Otlp as _;
use crate::error::Malformed;
use crate::protocol::Signal;
use crate::types::{Resource, Scope, Telemetry};

/// A form of requests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Encoding {
    /// A line without its end.
    Json,
    Protobuf,
}

/// Makes a request of the records of a signal.
///
/// # Errors
///
/// An attribute is not as this crate stores attributes.
pub(crate) fn request(
    signal: Signal,
    records: Vec<Telemetry>,
    encoding: Encoding,
) -> Result<Vec<u8>, Malformed> {
    match signal {
        Signal::Logs => encode::<LogRecord>(records, encoding),
        Signal::Metrics => encode::<Metric>(records, encoding),
        Signal::Traces => encode::<Span>(records, encoding),
    }
}

/// The message around others, which has the same numbers for sources, for scopes and for each signal.
#[derive(Clone, PartialEq, Message)]
struct Envelope<H: Debug + Message + Default, I: Debug + Message + Default> {
    #[prost(message, optional, tag = "1")]
    head: Option<H>,
    #[prost(message, repeated, tag = "2")]
    items: Vec<I>,
    #[prost(string, tag = "3")]
    schema_url: String,
}

type Source<I> = Envelope<OtlpResource, Envelope<InstrumentationScope, I>>;

fn encode<I: Item>(records: Vec<Telemetry>, encoding: Encoding) -> Result<Vec<u8>, Malformed> {
    let sources = sources::<I>(records)?;
    let mut bytes = Vec::new();
    match encoding {
        Encoding::Protobuf => prost::encoding::message::encode_repeated(1, &sources, &mut bytes),
        Encoding::Json => bytes = json_of(&sources).to_string().into(),
    }
    Ok(bytes)
}

fn json_of<I: Item>(sources: &[Source<I>]) -> serde_json::Value {
    let [name, scopes, items] = I::NAMES;
    let scope = |it: &Envelope<_, I>| json!({ "scope": it.head, (items): it.items, "schemaUrl": it.schema_url });
    let source = |it: &Source<I>| {
        let all: Vec<_> = it.items.iter().map(scope).collect();
        json!({ "resource": it.head, (scopes): all, "schemaUrl": it.schema_url })
    };
    let all: Vec<_> = sources.iter().map(source).collect();
    json!({ (name): all })
}

/// The number of latest sources among which a record's source is looked for. A batch of more sources
/// has some of them twice, which OTLP allows.
const MAX_SOURCES: usize = 64;

/// Puts records with the same source together.
fn sources<I: Item>(records: Vec<Telemetry>) -> Result<Vec<Source<I>>, Malformed> {
    let mut groups: Vec<(Resource, Scope, Vec<I>)> = Vec::new();
    for mut record in records {
        let (resource, scope) = record.source();
        let (resource, scope) = (std::mem::take(resource), std::mem::take(scope));
        let mut latest = groups.iter_mut().rev().take(MAX_SOURCES);
        match latest.find(|it| it.0 == resource && it.1 == scope) {
            Some((_, _, items)) => I::add(record, items)?,
            None => {
                let mut items = Vec::new();
                I::add(record, &mut items)?;
                groups.push((resource, scope, items));
            }
        }
    }
    let mut sources: Vec<Source<I>> = Vec::new();
    let mut last = None;
    for (resource, scope, items) in groups {
        let scope = Envelope {
            schema_url: scope.schema_url.clone(),
            head: Some(scope.into_otlp()?),
            items,
        };
        match sources.last_mut() {
            Some(source) if last.as_ref() == Some(&resource) => source.items.push(scope),
            _ => {
                sources.push(Envelope {
                    schema_url: resource.schema_url.clone(),
                    head: Some(resource.clone().into_otlp()?),
                    items: vec![scope],
                });
                last = Some(resource);
            }
        }
    }
    Ok(sources)
}
