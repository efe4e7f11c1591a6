//! Authentication of clients to a proxy, before brokers that demand none (KIP-43, KIP-152).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kafka_protocol::ResponseError;
use kafka_protocol::messages::{
    ApiVersionsRequest, SaslAuthenticateRequest, SaslAuthenticateResponse, SaslHandshakeRequest,
    SaslHandshakeResponse,
};
use kafka_protocol::protocol::{Decodable, Request, StrBytes};

use super::protocol::Asked;
use super::relay::{read_frame, write_frame};

/// The only mechanism of the proxy: `PLAIN` (RFC 4616).
const MECHANISM: &str = "PLAIN";

/// The users that may connect to a proxy, and their passwords, by SASL PLAIN. Clones share them.
///
/// Changes apply to connections that are made afterwards, as with a broker. Open connections stay.
#[derive(Clone, Default)]
pub struct KafkaSasl {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    passwords: BTreeMap<Box<str>, Box<str>>,
    admitted: usize,
    refused: usize,
}

impl fmt::Debug for KafkaSasl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSasl").finish_non_exhaustive()
    }
}

impl KafkaSasl {
    /// Admits a user only with this password from now on.
    pub fn set_password(&self, user: &str, password: &str) {
        self.lock().passwords.insert(user.into(), password.into());
    }

    /// Returns the number of connections that authenticated so far.
    pub fn admitted(&self) -> usize {
        self.lock().admitted
    }

    /// Returns the number of connections that were refused so far.
    pub fn refused(&self) -> usize {
        self.lock().refused
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Authenticates a client. `ask` lets a broker answer the requests that are allowed before.
    ///
    /// # Errors
    ///
    /// The connection ended, or must be ended.
    pub(super) fn admit(
        &self,
        mut client: &TcpStream,
        ask: impl Fn(&[u8]) -> io::Result<Vec<u8>>,
    ) -> io::Result<()> {
        let mut is_agreed = false;
        loop {
            let frame = read_frame(&mut client)?;
            // A broker also ends the connection at any other request.
            let denied = io::Error::from(io::ErrorKind::PermissionDenied);
            let Some((asked, mut content)) = Asked::read(&frame) else {
                return Err(denied);
            };
            let (is_known, answer) = match asked.key {
                ApiVersionsRequest::KEY => (true, ask(&frame)?),
                SaslHandshakeRequest::KEY => {
                    let request = SaslHandshakeRequest::decode(&mut content, asked.version);
                    let request = request.map_err(io::Error::other)?;
                    is_agreed = request.mechanism == *MECHANISM;
                    let answer = handshake(is_agreed);
                    (is_agreed, asked.answer::<SaslHandshakeRequest>(&answer)?)
                }
                SaslAuthenticateRequest::KEY => {
                    let request = SaslAuthenticateRequest::decode(&mut content, asked.version);
                    let request = request.map_err(io::Error::other)?;
                    let is_known = is_agreed && self.knows(&request.auth_bytes);
                    let answer = verdict(is_known);
                    (is_known, asked.answer::<SaslAuthenticateRequest>(&answer)?)
                }
                _ => return Err(denied),
            };
            write_frame(&mut client, &answer)?;
            if !is_known {
                self.lock().refused += 1;
                return Err(denied);
            }
            if asked.key == SaslAuthenticateRequest::KEY {
                self.lock().admitted += 1;
                return Ok(());
            }
        }
    }

    /// Whether the token has a user and the user's password. Zero bytes separate its parts: the
    /// identity to act as, the user, and the password.
    fn knows(&self, token: &[u8]) -> bool {
        let Ok(token) = std::str::from_utf8(token) else {
            return false;
        };
        let mut parts = token.splitn(3, '\0').skip(1);
        let (user, password) = (parts.next(), parts.next());
        let state = self.lock();
        let known = user.and_then(|user| state.passwords.get(user));
        known.is_some_and(|known| Some(&**known) == password)
    }
}

fn handshake(is_agreed: bool) -> SaslHandshakeResponse {
    let error = match is_agreed {
        true => 0,
        false => ResponseError::UnsupportedSaslMechanism.code(),
    };
    SaslHandshakeResponse::default()
        .with_error_code(error)
        .with_mechanisms(vec![StrBytes::from_static_str(MECHANISM)])
}

fn verdict(is_known: bool) -> SaslAuthenticateResponse {
    let (error, why) = match is_known {
        true => (0, None),
        false => (
            ResponseError::SaslAuthenticationFailed.code(),
            Some("Authentication failed: Invalid username or password".into()),
        ),
    };
    SaslAuthenticateResponse::default()
        .with_error_code(error)
        .with_error_message(why)
}
