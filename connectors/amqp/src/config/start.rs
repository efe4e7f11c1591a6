//! Where a reader begins in a stream.

use std::str::FromStr;

use lapin::types::AMQPValue;

/// Where a reader begins in a stream (RabbitMQ's `x-stream-offset`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Start {
    /// With the oldest chunk that is kept.
    First,
    /// With the last batch that the broker wrote.
    Last,
    /// With what is written from now on.
    Next,
    /// With the chunk of this number, or the oldest one behind it.
    Offset(u64),
    /// With the batch in which the chunk of this time is, in seconds of Unix time.
    Timestamp(u64),
}

/// What [`Start`] is written as.
pub(super) const EXPECTED: &str =
    "first, last, next, an offset, or timestamp: and seconds of Unix time";

impl Start {
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "first" => Some(Self::First),
            "last" => Some(Self::Last),
            "next" => Some(Self::Next),
            _ => match text.strip_prefix("timestamp:") {
                Some(seconds) => seconds.parse().ok().map(Self::Timestamp),
                None => u64::from_str(text).ok().map(Self::Offset),
            },
        }
    }

    /// The value of `x-stream-offset`.
    pub(crate) fn argument(self) -> AMQPValue {
        let text = |text: &str| AMQPValue::LongString(text.into());
        match self {
            Self::First => text("first"),
            Self::Last => text("last"),
            Self::Next => text("next"),
            Self::Offset(offset) => {
                AMQPValue::LongLongInt(i64::try_from(offset).unwrap_or(i64::MAX))
            }
            Self::Timestamp(seconds) => AMQPValue::Timestamp(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn start_is_a_word_an_offset_or_a_time() {
        assert_eq!(Start::parse("next"), Some(Start::Next));
        assert_eq!(Start::parse("17"), Some(Start::Offset(17)));
        let time = Start::Timestamp(1_700_000_000);
        assert_eq!(Start::parse("timestamp:1700000000"), Some(time));
        assert_eq!(time.argument(), AMQPValue::Timestamp(1_700_000_000));
        for wrong in ["", "-1", "lst", "timestamp:", "1h"] {
            assert_eq!(Start::parse(wrong), None, "{wrong}");
        }
    }
}
