//! Authentication of clients to a proxy, before brokers that demand none (KIP-43, KIP-152).

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::protocol::{API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE};
use super::splice::{Splice, read_frame, write_frame};

/// `UNSUPPORTED_SASL_MECHANISM`.
const UNSUPPORTED_MECHANISM: i16 = 33;
/// `SASL_AUTHENTICATION_FAILED`.
const AUTHENTICATION_FAILED: i16 = 58;
/// The length of a string that is null.
const NULL: i16 = -1;

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
            let request = read_frame(&mut client)?;
            if Splice::new(&request).i16() == Some(API_VERSIONS) {
                write_frame(&mut client, &ask(&request)?)?;
                continue;
            }
            // A broker also ends the connection at any other request.
            let request = SaslRequest::read(&request).ok_or(io::ErrorKind::PermissionDenied)?;
            let is_known = match request.is_handshake {
                true => request.content == MECHANISM.as_bytes(),
                false => is_agreed && self.knows(request.content),
            };
            write_frame(&mut client, &request.answer(is_known))?;
            if !is_known {
                self.lock().refused += 1;
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            if !request.is_handshake {
                self.lock().admitted += 1;
                return Ok(());
            }
            is_agreed = true;
        }
    }

    /// Whether the token has a user and the user's password. Zero bytes separate its parts: the
    /// identity to act as, the user, and the password.
    fn knows(&self, token: &[u8]) -> bool {
        let token = std::str::from_utf8(token).unwrap_or_default();
        let mut parts = token.splitn(3, '\0').skip(1);
        let (user, password) = (parts.next(), parts.next());
        let state = self.lock();
        let known = user.and_then(|user| state.passwords.get(user));
        known.is_some_and(|known| Some(&**known) == password)
    }
}

/// The content of a SASL request: a number, and the name of a mechanism or a token.
struct SaslRequest<'a> {
    /// Whether the request names a mechanism.
    is_handshake: bool,
    version: i16,
    number: i32,
    content: &'a [u8],
}

impl<'a> SaslRequest<'a> {
    fn read(request: &'a [u8]) -> Option<Self> {
        let mut splice = Splice::new(request);
        let key = splice.i16()?;
        let version = splice.i16()?;
        let number = splice.i32()?;
        // The name that the client gives itself.
        splice.take_string(false)?;
        let content = match key {
            SASL_HANDSHAKE => splice.take_string(false)??,
            SASL_AUTHENTICATE => {
                let bytes = splice.i32()?;
                splice.take(usize::try_from(bytes).ok()?)?
            }
            _ => return None,
        };
        Some(Self {
            is_handshake: key == SASL_HANDSHAKE,
            version,
            number,
            content,
        })
    }

    /// Returns the answer: an error or none, and the mechanisms or the end of the exchange.
    fn answer(&self, is_known: bool) -> Vec<u8> {
        let number = self.number.to_be_bytes();
        if self.is_handshake {
            let error = if is_known { 0 } else { UNSUPPORTED_MECHANISM };
            let mechanisms = 1_i32.to_be_bytes();
            let parts: [&[u8]; 4] = [&number, &error.to_be_bytes(), &mechanisms, &text(MECHANISM)];
            return parts.concat();
        }
        let (error, why) = match is_known {
            true => (0, NULL.to_be_bytes().to_vec()),
            false => (
                AUTHENTICATION_FAILED,
                text("Authentication failed: Invalid username or password"),
            ),
        };
        let no_token = [0; 4];
        // A session without an end.
        let session = [0; 8];
        let session = if self.version >= 1 {
            session.as_slice()
        } else {
            &[]
        };
        let parts: [&[u8]; 5] = [&number, &error.to_be_bytes(), &why, &no_token, session];
        parts.concat()
    }
}

/// Returns a string after its length.
fn text(text: &str) -> Vec<u8> {
    let length = i16::try_from(text.len()).unwrap_or(i16::MAX);
    [&length.to_be_bytes(), text.as_bytes()].concat()
}
