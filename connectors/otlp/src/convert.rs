//! Parts of messages of OTLP to parts of records and back.

use crate::error::Malformed;

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
