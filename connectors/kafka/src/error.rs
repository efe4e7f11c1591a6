//! Errors of a configuration, and the classes of the client's errors.

use baler_common::transport::Failure;
use baler_common::transport::uri::UriError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A configuration is wrong. The text never has credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaConfigError {
    /// The URI or a setting of this connector is wrong.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// librdkafka does not accept a setting, or the embedded cluster refuses an order.
    #[error("{0}")]
    Client(Box<str>),
}

impl From<KafkaConfigError> for UriError {
    fn from(error: KafkaConfigError) -> Self {
        match error {
            KafkaConfigError::Uri(error) => error,
            KafkaConfigError::Client(message) => Self::refused(message),
        }
    }
}

impl KafkaConfigError {
    /// librdkafka does not accept a setting. The message does not have its value.
    pub(crate) fn setting(name: &str, message: &str) -> Self {
        Self::Client(format!("librdkafka does not take {name}: {message}").into())
    }

    /// Two settings contradict each other.
    pub(crate) fn conflict(first: &str, second: &str, why: &str) -> Self {
        UriError::conflict(first, second, why).into()
    }
}

/// The consequence of a message's error for its chunk and its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The message or its batch is above the limit of the topic.
    TooLarge,
    /// The broker never accepts this message, but accepts others.
    InvalidMessage,
    /// Every message gets this error: not authorised, unknown topic.
    Permanent,
    /// It may pass. The messages in flight are in doubt, and a new producer may deliver them. Fatal
    /// errors of librdkafka belong here, since they end only one producer.
    Transient,
}

/// Returns the client's code of an error.
pub(crate) fn code_of(error: &KafkaError) -> RDKafkaErrorCode {
    let code = error.rdkafka_error_code();
    code.unwrap_or(RDKafkaErrorCode::Unknown)
}

/// The class of a message's error.
pub(crate) fn error_class(code: RDKafkaErrorCode) -> ErrorClass {
    use RDKafkaErrorCode as Code;
    match code {
        Code::MessageSizeTooLarge | Code::MessageBatchTooLarge => ErrorClass::TooLarge,
        Code::InvalidMessageSize
        | Code::InvalidRecord
        | Code::InvalidTimestamp
        | Code::PolicyViolation
        | Code::UnsupportedForMessageFormat => ErrorClass::InvalidMessage,
        code if is_refusal(code) => ErrorClass::Permanent,
        Code::InvalidTopic
        | Code::UnknownPartition
        | Code::UnknownTopic
        | Code::UnknownTopicOrPartition => ErrorClass::Permanent,
        _ => ErrorClass::Transient,
    }
}

/// Whether the cluster refuses this client, because of its identity or its rights.
pub(crate) fn is_refusal(code: RDKafkaErrorCode) -> bool {
    use RDKafkaErrorCode as Code;
    matches!(
        code,
        Code::Authentication
            | Code::ClusterAuthorizationFailed
            | Code::GroupAuthorizationFailed
            | Code::IllegalSASLState
            | Code::SaslAuthenticationFailed
            // A connection that breaks during the handshake is another error.
            | Code::SSL
            | Code::SecurityDisabled
            | Code::TopicAuthorizationFailed
            | Code::TransactionalIdAuthorizationFailed
            | Code::UnacceptableCredential
            | Code::UnsupportedSASLMechanism
    )
}

/// Whether a broker ended a connection with an alert of TLS (RFC 8446, section 6.2) because of the
/// client's certificate: it is missing or not trusted. librdkafka reports a failed transport, since
/// with TLS 1.3 the alert comes after the handshake. OpenSSL's text has the alert's number.
pub(crate) fn is_alert(reason: &str) -> bool {
    let number = reason
        .split_once("SSL alert number ")
        .and_then(|(_, rest)| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse::<u8>().ok()
        });
    matches!(number, Some(40..=49 | 70 | 71 | 116))
}

/// The refusal of this client for good, if an error or its text says so.
pub(crate) fn refusal(error: &KafkaError, reason: &str) -> Option<Failure> {
    if is_alert(reason) {
        return Some(Failure::last("connect to", reason));
    }
    let refused = error.rdkafka_error_code().is_some_and(is_refusal);
    refused.then(|| Failure::last("read from", reason))
}

#[cfg(test)]
mod tests;
