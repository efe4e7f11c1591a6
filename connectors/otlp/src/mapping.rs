//! OTLP's messages to records and back.

mod from_otlp;
mod to_otlp;
mod value;

#[cfg(test)]
mod tests;

use prost::Message;
use serde::de::DeserializeOwned;

use crate::error::Malformed;
use crate::protocol::Signal;
use crate::types::{
    Exemplar, ExponentialHistogram, Gauge, Histogram, Log, Resource, Scope, Span, Sum, Summary,
    Telemetry,
};

pub(crate) use from_otlp::{resource, scope};
pub(crate) use to_otlp::Request;

/// A message that becomes a record, or several.
pub(crate) trait Item: Message + Default + DeserializeOwned {
    /// Passes on the records, without their source.
    fn records(self, each: &mut dyn FnMut(Result<Telemetry, Malformed>));
}

impl Telemetry {
    pub(crate) const fn signal(&self) -> Signal {
        match self {
            Self::Log(_) => Signal::Logs,
            Self::Span(_) => Signal::Traces,
            _ => Signal::Metrics,
        }
    }

    /// Returns the number of its numbers that OTLP's JSON does not keep: those that are not finite,
    /// outside of arrays and quantiles.
    pub(crate) fn not_finite(&self) -> u64 {
        let (attributes, exemplars, numbers): (_, &[Exemplar], Vec<Option<f64>>) = match self {
            Self::Gauge(it) => (&it.attributes, &it.exemplars, vec![it.f64]),
            Self::Sum(it) => (&it.attributes, &it.exemplars, vec![it.f64]),
            Self::Histogram(it) => {
                let bounds = it.explicit_bounds.iter().copied().map(Some);
                let numbers = [it.sum, it.min, it.max].into_iter().chain(bounds);
                (&it.attributes, &it.exemplars, numbers.collect())
            }
            Self::ExponentialHistogram(it) => {
                let numbers = vec![it.sum, it.min, it.max, Some(it.zero_threshold)];
                (&it.attributes, &it.exemplars, numbers)
            }
            Self::Log(it) => {
                let body = it.body.as_ref().and_then(|it| it.f64);
                (&it.attributes, &[], vec![body])
            }
            Self::Span(it) => (&it.attributes, &[], Vec::new()),
            Self::Summary(it) => (&it.attributes, &[], vec![Some(it.sum)]),
        };
        let numbers = numbers.into_iter();
        let numbers = numbers.chain(attributes.0.iter().map(|it| it.value.f64));
        let numbers = numbers.chain(exemplars.iter().map(|it| it.f64));
        numbers.flatten().filter(|it| !it.is_finite()).count() as u64
    }

    /// Returns the source of the record, which many records share.
    pub(crate) fn source(&mut self) -> (&mut Resource, &mut Scope) {
        macro_rules! source {
            ($($variant:ident)*) => {
                match self {
                    $(Self::$variant($variant { resource, scope, .. }) => (resource, scope),)*
                }
            };
        }
        source!(ExponentialHistogram Gauge Histogram Log Span Sum Summary)
    }
}
