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
    ExponentialHistogram, Gauge, Histogram, Log, Resource, Scope, Span, Sum, Summary, Telemetry,
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
