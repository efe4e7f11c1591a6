//! What all types of records have in common.

use baler_common::record::AnyValue;

use crate::protocol::Signal;
use crate::types::{Exemplar, Resource, Scope, Telemetry};

/// Does the same with a record of any type.
macro_rules! each {
    ($telemetry:expr, $record:ident => $result:expr) => {
        match $telemetry {
            $crate::types::Telemetry::ExponentialHistogram($record) => $result,
            $crate::types::Telemetry::Gauge($record) => $result,
            $crate::types::Telemetry::Histogram($record) => $result,
            $crate::types::Telemetry::Log($record) => $result,
            $crate::types::Telemetry::Span($record) => $result,
            $crate::types::Telemetry::Sum($record) => $result,
            $crate::types::Telemetry::Summary($record) => $result,
        }
    };
}
pub(crate) use each;

impl Telemetry {
    /// Returns the kind of the record.
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
        let number = |value: &AnyValue<'_>| match value {
            AnyValue::F64(number) => Some(*number),
            _ => None,
        };
        let (exemplars, numbers): (&[Exemplar], Vec<_>) = match self {
            Self::Gauge(it) => (&it.exemplars, vec![it.value.f64]),
            Self::Sum(it) => (&it.exemplars, vec![it.value.f64]),
            Self::Histogram(it) => {
                let bounds = it.explicit_bounds.iter().copied().map(Some);
                let numbers = [it.sum, it.min, it.max].into_iter().chain(bounds);
                (&it.exemplars, numbers.collect())
            }
            Self::ExponentialHistogram(it) => {
                let numbers = vec![it.sum, it.min, it.max, Some(it.zero_threshold)];
                (&it.exemplars, numbers)
            }
            Self::Log(it) => (&[], it.body.iter().map(number).collect()),
            Self::Span(_) => (&[], Vec::new()),
            Self::Summary(it) => (&[], vec![Some(it.sum)]),
        };
        let attributes = each!(self, it => &it.attributes);
        let numbers = numbers.into_iter();
        let numbers = numbers.chain(attributes.0.iter().map(|(_, value)| number(value)));
        let numbers = numbers.chain(exemplars.iter().map(|it| it.value.f64));
        numbers.flatten().filter(|it| !it.is_finite()).count() as u64
    }

    /// Returns the source of the record, which many records share.
    pub(crate) fn source(&mut self) -> (&mut Resource, &mut Scope) {
        each!(self, it => (&mut it.resource, &mut it.scope))
    }
}
