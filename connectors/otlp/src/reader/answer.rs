//! Answers to requests, in the form of the request.

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER};
use hyper::{Response, StatusCode};
use prost::Message as _;
use serde_json::json;

use crate::decode::Rejected;
use crate::error::BadRequest;
use crate::protocol::{ExportResponse, PartialSuccess, Signal, Status, frame};

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

/// The answer to a request that was taken, but for these records.
pub(super) fn taken(style: Style, signal: Signal, rejected: &Rejected) -> Response<Body> {
    let count = rejected.values().sum::<u64>();
    let reasons = rejected
        .iter()
        .map(|(reason, records)| format!("{records}: {reason}"));
    let message = reasons.collect::<Vec<_>>().join("; ");
    let success = PartialSuccess {
        rejected: i64::try_from(count).unwrap_or(i64::MAX),
        error_message: message,
    };
    let response = ExportResponse {
        partial_success: (count > 0).then_some(success),
    };
    let mut trailers = HeaderMap::new();
    let body = match style {
        Style::Json => {
            let body = response.partial_success.map_or_else(
                || json!({}),
                |it| {
                    let rejected = it.rejected.to_string();
                    let message = it.error_message;
                    json!({ "partialSuccess": {
                        signal.rejected_name(): rejected,
                        "errorMessage": message,
                    } })
                },
            );
            body.to_string().into()
        }
        Style::Protobuf => response.encode_to_vec().into(),
        Style::Grpc => {
            trailers.insert("grpc-status", HeaderValue::from_static("0"));
            frame(&response.encode_to_vec(), false).unwrap_or_default()
        }
    };
    let body = Full::new(body);
    let mut response = Response::new(match style {
        Style::Grpc => body
            .with_trailers(async move { Some(Ok(trailers)) })
            .boxed(),
        _ => body.boxed(),
    });
    response
        .headers_mut()
        .insert(CONTENT_TYPE, style.content_type());
    response
}

/// The answer to a request that was not taken.
pub(super) fn refused(style: Style, why: BadRequest) -> Response<Body> {
    let retry_seconds = why.is_retryable().then_some(RETRY_SECONDS);
    let status = Status::new(why.grpc(), why.to_string(), retry_seconds);
    let body = match style {
        Style::Grpc => Bytes::new(),
        Style::Json => json!({ "code": status.code, "message": status.message })
            .to_string()
            .into(),
        Style::Protobuf => status.encode_to_vec().into(),
    };
    let mut response = Response::new(Full::new(body).boxed());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, style.content_type());
    if style == Style::Grpc {
        headers.insert("grpc-status", status.code.into());
        let details = [
            ("grpc-message", status.message.clone()),
            ("grpc-status-details-bin", status.to_header()),
        ];
        for (name, value) in details {
            // Both are printable ASCII without a percent sign.
            headers.extend(
                HeaderValue::try_from(value)
                    .ok()
                    .map(|it| (hyper::header::HeaderName::from_static(name), it)),
            );
        }
        return response;
    }
    headers.extend(retry_seconds.map(|it| (RETRY_AFTER, it.into())));
    *response.status_mut() =
        StatusCode::from_u16(why.http()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}
