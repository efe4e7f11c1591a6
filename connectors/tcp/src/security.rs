//! The token of a trusted network: the receiver sends a challenge, the sender proves its token.
//!
//! The token itself is never sent. PROTOCOL.md, "Token", describes the bytes.

use std::fs;
use std::path::Path;

use baler_common::transport::Failure;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};

use crate::headers::Hello;

/// The fewest bytes of a token. A shorter token can be guessed from one proof.
const LEAST_BYTES: usize = 16;

/// The length of a challenge.
pub(crate) const CHALLENGE_BYTES: usize = 32;

/// The length of a proof: HMAC-SHA256.
pub(crate) const PROOF_BYTES: usize = 32;

/// The receiver's answer to a right proof.
pub(crate) const ACCEPTED: u8 = 0x01;

/// The receiver's answer to a wrong proof.
pub(crate) const REFUSED: u8 = 0x00;

/// The proof that a sender has given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The sender has the private key of this certificate.
    #[cfg(feature = "tls")]
    Certificate(Box<[u8]>),
    /// No proof.
    None,
    /// The sender has the token.
    Token,
}

/// A token, as the key of proofs. It has no `Debug`, so that it cannot be shown.
pub(crate) struct Token(hmac::Key);

impl Token {
    /// Reads the token from a file.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let place = format!("token_file {}", path.display());
        match fs::read_to_string(path) {
            Ok(text) => Self::new(&text, &place),
            Err(error) => Err(Failure::last("open", format!("{place}: {error}"))),
        }
    }

    /// Returns the token with this text. A line end is no part of it. Errors name the place.
    pub(crate) fn new(text: &str, place: &str) -> Result<Self, Failure> {
        let text = text.trim_end_matches(['\r', '\n']);
        if text.len() < LEAST_BYTES {
            let found = text.len();
            let message = format!("{place} has {found} bytes, write at least {LEAST_BYTES}");
            return Err(Failure::last("open", message));
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, text.as_bytes())))
    }

    /// Returns the proof that this side has the token.
    pub(crate) fn prove(&self, sender: Hello, receiver: Hello, challenge: &[u8]) -> hmac::Tag {
        hmac::sign(&self.0, &message(sender, receiver, challenge))
    }

    /// Whether the proof shows that the peer has the token. Compares in constant time.
    pub(crate) fn is_proved(
        &self,
        sender: Hello,
        receiver: Hello,
        challenge: &[u8],
        proof: &[u8],
    ) -> bool {
        hmac::verify(&self.0, &message(sender, receiver, challenge), proof).is_ok()
    }
}

/// Returns the bytes that are signed. They include both hellos, so that nobody between the two
/// sides can change their limits.
fn message(sender: Hello, receiver: Hello, challenge: &[u8]) -> Vec<u8> {
    let mut message = b"BALERTCP token 1".to_vec();
    message.extend(sender.to_bytes());
    message.extend(receiver.to_bytes());
    message.extend_from_slice(challenge);
    message
}

/// Returns random bytes for a challenge.
pub(crate) fn challenge() -> Result<[u8; CHALLENGE_BYTES], Failure> {
    let mut bytes = [0; CHALLENGE_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| Failure::retry("accept at", "the system has no random bytes"))?;
    Ok(bytes)
}
