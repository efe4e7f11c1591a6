//! OTLP's messages to records and back.

mod item;
mod request;
mod value;

#[cfg(test)]
mod tests;

use opentelemetry_proto::tonic::metrics::v1::{exemplar, number_data_point};

use crate::convert::Otlp;
use crate::error::Malformed;
use crate::types::{Number, TraceId};

pub(crate) use item::Item;
pub(crate) use request::{Encoding, request};
pub(crate) use value::attributes_of;

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
