//! The server's side of SCRAM (RFC 5802, RFC 7677), as Kafka speaks it: without channel binding.

use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SecureRandom as _;
use ring::{digest, hmac, pbkdf2, rand};

use super::Refusal;

/// What Kafka demands at least, and what it takes by default.
const ITERATIONS: NonZeroU32 = NonZeroU32::MIN.saturating_add(4095);

/// Which hash function an exchange goes by.
#[derive(Clone, Copy)]
pub(super) struct Hash {
    digest: &'static digest::Algorithm,
    hmac: hmac::Algorithm,
    pbkdf2: pbkdf2::Algorithm,
}

/// SHA-256.
pub(super) fn sha_256() -> Hash {
    Hash {
        digest: &digest::SHA256,
        hmac: hmac::HMAC_SHA256,
        pbkdf2: pbkdf2::PBKDF2_HMAC_SHA256,
    }
}

/// SHA-512.
pub(super) fn sha_512() -> Hash {
    Hash {
        digest: &digest::SHA512,
        hmac: hmac::HMAC_SHA512,
        pbkdf2: pbkdf2::PBKDF2_HMAC_SHA512,
    }
}

/// An exchange whose first half is done.
pub(super) struct Scram {
    hash: Hash,
    nonce: String,
    /// The client's first message without its beginning, a comma, and the answer to it.
    so_far: String,
    salted_password: Vec<u8>,
}

/// The user whom a client's first message names.
pub(super) fn user_of(first: &[u8]) -> Result<String, Refusal> {
    let bare = bare(text(first)?)?;
    let name = attribute(bare, "n")?;
    Ok(name.replace("=2C", ",").replace("=3D", "="))
}

impl Scram {
    /// The answer to a client's first message.
    pub(super) fn begin(
        hash: Hash,
        first: &[u8],
        password: &str,
    ) -> Result<(Self, Vec<u8>), Refusal> {
        let (mut nonce, mut salt) = ([0; 18], [0; 16]);
        let source = rand::SystemRandom::new();
        source
            .fill(&mut nonce)
            .and_then(|()| source.fill(&mut salt))
            .map_err(|_| Refusal::Malformed)?;
        Self::begin_with(hash, first, password, &STANDARD.encode(nonce), &salt)
    }

    fn begin_with(
        hash: Hash,
        first: &[u8],
        password: &str,
        nonce: &str,
        salt: &[u8],
    ) -> Result<(Self, Vec<u8>), Refusal> {
        let bare = bare(text(first)?)?;
        let nonce = format!("{}{nonce}", attribute(bare, "r")?);
        let answer = format!("r={nonce},s={},i={ITERATIONS}", STANDARD.encode(salt));
        let mut salted_password = vec![0; hash.digest.output_len()];
        let secret = password.as_bytes();
        pbkdf2::derive(hash.pbkdf2, ITERATIONS, salt, secret, &mut salted_password);
        let begun = Self {
            hash,
            nonce,
            so_far: format!("{bare},{answer}"),
            salted_password,
        };
        Ok((begun, answer.into_bytes()))
    }

    /// The answer to a client's last message, if it proves that the client knows the password.
    pub(super) fn end(self, last: &[u8]) -> Result<Vec<u8>, Refusal> {
        let last = text(last)?;
        let (unproven, proof) = last.rsplit_once(",p=").ok_or(Refusal::Malformed)?;
        let proof = STANDARD.decode(proof).map_err(|_| Refusal::Malformed)?;
        // "biws" says that there is no channel binding.
        if attribute(unproven, "c")? != "biws" || attribute(unproven, "r")? != self.nonce {
            return Err(Refusal::Malformed);
        }
        let message = format!("{},{unproven}", self.so_far);
        let client_key = self.sign(&self.salted_password, b"Client Key");
        let stored_key = digest::digest(self.hash.digest, client_key.as_ref());
        let signature = self.sign(stored_key.as_ref(), message.as_bytes());
        let expected = client_key.as_ref().iter().zip(signature.as_ref());
        if !expected.map(|(key, mask)| key ^ mask).eq(proof) {
            return Err(Refusal::Credentials);
        }
        let server_key = self.sign(&self.salted_password, b"Server Key");
        let signature = self.sign(server_key.as_ref(), message.as_bytes());
        Ok(format!("v={}", STANDARD.encode(signature)).into_bytes())
    }

    fn sign(&self, key: &[u8], message: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(self.hash.hmac, key), message)
    }
}

fn text(message: &[u8]) -> Result<&str, Refusal> {
    std::str::from_utf8(message).map_err(|_| Refusal::Malformed)
}

/// A client's first message without what it says of channel binding: none (`n`), or that it would
/// have been possible (`y`). Acting for somebody else is not.
fn bare(first: &str) -> Result<&str, Refusal> {
    let bare = first.strip_prefix("n,,");
    let bare = bare.or_else(|| first.strip_prefix("y,,"));
    bare.ok_or(Refusal::Malformed)
}

fn attribute<'a>(message: &'a str, name: &str) -> Result<&'a str, Refusal> {
    let mut attributes = message.split(',').filter_map(|it| it.split_once('='));
    let found = attributes.find(|(key, _)| *key == name);
    found.map(|(_, value)| value).ok_or(Refusal::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, section 3.
    #[test]
    fn exchange_of_the_standard_is_held() {
        let first = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
        assert_eq!(user_of(first).unwrap(), "user");
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let nonce = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let begin = || Scram::begin_with(sha_256(), first, "pencil", nonce, &salt).unwrap();
        let answer = "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                      s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096";
        assert_eq!(begin().1, answer.as_bytes());
        let last = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
                    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";
        let answer = "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=";
        assert_eq!(begin().0.end(last.as_bytes()).unwrap(), answer.as_bytes());

        let wrong = Scram::begin_with(sha_256(), first, "pencils", nonce, &salt).unwrap();
        let refusal = wrong.0.end(last.as_bytes()).unwrap_err();
        assert_eq!(refusal, Refusal::Credentials);
        for malformed in ["", "c=biws", "c=eSws,r=x,p=", &last.replace("rOpr", "rOpq")] {
            let refusal = begin().0.end(malformed.as_bytes()).unwrap_err();
            assert_eq!(refusal, Refusal::Malformed, "{malformed}");
        }
    }

    #[test]
    fn name_of_the_user_may_hold_what_separates() {
        assert_eq!(user_of(b"n,,n=a=2Cb=3Dc,r=x").unwrap(), "a,b=c");
        assert_eq!(user_of(b"p=tls,,n=a,r=x").unwrap_err(), Refusal::Malformed);
    }
}
