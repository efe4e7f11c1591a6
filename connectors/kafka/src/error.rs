//! What a configuration can do wrong, and what of the client's errors can be tried again.

use baler_common::transport::Failure;
use baler_common::transport::uri::UriError;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

/// A configuration cannot be. Its text never holds credentials.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KafkaConfigError {
    /// The URI is wrong, or a setting of this connector is.
    #[error(transparent)]
    Uri(#[from] UriError),
    /// librdkafka does not take a setting, or its cluster inside the process does not do as told.
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
    /// librdkafka does not take a setting; the message has nothing of the value.
    pub(crate) fn setting(name: &str, message: &str) -> Self {
        Self::Client(format!("librdkafka does not take {name}: {message}").into())
    }

    /// Two settings contradict each other.
    pub(crate) fn conflict(first: &str, second: &str, why: &str) -> Self {
        UriError::conflict(first, second, why).into()
    }
}

/// The class of an error of a message: what it means for the chunk and for its producer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorClass {
    /// The message, or the batch that it travelled in, is above the limit of the topic.
    TooLarge,
    /// The message will never be taken; others may be.
    InvalidMessage,
    /// Every message meets the same: not authorised, unknown topic.
    Permanent,
    /// It may pass: what is under way is in doubt, a new producer may deliver it. Errors that
    /// librdkafka calls fatal are among them, since they end one producer only.
    Transient,
}

/// Sorts what became of a message.
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

/// Whether the cluster knows who asks, and says no; or does not believe who asks.
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

/// Whether a broker ended a connection with an alert of TLS (RFC 8446, section 6.2) that speaks of
/// the client: its certificate is missing, or not believed. librdkafka calls it a failed transport,
/// since with TLS 1.3 it comes after the handshake; OpenSSL's text has the alert's number.
pub(crate) fn is_alert(reason: &str) -> bool {
    let (_, rest) = reason.split_once("SSL alert number ").unwrap_or_default();
    let number = rest.split(|c: char| !c.is_ascii_digit()).next();
    let number = number.and_then(|number| number.parse::<u8>().ok());
    matches!(number, Some(40..=49 | 70 | 71 | 116))
}

/// Why brokers refuse a client for good, if it is that what an error and its text say.
pub(crate) fn refusal(error: &KafkaError, reason: &str) -> Option<Failure> {
    if is_alert(reason) {
        return Some(Failure::last("connect to", reason));
    }
    let refused = error.rdkafka_error_code().is_some_and(is_refusal);
    refused.then(|| Failure::last("read from", reason))
}

#[cfg(test)]
mod tests;
