//! Errors of the protocol and of connections, with their retry class.

use baler_common::transport::{Failure, ProducerId, RetryClass};

use crate::versions::VersionRange;

/// A peer broke the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("byte {offset} of the connection, {reading}: {kind}")]
pub struct ProtocolError {
    /// The number of the peer's bytes before the part at fault.
    pub offset: u64,
    /// The part that was being read.
    pub reading: &'static str,
    /// The kind of error.
    pub kind: ProtocolErrorKind,
}

/// The ways in which a peer can break the protocol.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProtocolErrorKind {
    /// An acknowledgement counts more chunks than were sent, or fewer than the previous one.
    #[error("{found} chunks are acknowledged, between {low} and {high} are possible")]
    Acknowledgement {
        /// The number that the peer sent.
        found: u64,
        /// The number of the previous acknowledgement.
        low: u64,
        /// The number of chunks that were sent.
        high: u64,
    },
    /// A checksum does not match: the bytes were altered, or are something else.
    #[error("the checksum is {found:08x} instead of {computed:08x}")]
    Checksum {
        /// The checksum that the peer sent.
        found: u32,
        /// The checksum of its bytes.
        computed: u32,
    },
    /// The connection ended within a message.
    #[error("the connection ended")]
    Ended,
    /// TLS could not be agreed on.
    #[error(
        "the TLS handshake failed ({reason}); both sides need tcp+tls: and certificates that the \
         other one trusts"
    )]
    Handshake {
        /// The error of rustls.
        reason: Box<str>,
    },
    /// Another connection that is alive sends chunks of this producer and epoch.
    #[error(
        "producer {producer} is sending over the connection {holder}; give both senders the same \
         token_file, or the same certificate"
    )]
    IdentityInUse {
        /// The producer.
        producer: ProducerId,
        /// The other connection's sender.
        holder: Box<str>,
    },
    /// A number has a value that is not allowed there.
    #[error("{found} is not allowed here")]
    Invalid {
        /// The number.
        found: u64,
    },
    /// The peer is a socket writer of Kieker.
    #[error("the peer is a socket writer of Kieker; receive it with kieker+tcp://{address}")]
    Kieker {
        /// Host and port at which this reader listens.
        address: Box<str>,
    },
    /// The length of a frame is above the agreed limit, or too short for a chunk's identity.
    #[error("the length {found} is not between {low} and {high}")]
    Length {
        /// The length in bytes.
        found: u64,
        /// The lowest allowed length.
        low: u64,
        /// The highest allowed length.
        high: u64,
    },
    /// The peer does not speak Baler's protocol.
    #[error(
        "the peer does not speak Baler's protocol; if it is a socket writer of Kieker, receive it with \
         kieker+tcp: instead of tcp:"
    )]
    Magic,
    /// The first chunk of a connection has no identity.
    #[error("a chunk without an identity follows none")]
    NoIdentity,
    /// The receiver refuses a chunk because another connection sends chunks of the same producer.
    #[error(
        "the receiver refuses a chunk whose producer sends over another connection; give both \
         senders the same token_file, or the same certificate"
    )]
    Refused,
    /// The peer sends where it should receive, or the other way round.
    #[error("the peer is a {found}, a {expected} is needed")]
    Role {
        /// The peer's role.
        found: &'static str,
        /// The role that is needed.
        expected: &'static str,
    },
    /// A chunk's number does not follow the previous one.
    #[error("chunk {found} came when {expected} was due")]
    Sequence {
        /// The chunk's number.
        found: u64,
        /// The number that was due.
        expected: u64,
    },
    /// The peer was silent for longer than allowed, so it counts as gone.
    #[error("nothing came for {milliseconds} ms")]
    Silence {
        /// The length of the silence, in milliseconds.
        milliseconds: u128,
    },
    /// The sender's proof is wrong: it has another token, or none and guesses.
    #[error("the sender has another token; give both sides the same token_file")]
    Token,
    /// The receiver demands a token and the sender has none.
    #[error("the receiver demands a token and the sender has none; set token_file at the sender")]
    TokenMissing,
    /// The two sides have no version of the protocol in common.
    #[error("the peer speaks {theirs} of the protocol, this side {ours}")]
    Version {
        /// The versions of the peer.
        theirs: VersionRange,
        /// The versions of this side.
        ours: VersionRange,
    },
    /// The peer sent more than the window allows without an acknowledgement.
    #[error("more than the window of {chunks} chunks was sent")]
    Window {
        /// The window, in chunks.
        chunks: u64,
    },
}

impl ProtocolErrorKind {
    /// The error of this kind at a place of the connection.
    pub(crate) fn at(self, offset: u64, reading: &'static str) -> ProtocolError {
        ProtocolError {
            offset,
            reading,
            kind: self,
        }
    }

    /// Whether the peer may not send even if it keeps to the protocol.
    pub(crate) fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Handshake { .. } | Self::IdentityInUse { .. } | Self::Token | Self::TokenMissing
        )
    }

    /// Whether connecting again can help.
    pub(crate) fn class(&self) -> RetryClass {
        match self {
            Self::Handshake { .. }
            | Self::Kieker { .. }
            | Self::Magic
            | Self::Role { .. }
            | Self::Token
            | Self::TokenMissing
            | Self::Version { .. } => RetryClass::Final,
            _ => RetryClass::Retry,
        }
    }
}

impl From<&ProtocolError> for Failure {
    fn from(error: &ProtocolError) -> Self {
        Self {
            operation: "talk to",
            message: error.to_string().into(),
            class: error.kind.class(),
        }
    }
}
