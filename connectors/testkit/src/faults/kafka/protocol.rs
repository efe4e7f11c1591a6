//! The answers of Kafka's protocol that a proxy changes: answers that name brokers or versions, and
//! answers that state for how long a client is held back.

use std::io;
use std::sync::Arc;

use kafka_protocol::ResponseError;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::{
    ApiVersionsRequest, FetchRequest, FindCoordinatorRequest, MetadataRequest, ProduceRequest,
    ResponseHeader, SaslAuthenticateRequest, SaslHandshakeRequest,
};
use kafka_protocol::protocol::{
    Decodable, Encodable, HeaderVersion, Message, Request, StrBytes,
    decode_request_header_from_buffer,
};

use super::KafkaProxyState;

/// The newest versions whose answers name brokers only where [`Asked::rewrite`] looks for them.
const NEWEST: [(i16, i16); 4] = [
    // Later answers may name brokers (KIP-951).
    (ProduceRequest::KEY, 9),
    (FetchRequest::KEY, 15),
    (MetadataRequest::KEY, MetadataRequest::VERSIONS.max),
    (
        FindCoordinatorRequest::KEY,
        FindCoordinatorRequest::VERSIONS.max,
    ),
];

/// The requests that a proxy with authentication answers itself: the key, the oldest and the newest
/// version. Before version 1 of the handshake, tokens came without a request around them.
const SASL: [(i16, i16, i16); 2] = [
    (SaslHandshakeRequest::KEY, 1, 1),
    (
        SaslAuthenticateRequest::KEY,
        0,
        SaslAuthenticateRequest::VERSIONS.max,
    ),
];

/// A request of a client.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) key: i16,
    pub(super) version: i16,
    pub(super) number: i32,
}

impl Asked {
    /// Returns the request in a frame and its content, if the request is a known one.
    pub(super) fn read(frame: &[u8]) -> Option<(Self, &[u8])> {
        // The library takes the key and the version from a shorter frame without asking.
        frame.first_chunk::<4>()?;
        let mut content = frame;
        let header = decode_request_header_from_buffer(&mut content).ok()?;
        let asked = Self {
            key: header.request_api_key,
            version: header.request_api_version,
            number: header.correlation_id,
        };
        Some((asked, content))
    }

    /// Whether the answer names brokers or versions.
    pub(super) fn is_rewritten(self) -> bool {
        matches!(
            self.key,
            ApiVersionsRequest::KEY | FindCoordinatorRequest::KEY | MetadataRequest::KEY
        )
    }

    /// Whether quotas count the request: it brings or fetches messages.
    pub(super) fn is_counted(self) -> bool {
        matches!(self.key, FetchRequest::KEY | ProduceRequest::KEY)
    }

    /// Returns the answer with proxies instead of brokers, and with the versions that the proxy
    /// understands.
    pub(super) fn rewrite(
        self,
        answer: Vec<u8>,
        proxy: &Arc<KafkaProxyState>,
    ) -> io::Result<Vec<u8>> {
        let rename = |host: &mut StrBytes, port: &mut i32| {
            if let Some((other_host, other_port)) = proxy.instead_of(host, *port) {
                *host = StrBytes::from_string(other_host);
                *port = i32::from(other_port);
            }
        };
        match self.key {
            ApiVersionsRequest::KEY => {
                // Such an answer has the form of version 0, whatever was asked.
                let unsupported = ResponseError::UnsupportedVersion.code().to_be_bytes();
                if answer.get(4..6) == Some(&unsupported) {
                    return Ok(answer);
                }
                let offers_sasl = proxy.sasl.is_some();
                self.change::<ApiVersionsRequest>(&answer, |answer| {
                    offer(&mut answer.api_keys, offers_sasl);
                })
            }
            FindCoordinatorRequest::KEY => {
                self.change::<FindCoordinatorRequest>(&answer, |answer| {
                    rename(&mut answer.host, &mut answer.port);
                    for broker in &mut answer.coordinators {
                        rename(&mut broker.host, &mut broker.port);
                    }
                })
            }
            MetadataRequest::KEY => self.change::<MetadataRequest>(&answer, |answer| {
                for broker in &mut answer.brokers {
                    rename(&mut broker.host, &mut broker.port);
                }
            }),
            _ => Ok(answer),
        }
    }

    /// Returns the answer to a request that quotas count, with the milliseconds for which the
    /// client is held back.
    pub(super) fn throttle(self, answer: &[u8], millis: i32) -> io::Result<Vec<u8>> {
        if self.key == FetchRequest::KEY {
            self.change::<FetchRequest>(answer, |answer| answer.throttle_time_ms = millis)
        } else {
            self.change::<ProduceRequest>(answer, |answer| answer.throttle_time_ms = millis)
        }
    }

    fn change<R: Request>(
        self,
        mut answer: &[u8],
        change: impl FnOnce(&mut R::Response),
    ) -> io::Result<Vec<u8>> {
        let header_version = R::Response::header_version(self.version);
        let mut response = ResponseHeader::decode(&mut answer, header_version)
            .and_then(|_| R::Response::decode(&mut answer, self.version))
            .map_err(io::Error::other)?;
        change(&mut response);
        self.answer::<R>(&response)
    }

    /// Returns the frame that answers the request.
    pub(super) fn answer<R: Request>(self, response: &R::Response) -> io::Result<Vec<u8>> {
        let header = ResponseHeader::default().with_correlation_id(self.number);
        let mut answer = Vec::new();
        header
            .encode(&mut answer, R::Response::header_version(self.version))
            .and_then(|()| response.encode(&mut answer, self.version))
            .map_err(io::Error::other)?;
        Ok(answer)
    }
}

/// Offers only versions that the proxy understands, and SASL if the proxy answers its requests.
fn offer(offered: &mut Vec<ApiVersion>, offers_sasl: bool) {
    for range in &mut *offered {
        if let Some((_, newest)) = NEWEST.iter().find(|(key, _)| *key == range.api_key) {
            range.max_version = range.max_version.min(*newest);
        }
    }
    if offers_sasl {
        offered.retain(|range| !SASL.iter().any(|(key, ..)| *key == range.api_key));
        offered.extend(SASL.map(|(key, oldest, newest)| {
            ApiVersion::default()
                .with_api_key(key)
                .with_min_version(oldest)
                .with_max_version(newest)
        }));
    }
}
