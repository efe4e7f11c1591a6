//! Answers to requests, in the form of the request.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use prost::Message as _;
use serde_json::json;

use crate::error::BadRequest;
use crate::protocol::{ExportResponse, PartialSuccess, Signal, Status, frame};
use crate::sink::Rejected;

/// The time after which a sender may send a request again that was not taken.
const RETRY_SECONDS: u32 = 1;

pub(super) type Body = BoxBody<Bytes, Infallible>;

/// The form of a request, and so of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Grpc,
    Json,
    Protobuf,
}

impl Style {
    /// The form of a request with these headers.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let content_type = headers.get(CONTENT_TYPE)?.to_str().ok()?;
        let content_type = content_type
            .split(';')
            .next()
            .unwrap_or(content_type)
            .trim();
        match content_type {
            "application/grpc" | "application/grpc+proto" => Some(Self::Grpc),
            "application/json" => Some(Self::Json),
            "application/x-protobuf" => Some(Self::Protobuf),
            _ => None,
        }
    }

    const fn content_type(self) -> HeaderValue {
        HeaderValue::from_static(match self {
            Self::Grpc => "application/grpc",
            Self::Json => "application/json",
            Self::Protobuf => "application/x-protobuf",
        })
    }
}

fn response(style: Style, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, style.content_type());
    response
}

/// The answer to a request that was taken, but for these records.
#[expect(clippy::expect_used, reason = "the text is short")]
pub(super) fn taken(style: Style, signal: Signal, rejected: &Rejected) -> Response<Body> {
    let count: u64 = rejected.values().sum();
    let reasons = rejected.iter();
    let reasons = reasons.map(|(reason, records)| format!("{records}: {reason}"));
    let success = PartialSuccess {
        rejected: count.cast_signed(),
        error_message: reasons.collect::<Vec<_>>().join("; "),
    };
    let message = ExportResponse {
        partial_success: (count > 0).then(|| success.clone()),
    };
    let message = message.encode_to_vec();
    let body = match style {
        Style::Json if count == 0 => Full::<Bytes>::from("{}").boxed(),
        Style::Json => {
            let rejected = success.rejected.to_string();
            let message = success.error_message;
            let partial = json!({ signal.rejected_name(): rejected, "errorMessage": message });
            let body = json!({ "partialSuccess": partial });
            Full::<Bytes>::from(body.to_string()).boxed()
        }
        Style::Protobuf => Full::<Bytes>::from(message).boxed(),
        Style::Grpc => {
            let frame = frame(&message, false).expect("a few reasons are not 4 GiB");
            let done = (
                HeaderName::from_static("grpc-status"),
                HeaderValue::from_static("0"),
            );
            let trailers = async { Some(Ok([done].into_iter().collect())) };
            Full::new(frame).with_trailers(trailers).boxed()
        }
    };
    response(style, body)
}

/// The answer to a request that was not taken.
#[expect(clippy::expect_used, reason = "the text and the status are constants")]
pub(super) fn refused(style: Style, why: BadRequest) -> Response<Body> {
    let retry_seconds = why.is_retryable().then_some(RETRY_SECONDS);
    let status = Status::new(why.grpc(), why.to_string(), retry_seconds);
    let body = match style {
        Style::Grpc => Full::<Bytes>::default(),
        Style::Json => {
            let body = json!({ "code": status.code, "message": status.message });
            Full::from(body.to_string())
        }
        Style::Protobuf => Full::from(status.encode_to_vec()),
    };
    let mut response = response(style, body.boxed());
    let headers = response.headers_mut();
    if style == Style::Grpc {
        let details = status.to_header();
        headers.insert("grpc-status", status.code.into());
        for (name, value) in [
            ("grpc-message", status.message),
            ("grpc-status-details-bin", details),
        ] {
            let value = HeaderValue::try_from(value);
            headers.insert(name, value.expect("printable ASCII without a percent sign"));
        }
    } else {
        headers.extend(retry_seconds.map(|it| (RETRY_AFTER, it.into())));
        let status = StatusCode::from_u16(why.http());
        *response.status_mut() = status.expect("it is from 400 to 599");
    }
    response
}
