//! OTLP's messages to records and back.

mod item;
mod request;
mod value;

#[cfg(test)]
mod tests;

use baler_common::record::AnyValue;
use opentelemetry_proto::tonic::metrics::v1::{exemplar, number_data_point};

use crate::error::Malformed;
use crate::protocol::Signal;
use crate::types::{Exemplar, Number, Resource, Scope, Telemetry, TraceId};

pub(crate) use item::Item;
pub(crate) use request::{Encoding, request};
pub(crate) use value::attributes_of;

/// A part of a record that is a part `M` of a message of OTLP.
pub(crate) trait Otlp<M>: Sized {
    /// Makes the part of a record.
    fn from_otlp(message: M) -> Result<Self, Malformed>;

    /// Makes the part of a message. It fails only for records that this crate did not make.
    fn into_otlp(self) -> Result<M, Malformed>;
}

/// Types that are the same in records and messages.
macro_rules! same {
    ($($type:ty)*) => {$(
        impl Otlp<Self> for $type {
            fn from_otlp(message: Self) -> Result<Self, Malformed> {
                Ok(message)
            }

            fn into_otlp(self) -> Result<Self, Malformed> {
                Ok(self)
            }
        }
    )*};
}

same!(f64 i32 u32 u64 String);

impl<T: Otlp<M>, M> Otlp<Vec<M>> for Vec<T> {
    fn from_otlp(message: Vec<M>) -> Result<Self, Malformed> {
        message.into_iter().map(T::from_otlp).collect()
    }

    fn into_otlp(self) -> Result<Vec<M>, Malformed> {
        self.into_iter().map(T::into_otlp).collect()
    }
}

impl<T: Otlp<M>, M> Otlp<Option<M>> for Option<T> {
    fn from_otlp(message: Option<M>) -> Result<Self, Malformed> {
        message.map(T::from_otlp).transpose()
    }

    fn into_otlp(self) -> Result<Option<M>, Malformed> {
        self.map(T::into_otlp).transpose()
    }
}

/// A time of 0 is none.
impl Otlp<u64> for Option<u64> {
    fn from_otlp(message: u64) -> Result<Self, Malformed> {
        Ok(Some(message).filter(|it| *it != 0))
    }

    fn into_otlp(self) -> Result<u64, Malformed> {
        Ok(self.unwrap_or(0))
    }
}

/// The id of a span; 0 if there is none.
impl Otlp<Vec<u8>> for u64 {
    fn from_otlp(message: Vec<u8>) -> Result<Self, Malformed> {
        match message.as_slice().try_into() {
            Ok(bytes) => Ok(Self::from_be_bytes(bytes)),
            Err(_) if message.is_empty() => Ok(0),
            Err(_) => Err(Malformed::Id),
        }
    }

    fn into_otlp(self) -> Result<Vec<u8>, Malformed> {
        Ok(match self {
            0 => Vec::new(),
            id => id.to_be_bytes().into(),
        })
    }
}

impl Otlp<Vec<u8>> for TraceId {
    fn from_otlp(message: Vec<u8>) -> Result<Self, Malformed> {
        let halves = message.as_slice().split_first_chunk();
        match halves.map(|(high, low)| (high, low.try_into())) {
            Some((high, Ok(low))) => Ok(Self {
                high: u64::from_be_bytes(*high),
                low: u64::from_be_bytes(low),
            }),
            None if message.is_empty() => Ok(Self::default()),
            _ => Err(Malformed::Id),
        }
    }

    fn into_otlp(self) -> Result<Vec<u8>, Malformed> {
        Ok(match self {
            Self { high: 0, low: 0 } => Vec::new(),
            Self { high, low } => [high.to_be_bytes(), low.to_be_bytes()].concat(),
        })
    }
}

macro_rules! number {
    ($($message:path)*) => {$(
        impl Otlp<Option<$message>> for Number {
            fn from_otlp(message: Option<$message>) -> Result<Self, Malformed> {
                type Value = $message;
                let (i64, f64) = match message {
                    None => (None, None),
                    Some(Value::AsInt(value)) => (Some(value), None),
                    Some(Value::AsDouble(value)) => (None, Some(value)),
                };
                Ok(Self { i64, f64 })
            }

            fn into_otlp(self) -> Result<Option<$message>, Malformed> {
                type Value = $message;
                let whole = self.i64.map(Value::AsInt);
                Ok(whole.or(self.f64.map(Value::AsDouble)))
            }
        }
    )*};
}

number!(exemplar::Value number_data_point::Value);

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
