//! The reasons for which records, requests and answers are refused.

use baler_common::transport::RetryClass;

use crate::limits::MAX_RECORD_BYTES;

/// Declares reasons: for each the name of the count of its cases, and its text.
macro_rules! reasons {
    (
        $(#[$attribute:meta])*
        $name:ident { $($(#[$doc:meta])* $variant:ident($count:literal) = $text:literal,)* }
    ) => {
        $(#[$attribute])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$doc])* #[error($text)] $variant,)*
        }

        impl $name {
            /// The name of the count of its cases.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $count,)*
                }
            }
        }
    };
}

reasons! {
    /// Why a record of a request is not taken, or cannot be sent. The rest of the request is not affected.
    Malformed {
        /// The request has more records, with their sources, than a reader converts for one request.
        Amount("rejected_too_many") = "the request has too many records, or too large sources",
        /// Arrays and lists are nested too deeply.
        Depth("rejected_too_deep") = "an attribute is nested deeper than 32 levels",
        /// A trace's id has not 16 bytes, a span's id not 8, or a span has none.
        Id("rejected_bad_id") = "an id has the wrong length, or is missing",
        /// The bytes are not the message that stands here.
        Message("rejected_not_a_message") = "the bytes are not the message of this place",
        /// A metric has no data points.
        NoData("rejected_without_data") = "a metric has no data points",
        /// The record is larger than the largest one that fits into a chunk with certainty.
        Size("rejected_too_large") = "a record is larger than {MAX_RECORD_BYTES} bytes",
        /// The JSON text of an attribute is not OTLP's.
        Value("rejected_bad_value") = "the JSON text of an attribute is not an AnyValue of OTLP",
    }
}

reasons! {
    /// Why a whole request is not taken.
    BadRequest {
        /// The reader closes.
        Closing("requests_while_closing") = "the receiver is closing",
        /// The compressed bytes are damaged.
        Compressed("requests_badly_compressed") = "the body cannot be decompressed",
        /// The compression is unknown.
        Compression("requests_of_unknown_compression") = "the compression is unknown; use gzip, zstd or identity",
        /// The type of the content is unknown.
        ContentType("requests_of_unknown_type") = "the content type is unknown; use application/x-protobuf, application/json or application/grpc",
        /// The bytes are not a request of this kind.
        Message("requests_not_readable") = "the body is not a request of this kind",
        /// The method is not POST.
        Method("requests_by_wrong_method") = "the method is not POST",
        /// Too many requests, or bytes of them, wait for their acknowledgement.
        Overloaded("requests_above_the_limits") = "too many requests wait for their acknowledgement",
        /// Nothing is at this path.
        Path("requests_to_wrong_path") = "nothing is at this path; use /v1/traces, /v1/logs, /v1/metrics or a service of OTLP",
        /// The body is too large, compressed or not.
        Size("requests_too_large") = "the body is above the limit; send smaller requests",
        /// The body did not arrive in time.
        Slow("requests_too_slow") = "the body did not arrive in time",
    }
}

impl BadRequest {
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
