//! The reasons for which records, requests and answers are refused.

use baler_common::transport::RetryClass;

use crate::limits::MAX_RECORD_BYTES;

/// Why a record of a request is not taken, or cannot be sent. The rest of the request is not affected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum Malformed {
    /// The request has more records, with their sources, than a reader converts for one request.
    #[error("the request has too many records, or too large sources")]
    Amount,
    /// Arrays and lists are nested too deeply.
    #[error("an attribute is nested deeper than 32 levels")]
    Depth,
    /// A trace's id has not 16 bytes, a span's id not 8, or a span has none.
    #[error("an id has the wrong length, or is missing")]
    Id,
    /// The bytes are not the message that stands here.
    #[error("the bytes are not the message of this place")]
    Message,
    /// A metric has no data points.
    #[error("a metric has no data points")]
    NoData,
    /// The record is larger than the largest one that fits into a chunk with certainty.
    #[error("a record is larger than {MAX_RECORD_BYTES} bytes")]
    Size,
    /// The JSON text of an attribute is not OTLP's.
    #[error("the JSON text of an attribute is not an AnyValue of OTLP")]
    Value,
}

impl Malformed {
    /// The name of the count of such records.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Amount => "rejected_too_many",
            Self::Depth => "rejected_too_deep",
            Self::Id => "rejected_bad_id",
            Self::Message => "rejected_not_a_message",
            Self::NoData => "rejected_without_data",
            Self::Size => "rejected_too_large",
            Self::Value => "rejected_bad_value",
        }
    }
}

/// Why a whole request is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[non_exhaustive]
pub enum BadRequest {
    /// The reader closes.
    #[error("the receiver is closing")]
    Closing,
    /// The compressed bytes are damaged.
    #[error("the body cannot be decompressed")]
    Compressed,
    /// The compression is unknown.
    #[error("the compression is unknown; use gzip, zstd or identity")]
    Compression,
    /// The type of the content is unknown.
    #[error(
        "the content type is unknown; use application/x-protobuf, application/json or application/grpc"
    )]
    ContentType,
    /// The bytes are not a request of this kind.
    #[error("the body is not a request of this kind")]
    Message,
    /// The method is not POST.
    #[error("the method is not POST")]
    Method,
    /// Too many requests, or bytes of them, wait for their acknowledgement.
    #[error("too many requests wait for their acknowledgement")]
    Overloaded,
    /// Nothing is at this path.
    #[error("nothing is at this path; use /v1/traces, /v1/logs, /v1/metrics or a service of OTLP")]
    Path,
    /// The body is too large, compressed or not.
    #[error("the body is above the limit; send smaller requests")]
    Size,
    /// The body did not arrive in time.
    #[error("the body did not arrive in time")]
    Slow,
}

impl BadRequest {
    /// The name of the count of such requests.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Closing => "requests_while_closing",
            Self::Compressed => "requests_badly_compressed",
            Self::Compression => "requests_of_unknown_compression",
            Self::ContentType => "requests_of_unknown_type",
            Self::Message => "requests_not_readable",
            Self::Method => "requests_by_wrong_method",
            Self::Overloaded => "requests_above_the_limits",
            Self::Path => "requests_to_wrong_path",
            Self::Size => "requests_too_large",
            Self::Slow => "requests_too_slow",
        }
    }

    /// The status of HTTP.
    pub(crate) const fn http(self) -> u16 {
        match self {
            Self::Compressed | Self::Message => 400,
            Self::Path => 404,
            Self::Method => 405,
            Self::Size => 413,
            Self::Compression | Self::ContentType => 415,
            Self::Overloaded => 429,
            Self::Closing | Self::Slow => 503,
        }
    }

    /// Whether the same request may succeed later.
    pub(crate) const fn is_retryable(self) -> bool {
        matches!(self.http(), 429 | 503)
    }

    /// The status of gRPC.
    pub(crate) const fn grpc(self) -> i32 {
        match self.http() {
            // INVALID_ARGUMENT
            400 => 3,
            // RESOURCE_EXHAUSTED, which is final without a time to wait.
            413 => 8,
            // UNAVAILABLE
            429 | 503 => 14,
            // UNIMPLEMENTED
            _ => 12,
        }
    }
}

/// What a receiver's refusal of a request means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request is too large: smaller ones may be taken.
    TooLarge,
    /// A retry may help, or not.
    Class(RetryClass),
}

impl Refusal {
    /// The meaning of a status of HTTP ("OTLP/HTTP Response" in the specification).
    pub(crate) const fn of_http(status: u16) -> Self {
        match status {
            413 => Self::TooLarge,
            429 | 502..=504 => Self::Class(RetryClass::Retry),
            _ => Self::Class(RetryClass::Final),
        }
    }

    /// The meaning of a status of gRPC ("Failures" in the specification).
    pub(crate) const fn of_grpc(status: i32, has_retry_info: bool) -> Self {
        match status {
            // RESOURCE_EXHAUSTED: with a time to wait a quota, otherwise a limit of the size.
            8 if has_retry_info => Self::Class(RetryClass::Retry),
            8 => Self::TooLarge,
            // CANCELLED, DEADLINE_EXCEEDED, ABORTED, OUT_OF_RANGE, UNAVAILABLE, DATA_LOSS
            1 | 4 | 10 | 11 | 14 | 15 => Self::Class(RetryClass::Retry),
            _ => Self::Class(RetryClass::Final),
        }
    }
}
