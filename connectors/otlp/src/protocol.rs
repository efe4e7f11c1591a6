//! What both ends share: paths, answers, and the framing of gRPC.

use std::time::Duration;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::{Buf as _, Bytes};
use prost::Message;

/// The names of HTTP/1.1 and HTTP/2 in a handshake of TLS (ALPN, RFC 7301).
pub(crate) const ALPN_HTTP1: &[u8] = b"http/1.1";
pub(crate) const ALPN_HTTP2: &[u8] = b"h2";

/// A kind of telemetry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    Logs,
    Metrics,
    Traces,
}

impl Signal {
    pub(crate) const ALL: [Self; 3] = [Self::Logs, Self::Metrics, Self::Traces];

    /// The path of OTLP/HTTP.
    pub(crate) const fn http_path(self) -> &'static str {
        match self {
            Self::Logs => "/v1/logs",
            Self::Metrics => "/v1/metrics",
            Self::Traces => "/v1/traces",
        }
    }

    /// The path of OTLP/gRPC.
    pub(crate) const fn grpc_path(self) -> &'static str {
        match self {
            Self::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
            Self::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
            Self::Traces => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        }
    }

    /// The name of the number of rejected records in JSON.
    pub(crate) const fn rejected_name(self) -> &'static str {
        match self {
            Self::Logs => "rejectedLogRecords",
            Self::Metrics => "rejectedDataPoints",
            Self::Traces => "rejectedSpans",
        }
    }
}

/// The answer to a request, which has the same numbers of fields for each signal.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) partial_success: Option<PartialSuccess>,
}

/// The number of records that a receiver did not take, and why.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(crate) rejected: i64,
    #[prost(string, tag = "2")]
    pub(crate) error_message: String,
}

/// `google.rpc.Status`: why a request was not taken.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
    #[prost(string, tag = "2")]
    pub(crate) message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Detail>,
}

/// `google.protobuf.Any`.
#[derive(Clone, PartialEq, Message)]
struct Detail {
    #[prost(string, tag = "1")]
    type_url: String,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

/// `google.rpc.RetryInfo`.
#[derive(Clone, PartialEq, Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<Delay>,
}

/// `google.protobuf.Duration`.
#[derive(Clone, PartialEq, Message)]
struct Delay {
    #[prost(int64, tag = "1")]
    seconds: i64,
    #[prost(int32, tag = "2")]
    nanos: i32,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

impl Status {
    /// Returns a status, with the time to wait if the request may be sent again.
    pub(crate) fn new(code: i32, message: String, retry_seconds: Option<u32>) -> Self {
        let details = retry_seconds.into_iter().map(|seconds| {
            let seconds = seconds.into();
            let retry_delay = Some(Delay { seconds, nanos: 0 });
            Detail {
                type_url: RETRY_INFO.into(),
                value: RetryInfo { retry_delay }.encode_to_vec(),
            }
        });
        Self {
            code,
            message,
            details: details.collect(),
        }
    }

    /// Returns the time to wait, if the status has one.
    pub(crate) fn retry_after(&self) -> Option<Duration> {
        let detail = self.details.iter().find(|it| it.type_url == RETRY_INFO)?;
        let delay = RetryInfo::decode(&*detail.value).ok()?.retry_delay?;
        let seconds = u64::try_from(delay.seconds).ok()?;
        let nanos = u32::try_from(delay.nanos).ok()?;
        Some(Duration::from_secs(seconds) + Duration::from_nanos(nanos.into()))
    }

    /// Returns the status as the header `grpc-status-details-bin` has it.
    pub(crate) fn to_header(&self) -> String {
        BASE64.encode(self.encode_to_vec())
    }

    pub(crate) fn from_header(header: &[u8]) -> Option<Self> {
        Self::decode(&*BASE64.decode(header).ok()?).ok()
    }
}

/// gRPC sends bytes in headers without padding, and takes them with it.
const BASE64: GeneralPurpose = {
    let config = GeneralPurposeConfig::new().with_encode_padding(false);
    let config = config.with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&STANDARD, config)
};

/// The bytes before a message of gRPC: whether it is compressed, and its length.
pub(crate) const PREFIX_BYTES: usize = 5;

/// Returns the frame of a message.
pub(crate) fn frame(message: &[u8], is_compressed: bool) -> Option<Bytes> {
    let length = u32::try_from(message.len()).ok()?;
    let prefix = length.to_be_bytes();
    Some(
        [&[u8::from(is_compressed)], &prefix[..], message]
            .concat()
            .into(),
    )
}

/// Returns the only message of a body, and whether it is compressed.
pub(crate) fn unframe(mut body: Bytes) -> Option<(Bytes, bool)> {
    let is_compressed = match body.try_get_u8().ok()? {
        0 => false,
        1 => true,
        _ => return None,
    };
    let length = body.try_get_u32().ok()?;
    (usize::try_from(length) == Ok(body.len())).then_some((body, is_compressed))
}
